"""gdb-scripts/: rb-locals, rb-locks, rb-print and rb-layout, with debug info and with layout files; and auto-load."""

import json
import os
import re
import zlib

import pytest
from conftest import RUBIES
from harness.core import gcore_of, settle
from harness.dump import as_text, run
from harness.programs import make
from harness.stripped import stripped_copy
from harness.target import Target
from test_gdb_scripts import SCRIPTS, commands, compare, gdb, stack_of, stacks_of
from test_locks import DEADLOCKS, LIMITED, WAITS, address, class_of

LOADED = SCRIPTS / "rbdump-gdb.py"
OFFSETS = SCRIPTS.parent / "offsets.d"
PROGRAMS = 3
ENVIRONMENT = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def attach(pid, *lines):
    return gdb("-p", pid, "-x", LOADED, *commands(*lines))


def answers(result):
    """What commands with --json have printed, one after the other."""
    assert "Traceback" not in result.stderr and "Python Exception" not in result.stderr, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith(("[{", '{"'))]


# ---- rb-locals


def values_that_differ(stacks, told):
    """How many values of variables were compared with what Ruby itself has told, and which of them are wrong."""
    count, wrong = 0, []
    for name, frames in told:
        shown = {}
        stack = next(stack for stack in stacks if stack["name"] == as_text(name))
        for frame in reversed(stack["frames"]):
            assert frame["reason"] is None
            shown.setdefault((frame["path"], frame["line"]), []).append({v["name"]: v for v in frame["locals"]})
        for path, line, variables in frames:
            frame = shown[(as_text(path), line)].pop(0)
            for variable, text, kind in variables:
                count += 1
                local = frame.get(as_text(variable))
                text, is_object = as_text(text), as_text(kind) == "object"
                if local and local["doubt"] == "nil-or-block" and text.startswith("#<Proc"):
                    continue
                if not local or local["doubt"] not in (None, "nil-or-block") or (not is_object and local["value"] != text):
                    wrong.append(f"{as_text(path)}:{line}: {as_text(variable)} is {local}, not {text}")
    return count, wrong


@pytest.mark.three_rubies
def test_locals(ruby, start, rbdump, tmp_path):
    """Each variable of programs that are made at random, as Ruby itself sees it; live and from a core."""
    script = tmp_path / "programs.rb"
    script.write_text("# encoding: utf-8\n" + make(zlib.crc32(ruby.id.encode()), PROGRAMS))
    target = start(ruby, str(script), flags=("-W0",), environment=ENVIRONMENT)
    settle(rbdump, target.pid)
    with gcore_of(target.pid, tmp_path) as core:
        (live,) = answers(attach(target.pid, "rb-locals --json all"))
        (dead,) = answers(gdb(ruby.path, core, "-x", LOADED, *commands("rb-locals --json all")))
    count, wrong = values_that_differ(live, target.ready["told"])
    assert not wrong, "\n".join(wrong[:40])
    assert count > 15 * PROGRAMS
    assert dead == live


BUSY = r"""
require File.join(Dir.pwd, "still.rb")
def busy(first)
  second = first + 1
  $busy = true
  second += 1 while true
end
def outer(argument)
  text = "outer"
  busy(argument)
end
Still.name_thread(Thread.new { outer(41) }, "busy")
Still.wait_until("the thread is busy") { $busy }
Still.watch "pop"
Still::GATE.pop
"""


@pytest.mark.newest_ruby
def test_registers(ruby, start, tmp_path):
    """What a JIT may have in a register is unknown, in the innermost frame; further out, values are in memory."""
    if not ruby.has_yjit:
        pytest.skip(f"{ruby.id} has no YJIT")
    script = tmp_path / "busy.rb"
    script.write_text(BUSY)
    target = start(ruby, str(script), flags=("--yjit", "--yjit-call-threshold=1"))
    (stacks,) = answers(attach(target.pid, "rb-locals --json all"))
    frames = next(stack for stack in stacks if stack["name"] == "busy")["frames"]
    inner, outer = ({v["name"]: (v["value"], v["doubt"]) for v in frame["locals"]} for frame in frames[:2])
    assert inner == {"first": (None, "in-register"), "second": (None, "in-register")}
    assert outer == {"argument": ("41", None), "text": ('"outer"', None)}


# ---- rb-locks


def names_of(answer, indexes):
    return sorted({answer["threads"][index]["name"] for index in indexes})


def check_wait(key, wait, answer, objects):
    """What rb-locks shows for a thread of locks.rb is as the target says."""
    kind, name, holder = WAITS[key] or (None, None, None)
    assert (wait and wait["kind"]) == kind, key
    if name:
        assert (hex(wait["object"]), wait["class"]) == (address(objects[name]), class_of(objects[name])), key
    if holder:
        assert wait["holder"]["state"] == "known", key
        assert answer["threads"][wait["holder"]["index"]]["name"] == holder, key
        assert wait["confirmed"] == (key not in LIMITED), key


def check_locks(target, answer, series):
    waits = {entry["name"]: entry["wait"] for entry in answer["threads"] if entry["fiber"] is None}
    assert [entry["problem"] for entry in answer["threads"]] == [None] * len(answer["threads"])
    names = [as_text(subject["key"]) for subject in target.ready["threads"]]
    names = [name for name in names if name in WAITS]
    assert len(names) > 20
    for name in names:
        check_wait(name, waits[name], answer, target.ready["objects"])
    assert (waits["full"]["length"], waits["full"]["max"], waits["empty 0"]["length"]) == (3, 3, 0)
    assert (waits["sleep holder"]["seconds"], waits["child"]["child"]) == (3600.5, target.ready["child"])
    held = [held for entry in answer["threads"] if entry["name"] == "sleep holder" for held in entry["holds"]]
    assert [hex(one["object"]) for one in held] == [address(target.ready["objects"]["sleep"])]
    expected = [deadlock for deadlock in DEADLOCKS if deadlock[0] in names] + [["fibers 0", "fibers 1"]]
    if series >= (3, 0):
        # A Ruby without a list of its fibers does not tell that one has ended, once the collector has freed it.
        state = waits["ended waiter"]["holder"]["state"]
        assert state == "ended" or (state == "unknown" and series < (3, 3))
        expected += [["ended waiter"]] if state == "ended" else []
    assert sorted(names_of(answer, deadlock) for deadlock in answer["deadlocks"]) == sorted(expected)


@pytest.mark.target("locks.rb")
def test_locks(ruby, start):
    """What each thread waits for, who holds it, and all deadlocks; as the target says. Debian's Ruby has no debug info."""
    target = start(ruby, "locks.rb")
    result = attach(target.pid, "rb-locks --json", "rb-locks", "rb-layout")
    (answer,) = answers(result)
    check_locks(target, answer, ruby.series)
    # Deadlocks come first.
    text = result.stdout[result.stdout.index("\nDeadlock of ") :]
    assert text.index("\nthread ") > text.rindex("\nDeadlock")
    assert text.count("\nDeadlock") == len(answer["deadlocks"])
    waits = r'thread 0x[0-9a-f]+ "two 0" waits to lock Thread::Mutex {}, held by thread 0x[0-9a-f]+ "two 1"'
    assert re.search(waits.format(address(target.ready["objects"]["two 1"])), text)
    assert ("from the layout " if ruby.id == "debian" else "from this Ruby's debug info") in result.stdout


# ---- rb-layout: Rubies without debug info


@pytest.mark.outer_rubies
def test_stripped(ruby, tmp_path):
    """By the layout for its version, a Ruby without any symbol of its own shows what Ruby tells."""
    if ruby.id == "debian":
        pytest.skip("its stripped libruby is used by the other tests")
    with stripped_copy(ruby, tmp_path) as stripped:
        target = Target(stripped.ruby.path, "locks.rb", environment=stripped.environment)
        try:
            result = attach(target.pid, "rb-layout", "rb-bt --json", "rb-locks --json", "rb-print 5", "rb-locals here")
            stacks, locks = answers(result)
            compare(target, stacks)
            check_locks(target, locks, ruby.series)
            assert "from the layout " in result.stdout
        finally:
            target.close()


@pytest.mark.parametrize("debian", [ruby for ruby in RUBIES if ruby.id == "debian"], ids=lambda ruby: ruby.id)
def test_folders(debian, start, tmp_path, monkeypatch):
    """A layout of the user's folder comes first, unless other users can write to this folder."""
    shipped = OFFSETS / f"{debian.version}-x86_64.layout"
    if not shipped.exists():
        pytest.skip(f"no layout file is named after {debian.version}")
    (tmp_path / "mine.layout").write_text(shipped.read_text())
    target = start(debian, "blocks.rb")
    monkeypatch.setenv("RBDUMP_OFFSETS_D", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    used = []
    for mode in (0o755, 0o777):
        tmp_path.chmod(mode)
        used += re.findall("from the layout (.*)", attach(target.pid, "rb-layout").stdout)
    assert used == ["mine.layout", shipped.name]


@pytest.mark.newest_ruby
def test_given_layout(ruby, start, rbdump, tmp_path):
    """A layout that the user gives is used in the place of gdb's types, and shows the same; and auto goes back."""
    file = tmp_path / "given.layout"
    assert run(rbdump, "layout", ruby.elf, "-o", file).returncode == 0
    target = start(ruby, "locks.rb")
    result = attach(target.pid, "rb-bt --json", f"rb-layout {file}", "rb-bt --json", "rb-locks --json", "rb-layout auto")
    own, given, locks = answers(result)
    assert own == given
    check_locks(target, locks, ruby.series)
    told = [line for line in result.stdout.splitlines() if line.startswith("rb-layout: ")]
    assert [line.endswith("from the layout given.layout") for line in told] == [True, False]


# ---- rb-print

VALUES = r"""
require File.join(Dir.pwd, "still.rb")
Point = Struct.new(:x, :y)
class Box
  def initialize; @one = 1; @two = ["\u00e9\n", :sym, 2.5, nil]; end
  def inspect; %(#<Box @one=1, @two=["\u00e9\\n", :sym, 2.5, nil]>); end # which rb-print does not call
end
VALUES = [
  2**70, -(2**64), 1e-320, "a\"\e\u00e9\x00\x7f", "b\xff".b, :"a b", Point.new(1, nil), (1...),
  { a: 1, "b" => [2.5, { 3 => true }] },
  (1..20).to_h { |i| [i, i.to_s] }, [[], {}, [false]], 3r / 4, Complex(1, -2.5),
  Box.new, Comparable, Class.new(Box), (1..9).to_a, ArgumentError.new("bad thing"), ArgumentError.new(%q(a "#{b}" \\ "c\\")), [IOError.new("\u00e9")]
]
SHOWN = VALUES.map { |v| v.is_a?(Class) ? "#<anonymous subclass of Box>" : v.inspect.encode("UTF-8") }
TELL = Kernel.instance_method(:to_s)
Still.extra["values"] = VALUES.zip(SHOWN).map { |value, shown| [TELL.bind(value).call, shown] }
Still.watch "pop"
Still::GATE.pop
"""


@pytest.fixture
def values(ruby, start, tmp_path):
    """A target, and pairs of the address of an object and its text as Ruby writes it."""
    script = tmp_path / "values.rb"
    script.write_text("# encoding: utf-8\n" + VALUES)
    target = start(ruby, str(script), flags=("-W0",), environment=ENVIRONMENT)
    pairs = [(as_text(value), as_text(shown)) for value, shown in target.ready["values"]]
    return target, [(re.search(r"0x0*([0-9a-f]+)", value)[1], shown) for value, shown in pairs]


def test_print(ruby, values):
    """Objects of all kinds are shown as their own inspect shows them. The number of an immediate value is decoded."""
    target, pairs = values
    immediate = {"7": "3", "-7": "-4", "0x14": "true", "0": "false"}
    lines = [*(f"rb-print 0x{value}" for value, _ in pairs), *(f"rb-print {value}" for value in immediate)]
    result = attach(target.pid, "python print('begin')", *lines)
    shown = result.stdout.split("begin\n", 1)[1].splitlines()[: len(lines)]
    assert shown == [*(text for _, text in pairs), *immediate.values()], result.stderr


@pytest.mark.newest_ruby
def test_damaged(ruby, values):
    """What contradicts itself is marked, and costs neither time nor memory; the rest is shown as before."""
    target, pairs = values
    by_text = {text: f"0x{value}" for value, text in pairs}
    array, table = by_text["[1, 2, 3, 4, 5, 6, 7, 8, 9]"], next(at for text, at in by_text.items() if "20 => " in text)
    st_table = f"((struct st_table *) ({table} + sizeof(struct RHash)))"
    fraction, klass = by_text["(3/4)"], by_text["#<anonymous subclass of Box>"]
    result = attach(
        target.pid,
        f"set var ((struct RRational *) {fraction})->num = {fraction}",
        f"rb-print {fraction}",
        f"set var ((struct RClass *) {klass})->super = {klass}",
        f"rb-print {klass}",
        f"set var ((struct RArray *) {array})->as.heap.len = 1 << 30",
        f"rb-print {array}",
        f"set var ((struct RArray *) {array})->as.heap.ptr = (void *) 16",
        f"rb-print {array}",
        f"set var {st_table}->entries_bound = -1",
        f"rb-print {table}",
        f"set var ((struct RBasic *) {table})->klass = 0",
        f"rb-print {table}",
        # The list of threads becomes a ring that does not contain its head.
        "set var $thread = ruby_current_vm_ptr->ractor.main_thread",
        "set var $thread->lt_node.next = &$thread->lt_node",
        "rb-locks --json",
    )
    (locks,) = [json.loads(line) for line in result.stdout.splitlines() if line.startswith('{"deadlocks"')]
    assert sum(entry["fiber"] is None for entry in locks["threads"]) == 1 and "does not end" in result.stderr
    shown = [line for line in result.stdout.splitlines() if line.startswith(("[1, 2", "[(", "{(", "(", "#<"))]
    assert shown.pop(0) == "((unreadable)/4)"
    assert shown[0].startswith(4 * "#<anonymous subclass of ") and len(shown.pop(0)) < 300
    assert shown[0].startswith("[1, 2, 3, 4, 5, 6, 7, 8, 9, ") and len(shown[0]) < 2000
    assert shown[1:4] == ["[(unreadable)]", "{(unreadable)}", "(unreadable)"], result.stdout
    assert "Traceback" not in result.stderr


# ---- errors, help and auto-load


@pytest.mark.newest_ruby
def test_refusals(ruby, start, tmp_path):
    """Each mistake gets one sentence."""
    (tmp_path / "bad").write_text("rbdump-layout 1\narch x86_64\nend 7\n")
    (tmp_path / "long").write_text("x" * (2 << 20))
    (tmp_path / "odd").write_text("rbdump-layout 1\narch x86_64\nmember RArray.x -1 8\nend 1\n")
    (tmp_path / "empty.layout").write_text("rbdump-layout 1\narch x86_64\nend 0\n")
    mistakes = {
        f"rb-layout {tmp_path}/none": "No such file or directory",
        f"rb-layout {tmp_path}/bad": "it is cut short",
        f"rb-layout {tmp_path}/long": "it is too long for a layout file",
        f"rb-layout {tmp_path}/odd": "the position of RArray.x is not valid",
        f"rb-layout {tmp_path}": "Is a directory",
        "rb-print": "Usage: rb-print VALUE",
        "rb-print no_such_name": "no_such_name",
        "rb-print 0x10000": "cannot read memory at 0x10000",
        "rb-print ruby_sysinit(0, 0)": "function",  # gdb may not call it
        "rb-locals --frame": "Usage: rb-locals",
        "rb-locals --frame 1000": "The stack has only",
        "rb-locals 12345": "rb-threads",
        "rb-locks all": "Usage: rb-locks",
        "rb-threads all": "Usage: rb-threads",
        f"rb-layout {tmp_path}/empty.layout": "the VM does not fit the layout empty.layout",
    }
    target = start(ruby, "blocks.rb")
    result = attach(target.pid, "python import sys; sys.stderr.write('begin\\n')", *mistakes)
    sentences = result.stderr.split("begin\n", 1)[1].splitlines()
    assert len(sentences) == len(mistakes), sentences
    for (mistake, told), sentence in zip(mistakes.items(), sentences):
        assert told in sentence, mistake


@pytest.mark.any_ruby
def test_auto_load(ruby, tmp_path):
    """A link in gdb's folder for scripts is enough: gdb then knows the commands for this Ruby, with their help."""
    folder = tmp_path / "auto-load"
    link = folder / os.path.realpath(ruby.path).lstrip("/")
    link.parent.mkdir(parents=True)
    link.with_name(link.name + "-gdb.py").symlink_to(LOADED)
    names = ["rb-bt", "rb-threads", "rb-locals", "rb-locks", "rb-print", "rb-layout", "rb-frame", "rb-str", "rb-iseq"]
    settings = ["-iex", f"set auto-load scripts-directory {folder}", "-iex", f"set auto-load safe-path {folder}"]
    helps = commands(*(f"help {name}" for name in names), "rb-locks")
    result = gdb(*settings, os.path.realpath(ruby.path), *helps)
    for name in names:
        assert re.search(rf": {name}\b", result.stdout), result.stdout + result.stderr
    assert "There is no process and no core" in result.stderr
