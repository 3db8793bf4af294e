"""`rbdump --native`: the native stacks, against gdb's; their places among Ruby's frames, against what Ruby counts."""

import json
import pathlib
import re
import subprocess
import types

import pytest
from conftest import RUBIES, note_not_applicable
from harness.core import gcore_of, no_kernel_cores, read_core
from harness.dump import dump, run
from harness.mixed import HERE, Extension, Mixed
from harness.native import addresses, check_against_gdb, gdb_stacks, is_suspended, lost, native, of_ruby
from harness.process import is_untouched, wait_until
from harness.under_gdb import stop_in

USAGE = 64


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    return Extension(tmp_path_factory.mktemp("stripped"), with_debug=False)


@pytest.fixture(scope="module")
def with_debug(tmp_path_factory):
    return Extension(tmp_path_factory.mktemp("debug"), with_debug=True)


METHODS = ("mixed_yields", "mixed_calls", "mixed_ensures", "mixed_sorts")


def check_places(answer, said, extension):
    """Behind each function of the extension are as many frames of Ruby as Ruby has counted in it; its own comes first."""
    methods = {extension.names[method]: f"Mixed.{method.removeprefix('mixed_')}" for method in METHODS}
    for name, subject in said.items():
        # One has called them before it went on in another fiber.
        stacks = [thread["frames"] for thread in answer["threads"] if thread["tid"] == subject["tid"]]
        places = [
            [i for i, frame in enumerate(frames) if frame["kind"] == "native" and frame["name"] in methods] for frames in stacks
        ]
        ((frames, at),) = [(frames, at) for frames, at in zip(stacks, places, strict=True) if at]
        counts = [len([frame for frame in frames[i:] if frame["kind"] != "native"]) for i in at]
        assert counts[::-1] == subject["counts"], name
        assert [frames[i + 1]["name"] for i in at] == [methods[frames[i]["name"]] for i in at], name


def check_rest(rbdump, mixed, extension):
    """A dump of the program at rest: nothing is stopped, and all is as gdb and Ruby have it."""
    plain = dump(rbdump, mixed.pid)
    answer = dump(rbdump, mixed.pid, "--native=all")
    assert answer["pause_us"] == 0, "a sleeping thread was stopped"
    assert is_untouched(mixed.pid)
    with_ruby = [thread for thread in answer["threads"] if "native" not in thread]
    assert [of_ruby(thread) for thread in with_ruby] == [thread["frames"] for thread in plain["threads"]]
    check_against_gdb(answer, gdb_stacks("-p", mixed.pid))
    check_places(answer, mixed.said, extension)
    folders = pathlib.Path(f"/proc/{mixed.pid}/task").iterdir()
    tasks = {int(task.name): task.joinpath("comm").read_text().strip() for task in folders}
    assert {thread["tid"] for thread in answer["threads"]} == set(tasks)
    assert all(thread["name"] == tasks[thread["tid"]] for thread in answer["threads"] if "native" in thread)
    fibers = [thread for thread in answer["threads"] if is_suspended(thread)]
    assert fibers and all(len(native(fiber)) > 5 for fiber in fibers)


def test_at_rest(rbdump, ruby, stripped):
    with Mixed(ruby, stripped) as mixed:
        check_rest(rbdump, mixed, stripped)


@pytest.mark.newest_ruby
def test_extension_with_debug_info(rbdump, ruby, with_debug):
    with Mixed(ruby, with_debug) as mixed:
        check_rest(rbdump, mixed, with_debug)
        answer = dump(rbdump, mixed.pid, "--native")
        lines = (HERE / "mixed.c").read_text().splitlines()
        places = [frame for thread in answer["threads"] for frame in native(thread) if frame["name"] == "mixed_calls"]
        assert places
        for frame in places:
            assert frame["path"] == str(HERE / "mixed.c")
            assert frame["module"] == str(with_debug.path)
            assert 'call("down"' in lines[frame["line"] - 1]


@pytest.mark.outer_rubies
def test_core(rbdump, ruby, stripped, tmp_path):
    with Mixed(ruby, stripped) as mixed, gcore_of(mixed.pid, tmp_path) as core:
        answer = read_core(rbdump, core, "--native=all")
        check_against_gdb(answer, gdb_stacks(ruby.path, core))
        check_places(answer, mixed.said, stripped)


def with_compressed_symbols(extension, folder):
    """The extension without debug info, with a compressed table of its symbols as some distributions leave it."""
    path = folder / "mixed.so"
    symbols, kept = folder / "symbols", folder / "kept"
    kept.write_text("\n".join(METHODS))
    for command in (
        ["objcopy", "-S", "--keep-symbols", kept, extension.path, symbols],
        ["xz", "-f", symbols],
        ["objcopy", "-S", "--add-section", f".gnu_debugdata={symbols}.xz", extension.path, path],
    ):
        subprocess.run(command, check=True, timeout=60)
    return path


@pytest.mark.newest_ruby
def test_compressed_symbols(rbdump, ruby, with_debug, tmp_path):
    path = with_compressed_symbols(with_debug, tmp_path)
    with Mixed(ruby, types.SimpleNamespace(path=path), depth=4) as mixed:
        answer = dump(rbdump, mixed.pid, "--native")
    names = [frame["name"] for thread in answer["threads"] for frame in native(thread) if frame["module"] == str(path)]
    assert set(METHODS) <= set(names)
    check_places(answer, mixed.said, with_debug)


@pytest.mark.newest_ruby
def test_inlines(rbdump, ruby, with_debug):
    """With the functions that are inlined in Ruby's file, as gdb has them."""
    with Mixed(ruby, with_debug, depth=4) as mixed:
        answer = dump(rbdump, mixed.pid, "--native", "--inlines")
        stacks = gdb_stacks("-p", mixed.pid)
        number = 0
        for thread in answer["threads"]:
            if is_suspended(thread):
                continue
            ours = [
                (int(frame["address"], 16), frame["name"].split(".")[0], frame["inlined"])
                for frame in native(thread)
                if frame["module"] == ruby.elf
            ]
            pcs = {address for address, _, _ in ours}
            assert ours == [frame for frame in stacks[thread["tid"]] if frame[0] in pcs]
            number += sum(inlined for _, _, inlined in ours)
        assert number > 10


@pytest.mark.newest_ruby
def test_sleeper_that_is_stopped(rbdump, ruby, stripped):
    """A thread that sleeps where only rbp tells the frame: its registers are needed, so it is stopped, and goes on to sleep."""
    with Mixed(ruby, stripped, depth=2) as mixed:
        mixed.tell("wait")
        waits = pathlib.Path(f"/proc/{mixed.pid}/task/{mixed.pid}/syscall")
        wait_until(lambda: waits.read_text().split()[0] == "34", "it sleeps in pause(2)")
        wait_until(lambda: dump(rbdump, mixed.pid, status=None)["pause_us"] == 0, "a thread that has woken it sleeps, too")
        answer = dump(rbdump, mixed.pid, "--native=all")
        assert answer["pause_us"] > 0
        check_against_gdb(answer, gdb_stacks("-p", mixed.pid))
        (main,) = [thread for thread in answer["threads"] if thread["main"] and not is_suspended(thread)]
        assert main["frames"][0]["name"] == stripped.names["mixed_waits"]
        assert main["frames"][1]["name"] == "Mixed.waits"
        assert waits.read_text().split()[0] == "34"
        assert is_untouched(mixed.pid)


@pytest.mark.newest_ruby
def test_last(rbdump, ruby, stripped):
    """Only what runs inside of the innermost frame of Ruby."""
    with Mixed(ruby, stripped, depth=2) as mixed:
        whole = dump(rbdump, mixed.pid, "--native")
        last = dump(rbdump, mixed.pid, "--native=last")
    for a, b in zip(whole["threads"], last["threads"], strict=True):
        inside = next(i for i, frame in enumerate(a["frames"]) if frame["kind"] != "native")
        assert inside > 0
        assert b["frames"] == a["frames"][:inside] + of_ruby(a)


@pytest.mark.newest_ruby
def test_text(rbdump, ruby, stripped):
    with Mixed(ruby, stripped, depth=1) as mixed:
        done = run(rbdump, mixed.pid, "--native=all")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if "in 'Mixed.calls' (C)" in line)
    assert re.fullmatch(r"    mixed\.so:in 'mixed\.so\+0x[0-9a-f]+' \(native\)", lines[at - 1])
    assert re.search(r"^\d+ threads, 2 suspended fibers, [1-9] native threads?, paused for", lines[1])
    assert any(re.match(r"Native thread \d+ ", line) for line in lines)


def stopped_in(ruby):
    """(function, command): where the process is stopped while it runs."""
    yield pytest.param(ruby, "rb_gc_mark", "collect", id=f"{ruby.id}-mark")
    if ruby.id == "debian":
        yield pytest.param(ruby, "deflate", "deflate", id=f"{ruby.id}-zlib")
    elif ruby.series in ((2, 7), (3, 4)):
        yield pytest.param(ruby, "gc_sweep_step", "collect", id=f"{ruby.id}-sweep")


@pytest.mark.parametrize(("stopped_ruby", "function", "command"), [one for ruby in RUBIES for one in stopped_in(ruby)])
def test_running(rbdump, stopped_ruby, function, command, stripped):
    """A process that does not rest is stopped, and all its registers are known."""
    with Mixed(stopped_ruby, stripped, depth=4) as mixed:
        stop_in(mixed.pid, function, lambda: mixed.tell(command))
        answer = dump(rbdump, mixed.pid, "--native=all")
        assert answer["pause_us"] > 0
        check_against_gdb(answer, gdb_stacks("-p", mixed.pid))
        check_places(answer, mixed.said, stripped)
        (main,) = [thread for thread in answer["threads"] if thread["main"] and not is_suspended(thread)]
        assert function in main["frames"][0]["label"]


@pytest.mark.newest_ruby
def test_jit(rbdump, ruby, stripped):
    """Code that YJIT has made is shown as such, and the stack is followed through it."""
    if "yjit" not in ruby.jits:
        note_not_applicable(f"YJIT: {ruby.id} has none")
        pytest.skip("no YJIT")
    with Mixed(ruby, stripped, *ruby.jits["yjit"]) as mixed:
        plain = dump(rbdump, mixed.pid)
        answer = dump(rbdump, mixed.pid, "--native")
        stacks = gdb_stacks("-p", mixed.pid)
    assert [of_ruby(thread) for thread in answer["threads"]] == [thread["frames"] for thread in plain["threads"]]
    check_places(answer, mixed.said, stripped)
    for thread in answer["threads"]:
        assert lost(thread) == []
        assert "unplaced" not in thread
        if is_suspended(thread):
            continue
        labels = [frame["label"] for frame in native(thread)]
        # gdb guesses what is beyond such code.
        if "[JIT]" in labels:
            inside = labels.index("[JIT]")
            expected = [pc for pc, _, inlined in stacks[thread["tid"]] if not inlined]
            assert addresses(thread)[: inside + 1] == expected[: inside + 1]
        assert native(thread)[-1]["name"] in ("_start", "clone3", "__clone3", "fiber_entry")
    assert any(frame["label"] == "[JIT]" for thread in answer["threads"] for frame in native(thread))


@pytest.mark.newest_ruby
def test_perf_map(rbdump, ruby, stripped):
    """The names of YJIT's code, from a file that only the process's user can have written."""
    if "yjit" not in ruby.jits:
        note_not_applicable(f"YJIT: {ruby.id} has none")
        pytest.skip("no YJIT")
    with Mixed(ruby, stripped, *ruby.jits["yjit"], depth=4) as mixed:
        path = pathlib.Path(f"/tmp/perf-{mixed.pid}.map")

        def jit():
            answer = dump(rbdump, mixed.pid, "--native")
            frames = [frame for thread in answer["threads"] for frame in native(thread)]
            found = [frame for frame in frames if frame["label"].startswith("[JIT]")]
            return [(frame["label"], frame["name"], int(frame["address"], 16)) for frame in found]

        try:
            assert {(label, name) for label, name, _ in jit()} == {("[JIT]", None)}
            address = jit()[0][2]
            path.write_text(f"nonsense\n{address - 16:x} 20 Some\x1b#code\nffffffffffffffff ff wraps around\n")
            path.chmod(0o644)
            assert ("[JIT] Some\x1b#code+0x10", "Some\x1b#code", address) in jit()
            text = run(rbdump, mixed.pid, "--native").stdout
            assert r"in '[JIT] Some\x1B#code+0x10' (native)" in text and "\x1b" not in text
            path.chmod(0o666)
            assert {(label, name) for label, name, _ in jit()} == {("[JIT]", None)}
            path.chmod(0o644)
            other = path.with_suffix(".other")
            path.rename(other)
            path.symlink_to(other)
            assert {(label, name) for label, name, _ in jit()} == {("[JIT]", None)}
            path.unlink()
            path.hardlink_to(other)
            assert {(label, name) for label, name, _ in jit()} == {("[JIT]", None)}
        finally:
            path.unlink(missing_ok=True)
            path.with_suffix(".other").unlink(missing_ok=True)


@pytest.mark.newest_ruby
def test_crash(rbdump, ruby, stripped, tmp_path):
    """Ruby handles a SIGSEGV on a stack of its own: the stack is followed to the function that was interrupted."""
    reason = no_kernel_cores()
    if reason:
        note_not_applicable(f"cores of the kernel: {reason}")
        pytest.skip(reason)
    with Mixed(ruby, stripped, depth=1, cwd=tmp_path) as mixed:
        subprocess.run(["prlimit", "--core=unlimited:unlimited", "--pid", str(mixed.pid)], check=True, timeout=60)
        mixed.tell("crash")
        mixed.process.communicate(timeout=60)
        (core,) = tmp_path.glob("core*")
        answer = read_core(rbdump, core, "--native")
        stacks = gdb_stacks(ruby.path, core)
        core.unlink()
    (main,) = [thread for thread in answer["threads"] if thread["main"]]
    assert lost(main) == []
    assert addresses(main) == [pc for pc, _, inlined in stacks[main["tid"]] if not inlined]
    names = [frame["name"] for frame in native(main)]
    assert names.index("__restore_rt") < names.index("rb_f_kill") < names.index("rb_ary_each")


LATE = """
void Init_late(void);
int pause(void);
static __attribute__((noinline)) void waits_here(void) { for (;;) pause(); }
void Init_late(void) { waits_here(); __asm__(""); }
"""


@pytest.mark.newest_ruby
def test_library_that_is_loaded_between_two_looks(rbdump, ruby, tmp_path):
    """Its functions have their names, as in a dump that begins later."""
    source, library = tmp_path / "late.c", tmp_path / "late.so"
    source.write_text(LATE)
    subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    program = [ruby.path, "--disable-gems", "-e", "puts 1; $stdout.flush; $stdin.gets; require ARGV[0]", str(library)]
    target = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    looks, labels = None, [""]
    try:
        target.stdout.readline()
        command = [rbdump, "-p", str(target.pid), "--native", "--json", "--watch", "0.1", "-n", "300"]
        looks = subprocess.Popen(command, stdout=subprocess.PIPE)
        looks.stdout.readline()
        target.stdin.write(b"go on\n")
        target.stdin.flush()
        while not labels[0].startswith("pause"):
            labels = [frame["label"] or "" for frame in json.loads(looks.stdout.readline())["threads"][0]["frames"]]
    finally:
        for process in filter(None, (looks, target)):
            process.kill()
            process.communicate(timeout=60)
    assert labels[1].startswith("waits_here+0x") and labels[2].startswith("Init_late+0x")


@pytest.mark.any_ruby
def test_usage(rbdump, ruby):
    for arguments, message in (
        (["--native=first"], "first is not a value of --native"),
        (["--inlines"], "--inlines can be used only with --native"),
        (["--native", "--no-stop"], "--native cannot be used with --no-stop"),
    ):
        done = run(rbdump, 1, *arguments)
        assert done.returncode == USAGE
        assert message in done.stderr
