"""The native frames of recordings: against a C extension without debug info, whose functions are known, and gdb."""

import collections
import json
import pathlib
import re
import subprocess

import pytest
from conftest import note_not_applicable
from harness import kernel
from harness.busy import Busy, Extension
from harness.debugger import GDB
from harness.dump import run
from harness.recording import Recording, record, report

RATE = 1000
USAGE = 64


def needs_kernel():
    reason = kernel.why_not()
    if reason:
        note_not_applicable(f"native frames in the mode kernel: {reason}")
        pytest.skip(reason)


@pytest.fixture(params=["kernel", "paused"])
def mode(request):
    if request.param == "kernel":
        needs_kernel()
    return request.param


@pytest.fixture
def in_kernel():
    needs_kernel()


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return Extension(tmp_path_factory.mktemp("extension"))


def frames_inside(span, method):
    """The frames inside of a method, outermost first; None if the method is not in the stack."""
    frames = span.frames[::-1]
    names = [frame["name"] for frame in frames]
    return frames[names.index(method) + 1 :] if method in names else None


def inside(span, method):
    frames = frames_inside(span, method)
    return None if frames is None else tuple(frame["name"] for frame in frames)


def weights_inside(profile, method):
    """
    How long a thread was in what, inside of a method, without the time in which it waited for a CPU: in the mode kernel, in
    ns; in the mode paused, in samples, because there a sample also stands for the wait before it.
    """
    weights = collections.Counter()
    for span in profile.spans:
        names = inside(span, method)
        if names is not None and span.verdict == "complete" and span.state != "runnable":
            weights[names] += span.weight if profile.answer["mode"] == "kernel" else span.count
    return weights


def share(weights, is_so):
    assert weights, "the method was not sampled"
    return sum(weight for names, weight in weights.items() if is_so(names)) / weights.total()


def check(profile, extension):
    compute = extension.nameless("compute")
    # A function directly below its method, and what it calls below it, with a symbol and without.
    work = weights_inside(profile, "Busy.work")
    # A few samples may be of the moment in which the interpreter calls it.
    assert share(work, lambda names: names == ()) <= 0.03, work
    # Which function of the interpreter that is cannot be told in a file without symbols before it has been seen below a method.
    assert share(work, lambda names: names[:1] in (("busy_work",), ())) >= 0.99, work
    assert share(work, lambda names: names == ("busy_work", "busy_inner", compute)) >= 0.95, work
    # The function that the method has left its frame to; until the functions that call methods are known, they are in front of it.
    leaves = weights_inside(profile, "Busy.leaves")
    assert share(leaves, lambda names: names[:1] in (("busy_left",), ("busy_leaves",))) >= 0.9, leaves
    # A chain that is not all in the copy is marked as such.
    dives = weights_inside(profile, "Busy.dives")
    cut = ("(native frames missing)", *["busy_deep"] * 3)
    assert share(dives, lambda names: names[:4] == cut or len(names) < 20) >= 0.99, dives
    assert share(dives, lambda names: names[:4] == cut and names[-2:] == ("busy_inner", compute)) >= 0.8, dives
    # Through a function of the C library, and back.
    sorts = weights_inside(profile, "Busy.sorts")
    assert share(sorts, lambda names: names[:1] == ("busy_sorts",)) >= 0.97, sorts
    back = [extension.nameless("compare"), compute]
    assert share(sorts, lambda names: "qsort" in " ".join(names[1:2]) and list(names[-2:]) == back) >= 0.5, sorts
    # A function between two frames of Ruby is not shown, and not taken for one inside of the inner frame.
    yields = weights_inside(profile, "Busy.yields")
    in_ruby = share(yields, lambda names: any("Object#in_ruby" in name for name in names))
    assert in_ruby >= 0.6, yields
    assert share(yields, lambda names: "busy_yields" in names and names[0] != "busy_yields") == 0, yields
    # A wait.
    naps = weights_inside(profile, "Busy.naps")
    assert share(naps, lambda names: names[:1] == ("busy_naps",) and "nanosleep" in "".join(names[1:])) >= 0.95, naps


@pytest.mark.outer_rubies
def test_extension(ruby, rbdump, extension, file, mode):
    with Busy(ruby, extension) as busy:
        status, _, errors = record(rbdump, "-p", busy.pid, "-r", RATE, "-d", 3, "--mode", mode, "--native", file=file)
    assert status == 0, errors
    check(report(rbdump, file, "--idle"), extension)


@pytest.mark.three_rubies
def test_extension_with_jit(ruby, rbdump, extension, file, mode):
    if not ruby.has_yjit:
        note_not_applicable(f"native frames with YJIT, on {ruby.id}: not built in")
        return
    with Busy(ruby, extension, ["--yjit", "--yjit-call-threshold=1"]) as busy:
        status, _, errors = record(rbdump, "-p", busy.pid, "-r", RATE, "-d", 3, "--mode", mode, "--native", file=file)
    assert status == 0, errors
    check(report(rbdump, file, "--idle"), extension)


@pytest.mark.any_ruby
@pytest.mark.usefixtures("in_kernel")
def test_kernel_frames(ruby, rbdump, extension, file):
    """Inside of the program's functions are those of the kernel, from the system call in to where the thread was."""
    with Busy(ruby, extension) as busy:
        words = ["-p", busy.pid, "-r", RATE, "-d", 2, "--mode", "kernel", "--kernel-frames"]
        status, _, errors = record(rbdump, *words, file=file)
    assert status == 0, errors
    profile = report(rbdump, file, "--idle")
    naps = weights_inside(profile, "Busy.naps")

    def is_in_kernel(names):
        return "hrtimer_nanosleep" in names and names[0] == "busy_naps" and names[-1] == "__schedule"

    assert share(naps, is_in_kernel) >= 0.9, naps
    kernel_frames = [frame for span in profile.spans for frame in span.frames if frame["path"] == "[kernel]"]
    assert {frame["kind"] for frame in kernel_frames} == {"native"}


# What a thread waits in, and the method that it is in then.
WAITS = {
    "sleep": "Kernel#sleep",
    "IO.pipe[0].read(1)": "IO#read",
    "(defined?(Thread::Queue) ? Thread::Queue : Queue).new.pop": "Thread::Queue#pop",
    "Process.wait(fork { sleep })": "Process.wait",
}
# Prints the functions of the main thread as JSON, innermost first: those that have a frame on the stack.
OF_GDB = """
import gdb, json
frame, names = gdb.newest_frame(), []
while frame and len(names) < 60:
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        names.append(frame.name())
    frame = frame.older()
print("NAMES " + json.dumps(names))
"""


def names_of_gdb(pid, folder):
    script = folder / "names.py"
    script.write_text(OF_GDB)
    command = [*GDB, "-p", str(pid), "-x", script]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(re.search(r"^NAMES (.*)$", done.stdout, re.M)[1])


def plain(name):
    """Without what the compiler adds to the symbol of a part or a copy of a function, and without the version of a symbol."""
    return re.sub(r"[.@].*", "", name.lstrip("_")) if name else None


@pytest.mark.newest_ruby
@pytest.mark.parametrize("wait", WAITS)
def test_as_gdb(ruby, rbdump, file, tmp_path, mode, wait):
    """The functions of a thread that waits are those that gdb shows, for one that waits already and for one that begins to."""
    code = f'Thread.new {{ sleep }}; puts "ready"; $stdout.flush; $stdin.getc; {wait}'
    with subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as target:
        try:
            assert target.stdout.readline() == "ready\n"
            found = []
            for begins in (True, False):
                path = file.with_suffix(f".{begins}")
                with Recording(rbdump, "-p", target.pid, "--mode", mode, "--native", file=path) as recording:
                    recording.wait_for_samples()
                    if begins:
                        target.stdin.write("x")
                        target.stdin.flush()
                    method = WAITS[wait]
                    recording.wait_until(lambda profile: any(inside(one, method) for one in profile.of(main=True)), "it waits")
                    status, _, errors = recording.end(2)
                assert status == 0, errors
                waits = [one for one in report(rbdump, path, "--idle").of(main=True) if inside(one, method)]
                found.append(frames_inside(max(waits, key=lambda one: one.weight), method))
            of_gdb = [plain(name) for name in names_of_gdb(target.pid, tmp_path)]
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(target.pid)], check=False)
    for frames in found:
        # If it is not known which function implements the method, only the innermost one is shown, and marked.
        frames = [frame for frame in frames if frame["kind"] != "mark"]
        names, expected = [plain(frame["name"]) for frame in frames], of_gdb[: len(frames)][::-1]
        # A function of the C library has several names. That of a file without symbols has none, or only if it is exported.
        known = [
            (ours, theirs)
            for ours, theirs, frame in zip(names, expected, frames, strict=True)
            if "ruby" in pathlib.Path(frame["path"]).name and theirs and "+0x" not in frame["name"]
        ]
        assert known or len(frames) == 1, json.dumps([names, of_gdb, frames])
        assert all(ours == theirs for ours, theirs in known), json.dumps([names, of_gdb, frames])


def test_usage(rbdump, tmp_path):
    for option, mode, said in (
        ("--native", "unpaused", "--native cannot be used with --mode unpaused"),
        ("--kernel-frames", "paused", "--kernel-frames can be used only with --mode kernel or --mode auto"),
        ("--kernel-frames", "unpaused", "--kernel-frames can be used only with --mode kernel or --mode auto"),
    ):
        done = run(rbdump, "record", "--mode", mode, option, "-o", tmp_path / "none", "--", "true")
        assert done.returncode == USAGE and said in done.stderr, done.stderr
