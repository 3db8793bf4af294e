"""What rbdump prints of a thread is what Ruby prints: every frame, of every kind of code, on every Ruby."""

import dataclasses
import json
import re
import subprocess

import pytest
from conftest import RUBIES, note_not_applicable, note_too_old
from harness.dump import as_text, check, check_thread, current, dump, rbdumps_frames, run, thread_of
from harness.process import is_untouched, wait_until, wait_until_it_reads
from harness.rubies import JIT_NAMES
from harness.target import TARGETS, Target, needs
from harness.terminal import shown_on_terminal

# Targets that have tests of their own, in which more happens than that all subjects rest.
OF_THEIR_OWN = {
    "still.rb", "states.rb", "garbage.rb", "last_runner_ended.rb", "forked.rb", "churn.rb", "crowd.rb", "fiber_scheduler.rb", "operators.rb",
    "fibers_suspended.rb", "fibers_busy.rb", "ractors_busy.rb", "starts_a_thread.rb", "contention.rb", "contention_others.rb",
}  # fmt: skip
SCRIPTS = sorted(path.name for path in TARGETS.glob("*.rb") if path.name not in OF_THEIR_OWN)
# What a JIT, and a build with other options, may change.
VARIED = [
    "blocks.rb",
    "cfuncs.rb",
    "hot.rb",
    "methods.rb",
    "multiline.rb",
    "name_rules.rb",
    "names.rb",
    "rescues.rb",
    "svar.rb",
]
# MJIT takes long to compile. RJIT itself fails on names that are not UTF-8.
COMPILED = {
    "yjit": VARIED,
    "zjit": VARIED,
    "rjit": [script for script in VARIED if script != "names.rb"],
    "mjit": ["hot.rb"],
}


@dataclasses.dataclass(frozen=True)
class Case:
    ruby: object
    script: str
    variant: str = ""
    flags: tuple = ()

    def __str__(self):
        return "-".join(filter(None, (self.ruby.id, self.variant, self.script.removesuffix(".rb"))))


def cases():
    for ruby in RUBIES:
        for script in SCRIPTS:
            if ruby.series < needs(script):
                note_too_old(script, ruby, needs(script))
            else:
                yield Case(ruby, script)
        for jit, flags in ruby.jits.items():
            yield from (Case(ruby, script, jit, flags) for script in COMPILED[jit])
        if lacks := [jit.upper() for jit in JIT_NAMES if jit not in ruby.jits]:
            note_not_applicable(f"{', '.join(lacks)} on {ruby.id}: not built in, or not usable as it is installed")
        if ruby.shared:
            other = dataclasses.replace(ruby, path=ruby.shared)
            # That build has no libraries, so none of the encodings that names.rb uses.
            yield from (Case(other, script, "shared") for script in VARIED if script != "names.rb")


def marks(case):
    """What a JIT changes is tested on the outer Rubies and on Debian's."""
    return [pytest.mark.outer_rubies] if case.variant in JIT_NAMES else []


@pytest.fixture(scope="module", params=[pytest.param(case, marks=marks(case), id=str(case)) for case in cases()])
def case(request):
    return request.param


@pytest.fixture(scope="module")
def target(case):
    """Each target is started once, serves all tests of this file, and must then end as if nothing had happened."""
    started = Target(case.ruby.path, case.script, flags=case.flags)
    try:
        yield started
        assert started.release() == 0
    finally:
        started.close()


@pytest.fixture(scope="module")
def answer(target, rbdump):
    """What rbdump says of the target, once nothing runs in it any more."""
    wait_until_it_reads(target.pid)
    return dump(rbdump, target.pid)


def qualified(label):
    """Whether Ruby itself names the class, or whether there is none to name: then `name` is the same."""
    return re.fullmatch(r"(block (\(\d+ levels\) )?in )?([A-Z]\w*(::[A-Z]\w*)*[#.].+|<.*>|singleton class)", label, re.S)


def check_names(answer, ruby):
    """What is true of all names: the rules for single ones are in test_names_by_the_rules."""
    frames = [frame for thread in answer["threads"] for frame in thread["frames"]]
    assert not [frame["name"] for frame in frames if re.search(r"0x[0-9a-f]{6,}", frame["name"])]
    if ruby.series >= (3, 4):
        wrong = [(f["name"], f["label"]) for f in frames if qualified(f["label"]) and f["name"] != f["label"]]
        assert not wrong


def test_frames(target, case, answer):
    check(answer, target, case.ruby)
    check_names(answer, case.ruby)
    if "lacks" in target.ready:
        note_not_applicable(f"{case}: {as_text(target.ready['lacks'])}")
    if "ractor" in target.ready:
        assert not (complaints := check_thread(answer, target.ready["ractor"])), complaints
        assert thread_of(answer, target.ready["ractor"])["ractor"] == 2
        assert {t["ractor"] for t in current(answer) if t["name"] not in ("receiver", "teller")} == {1}
    else:
        assert {thread["ractor"] for thread in current(answer)} == {1}
    assert is_untouched(target.pid)


def test_frames_unpaused(target, case, rbdump):
    check(dump(rbdump, target.pid, "--no-stop"), target, case.ruby, mode="unpaused")


def test_text(target, rbdump, answer):
    """`path:line:in 'label'`, the same frames as in the JSON, and nothing that a terminal would obey."""
    done = run(rbdump, "-p", target.pid, "--all")
    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stdout)
    shown = re.findall(r"^ {4}(.*):(-?\d+):in '(.*)'", done.stdout, re.M)
    expected = [
        (frame["path"], str(frame["line"]), frame["label"])
        for thread in answer["threads"]
        for frame in thread["frames"]
        if frame["line"] is not None
    ]
    printable = [frame for frame in expected if "".join(frame).isprintable()]
    known = set(printable)
    assert [frame for frame in shown if frame in known] == printable
    assert len(shown) == len(expected)


@pytest.mark.target("name_rules.rb")
@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_names_by_the_rules(ruby, start, rbdump, mode):
    """The names that stand in the target's comments, behind the lines that the frames are at."""
    target = start(ruby, "name_rules.rb")
    wanted = {}
    for number, line in enumerate((TARGETS / "name_rules.rb").read_text().splitlines(), 1):
        if "# names: " in line:
            wanted[number] = line.split("# names: ")[1].split(" > ")

    frames = thread_of(dump(rbdump, target.pid, *mode), {"key": b"main"})["frames"]
    # From the oldest frame on: a Ruby frame of the target begins a group, what it calls of Ruby's own goes with it.
    groups = []
    for frame in reversed(frames):
        if frame["kind"] == "ruby" and frame["path"] == "name_rules.rb":
            groups.append((frame["line"], []))
        groups[-1][1].append(frame["name"])
    assert groups == [(line, wanted[line]) for line, _ in groups]
    assert {line for line, _ in groups} == set(wanted)


def test_colour_only_on_a_terminal(ruby, start, rbdump):
    target = start(ruby, "threads.rb")
    wait_until_it_reads(target.pid)
    plain = run(rbdump, "-p", target.pid).stdout.encode()
    assert b"\x1b" not in plain
    coloured = shown_on_terminal([rbdump, "-p", target.pid])
    assert b"\x1b[" in coloured
    without = shown_on_terminal([rbdump, "-p", target.pid], NO_COLOR="1")
    assert b"\x1b" not in without

    def lines(raw):
        return re.sub(rb"\x1b\[[0-9;]*m|\r", b"", raw).splitlines()[2:]

    assert sorted(lines(coloured)) == sorted(lines(without))


@pytest.mark.target("names.rb")
def test_json_is_one_document_of_ascii_or_utf8(ruby, start, rbdump):
    target = start(ruby, "names.rb")
    done = subprocess.run([rbdump, "-p", str(target.pid), "--json"], capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout.decode("utf-8"))["tool"].startswith("rbdump ")
    assert not re.search(rb"[\x00-\x08\x0b-\x1f]", done.stdout)


def test_last_runner_has_ended(ruby, start, rbdump):
    """Since its thread ended nobody has held the GVL: what ran last is of no use to find the others."""
    target = start(ruby, "last_runner_ended.rb")

    def without_it():
        answer = dump(rbdump, target.pid, status=None)
        return answer if len(current(answer)) == 2 else None

    answer = wait_until(without_it, "the thread has ended")
    check(answer, target, ruby)
    assert "last" not in {thread["name"] for thread in answer["threads"]}
    assert target.release() == 0


def test_operators(ruby, start, rbdump):
    """Nobody has asked Ruby for the names of these methods, and rbdump has them all the same."""
    target = start(ruby, "operators.rb")

    def at_rest():
        main = next(thread for thread in dump(rbdump, target.pid, status=None)["threads"] if thread["main"])
        labels = [frame["label"].rsplit("#", 1)[-1] for frame in main["frames"]]
        return labels if main["verdict"] == "complete" and labels[0] == "sleep" else None

    labels = wait_until(at_rest, "its main thread sleeps")
    assert labels == ["sleep", "==", "==", "coerce", "+", "<main>"]
    assert target.release() == 0


@pytest.mark.target("waits.rb")
def test_same_frames_again(ruby, start, rbdump):
    """Nothing of one dump is left in the target that would change the next."""
    target = start(ruby, "waits.rb")
    wait_until_it_reads(target.pid)
    first, second = (
        {(t["tid"], t["name"]): rbdumps_frames(t) for t in dump(rbdump, target.pid)["threads"]} for _ in range(2)
    )
    assert first == second
