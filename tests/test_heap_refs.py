"""rbdump heap: the references between objects, against what Ruby's own collector marks, and what is made of them."""

import gzip
import json
import re
import subprocess

import pytest
from conftest import note_not_applicable
from harness.core import gcore_of
from harness.dump import run
from harness.heap import Objects, build, has_constants, heap, leaking, written
from harness.process import is_untouched

FAILED, USAGE = 2, 64
# On a busy machine, a reading can take longer than the default allows.
STOPPED = ("--stop", "--max-pause", "4000")

# T_DATA of which rbdump finds other references than the C code marks. They keep them in memory that only that code knows, or
# have words that are no references.
DIFFERENT_DATA = {
    "ractor", "autoload_const", "autoload_data", "generator", "method", "random/MT",
    "DATA", "VM/pin_array_list", "marshal_compat_table", "autoload_i", "VM/managed_id_table",
    "VM/shape_tree", "ractor/port",
}  # fmt: skip

# T_DATA of which rbdump knows how much memory they own: as much as Ruby says.
SIZED_DATA = {
    "proc", "binding", "mutex", "queue", "Thread::Queue", "sized_queue", "Thread::SizedQueue", "VM/thread", "autoload", "autoload_table",
}  # fmt: skip

# T_DATA of unusual forms whose references are all known.
EXACT_DATA = SIZED_DATA | {"fiber", "T_IMEMO/iseq", "condvar", "memory_view/exported_object_registry", "VM/cc_table"}

# T_DATA whose types tell where the references are, since 3.3 (RUBY_TYPED_DECL_MARKING).
DECLARED_DATA = {"dir", "enumerator"}

# T_DATA of which rbdump finds all references, and perhaps others: words that are left over from earlier uses of the memory.
NOT_FEWER_DATA = {"backtrace", "frame_info", "set", "producer", "IO::Buffer"}

# Up to 2.4, no layout has the tables of methods, nor those of constants in 2.3 and 2.4.
OLD_CLASSES = {"CLASS", "MODULE", "ICLASS"}

# T_DATA whose references rbdump knows for later Rubies only; up to 2.2, code is one, and environments up to 2.3.
OLD_DATA = {"VM/thread", "fiber", "binding", "T_IMEMO/iseq", "proc", "VM/env", "VM", "iseq", "backtrace"}

# Ruby does not look at the native stack of the thread that asks. Only rbdump finds what is on it: as references of the Thread,
# or of the Fiber that it runs.
ASKS = ("VM/thread", "fiber")


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return build(tmp_path_factory.mktemp("extension"))


def kind(one):
    return one.get("imemo_type") or one.get("struct") or one["type"]


def cached(more, objects):
    """Since 4.0, an execution context has the last object whose instance variables were elsewhere, and these. Ruby does not mark them."""
    fields = {ref for ref in more if objects[ref].get("imemo_type") == "fields"}
    return fields | {ref for ref in more if fields & {int(to, 16) for to in objects[ref].get("references", ())}}


def differences(objects, truth):
    """The kinds of objects whose references are not those that Ruby marks, each with an example."""
    found, asked = {}, []
    for one in truth.objects:
        mine = objects[one.address]
        klass = int(mine.get("class", "0"), 16)
        refs = {int(ref, 16) for ref in mine.get("references", ())} - {klass}
        marked = set(truth.references[one.address]) - {klass}
        if kind(mine) in ASKS:
            refs -= cached(refs - marked, objects)
        if kind(mine) in ASKS and refs > marked:
            asked.append(kind(mine))
        elif mine["type"] in OLD_CLASSES and truth.series < (2, 5):
            assert refs <= marked, mine
        elif kind(mine) in NOT_FEWER_DATA and truth.series >= (2, 5):
            assert refs >= marked, mine
        elif refs != marked:
            found[(mine["type"], kind(mine))] = (hex(one.address), [*map(hex, marked - refs)], [*map(hex, refs - marked)])
    assert len(asked) == len(set(asked)), asked
    return found


def is_size_told(mine, one, truth):
    """
    Whether both Ruby and rbdump know the size of an object. Up to 2.4, Ruby counts nothing for a T_IMEMO, and tells how many
    share an internal Array instead of how long it is; rbdump does not know the sizes of T_NODE, of classes and, up to 2.3, of
    Procs; up to 2.1, not those of Strings whose encoding has no fixed number. If a Ruby has other JIT compilers than that of
    which rbdump has the layout, its struct of code has another size.
    """
    series = truth.series
    if kind(mine) == "iseq" and "memsize" not in mine and series >= (3, 1) and not truth.has_debug:
        note_not_applicable("the sizes of code on a Ruby without debug info: the layout is of a build with other JIT compilers")
        return False
    if series >= (2, 5):
        return True
    note_not_applicable("the sizes of T_IMEMO, T_NODE, classes and shared arrays on Ruby up to 2.4: rbdump or Ruby does not tell them")
    if one.type in ("T_IMEMO", "T_NODE") or (one.type == "T_ARRAY" and not one.klass):
        return False
    unknown = {"T_CLASS", "T_MODULE", "T_ICLASS"} | ({"T_STRING"} if series < (2, 2) else set())
    return "memsize" in mine or not (one.type in unknown or (kind(mine) == "proc" and series < (2, 4)))


def check_size(mine, one, truth):
    """That the size is what Ruby says, if rbdump knows it."""
    if not is_size_told(mine, one, truth):
        return
    if one.type != "T_DATA" or kind(mine) in SIZED_DATA or "memsize" in mine:
        assert mine["memsize"] == one.size, mine


def check(objects, truth):
    assert set(objects) == {one.address for one in truth.objects}
    for one in truth.objects:
        assert f"T_{objects[one.address]['type']}" == one.type
        assert objects[one.address]["slot_size"] == one.slot_size
        check_size(objects[one.address], one, truth)
    found = differences(objects, truth)
    assert {key: value for key, value in found.items() if key[0] != "DATA"} == {}
    assert {name for _, name in found} <= DIFFERENT_DATA | (OLD_DATA if truth.series < (2, 5) else set()), found


def test_references(ruby, rbdump, extension):
    with Objects(ruby, extension, references=True) as truth:
        done = run(rbdump, "heap", "-f", "objspace", truth.pid)
    assert done.returncode == 0, done.stderr
    assert "The process ran while its heap was read" in done.stderr
    check(written(done.stdout.splitlines()), truth)


@pytest.mark.three_rubies
def test_references_of_stopped(ruby, rbdump, extension, tmp_path):
    """With --stop, the objects are of one moment; and what takes too long is refused."""
    file = tmp_path / "heap.json.zst"
    with Objects(ruby, extension, references=True) as truth:
        done = run(rbdump, "heap", "-f", "objspace", *STOPPED, "-o", file, truth.pid)
        late = run(rbdump, "heap", "-f", "objspace", "--stop", "--max-pause", 1, truth.pid)
        assert is_untouched(truth.pid)
    assert (done.returncode, done.stdout) == (0, "") and " ran while " not in done.stderr, done.stderr
    lines = subprocess.run(["zstd", "-dc", file], check=True, capture_output=True, text=True, timeout=60).stdout
    check(written(lines.splitlines()), truth)
    assert (late.returncode, late.stdout) == (FAILED, "")
    assert re.search(r"process \d+ (would be|was) stopped for .* ms, which is more than the permitted 1 ms;", late.stderr), late.stderr


@pytest.mark.three_rubies
def test_references_of_core(ruby, rbdump, extension, tmp_path):
    file = tmp_path / "heap.json.gz"
    with Objects(ruby, extension, references=True) as truth, gcore_of(truth.pid, tmp_path) as core:
        done = run(rbdump, "heap", "-f", "objspace", "-o", file, "--core", core)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    with gzip.open(file, "rt") as lines:
        check(written(lines), truth)


def test_forms(ruby, rbdump, extension):
    """The references of objects of less usual forms. Those of most T_DATA only C code knows."""
    with Objects(ruby, extension, script="forms.rb", references=True) as truth:
        done = run(rbdump, "heap", "-f", "objspace", truth.pid)
        assert done.returncode == 0, done.stderr
    objects = written(done.stdout.splitlines())
    assert set(objects) == {one.address for one in truth.objects}
    seen = {kind(objects[one.address]) for one in truth.objects if one.type == "T_DATA"}
    assert seen >= {"proc", "binding", "mutex", "VM/thread", "fiber", "backtrace"}
    exact = EXACT_DATA | (DECLARED_DATA if ruby.series >= (3, 3) else set())
    if ruby.series >= (2, 5):
        assert seen >= {"T_IMEMO/iseq", "condvar"} and len(seen & SIZED_DATA) > 6
    else:
        note_not_applicable(f"all references of code, Threads, Fibers and Bindings on {ruby.id}: they have other structs up to 2.4")
        exact -= OLD_DATA
    assert seen >= DECLARED_DATA
    assert {key: value for key, value in differences(objects, truth).items() if key[0] != "DATA" or key[1] in exact} == {}
    for one in truth.objects:
        if kind(objects[one.address]) in SIZED_DATA:
            check_size(objects[one.address], one, truth)


# The class of what leaks, and what the path to it is made of, from the root on.
LEAKS = {
    "InCache": ["class Store", "@cache → Hash (2000 entries)", "InCache"],
    "InThread": ["fiber-local variable pending of thread 2", "Array (2000 entries)", "InThread"],
    "InClosure": ["class Events", "constant HANDLERS → Array (2000 entries)", "Proc", "imemo_env", "InClosure"],
    "InExtension": ["C variable held of truth.so → Array (2001 entries)", "InExtension"],
}


def leaks_of(ruby):
    """The leaks that rbdump finds a path to. Up to 2.2, the variables of a block are in another object."""
    leaks = dict(LEAKS)
    if not has_constants(ruby):
        del leaks["InCache"], leaks["InClosure"]
    elif ruby.series < (2, 3):
        leaks["InClosure"] = ["RubyVM::Env" if part == "imemo_env" else part for part in leaks["InClosure"]]
    return leaks


def test_leaks(ruby, rbdump, extension, tmp_path):
    """Two commands name what leaks, and what keeps it."""
    with leaking(ruby, extension, rbdump, tmp_path) as (program, before):
        grown = json.loads(run(rbdump, "heap", "--json", "--diff", before, program.pid).stdout)
        why = {name: run(rbdump, "heap", "--why", name, program.pid) for name in (*LEAKS, "String")}
        dominators = run(rbdump, "heap", "--dominators", program.pid)
    rows = {row["class"]: row["objects"] - row["before"]["objects"] for row in grown["classes"]}
    first = [row["class"] for row in grown["classes"][:12]]
    for name, path in leaks_of(ruby).items():
        assert why[name].returncode == 0, why[name].stderr
        assert rows[name] == 2_000 and name in first
        assert f"2,000 objects of {name}; paths lead from the known roots to all of them" in why[name].stdout
        tree = [line for line in why[name].stdout.splitlines() if re.match(r" +2,000 100\.0% ", line)]
        at = 0
        for part in path:
            while part not in tree[at]:
                at += 1
        assert "(perhaps)" not in why[name].stdout or (name == "InClosure" and ruby.series < (2, 3))
    # The names of instance variables.
    if ruby.series >= (2, 2):
        row = re.search(r"^ +([\d,]+) +\S+% +1  symbol table → ", why["String"].stdout, re.M)
    else:
        note_not_applicable(f"one object that keeps all names on {ruby.id}: up to 2.1, a table outside the heap keeps them")
        row = re.search(r"^ +([\d,]+) +\S+% +[\d,]+  String$", why["String"].stdout, re.M)
    assert int(row[1].replace(",", "")) > 2_000
    assert dominators.returncode == 0
    # What each leak's holder keeps alive; its own label depends on what else refers to it, for example an old stack.
    lines = dominators.stdout.splitlines()
    for name in ("InCache", "InThread", "InExtension"):
        at = next(i for i, line in enumerate(lines) if re.search(rf" 2,000 +{name}$", line))
        size, unit, _, count = lines[at - 1].split()[:4]
        assert unit == "KiB" and float(size) > 2_000 * 40 / 1024 and count == "1"
        assert re.search(r"(Hash|Array) \(200[01] entries\) 0x[0-9a-f]+$", lines[at - 1])


def steps_of(path):
    """The lines of a path."""
    return [line for line in path.stdout.splitlines() if line.startswith("  ")]


# What a person sees of keys and of the variables of a block.
KEYS = """
require "set"
class Kept
end
captured = Kept.new
BLOCK = -> { captured }
Item = Struct.new(:next)
LIST = 5_000.times.inject(nil) { |list, _| Item.new(list) }
KEYS = { true => Kept.new, nil => Kept.new, 1.5 => Kept.new, -2.0 => Kept.new, 3 => Kept.new, name: Kept.new }
OnStack = Class.new
THREAD = Thread.new { on_stack = OnStack.new; Thread.stop; on_stack }
Thread.pass until THREAD.stop?
OfFiber = Class.new
# Up to 2.6, a class made so has its name only once somebody has asked.
[Item, OnStack, OfFiber].each(&:name)
FIBER = Fiber.new { of_fiber = OfFiber.new; Fiber.yield; of_fiber }
FIBER.resume
OfSet = Class.new
SET = Set.new((1..20).map { OfSet.new })
$stdout.sync = true
puts "ready"
sleep
"""


@pytest.mark.three_rubies
def test_names(ruby, rbdump):
    """What a reference is called."""
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", KEYS], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            why = run(rbdump, "heap", "--why", "Kept", program.pid)
            items = run(rbdump, "heap", "--why", "Item", program.pid)
            stacks = [run(rbdump, "heap", "--why", name, program.pid).stdout for name in ("OnStack", "OfFiber", "OfSet")]
        finally:
            program.kill()
    assert why.returncode == 0, why.stderr
    if not has_constants(ruby):
        return
    for key in ("true", "nil", "1.5", "-2.0", "3", ":name"):
        assert f" [{key}] → Kept 0x" in why.stdout, why.stdout
    if ruby.series >= (2, 4):
        assert " local variable captured → Kept 0x" in why.stdout, why.stdout
    else:
        note_not_applicable(f"the names of variables of blocks on {ruby.id}: their objects have another form up to 2.3")
        assert " of its memory (perhaps) → Kept 0x" in why.stdout, why.stdout
    # Not what leads to the Thread, although it leads to the stack, too.
    if ruby.series >= (2, 4):
        assert re.search(r" 100\.0% +1  local variable on_stack of block in <main> at -e:\d+ in thread 2 → OnStack 0x", stacks[0]), stacks
    else:
        assert re.search(r" 100\.0% +1  .* in thread 2 → OnStack 0x", stacks[0]), stacks
    assert re.search(r"constant FIBER → Fiber 0x\S+\n.* its stack → OfFiber 0x", stacks[1]), stacks
    # A Set, which is an object with a Hash, or since 4.0 a T_DATA whose elements are found conservatively.
    assert "20 objects of OfSet; paths lead from the known roots to all of them" in stacks[2], stacks[2]
    assert re.search(r"constant SET → Set 0x\S+\n(?:.* @hash → Hash .*\n)?.* key(?: \(perhaps\))? → OfSet 0x", stacks[2]), stacks[2]
    # A linked list has a few rows only.
    assert len(items.stdout.splitlines()) < 12, items.stdout
    more = re.search(r"^ +… ([\d,]+) more, each kept by the one before$", items.stdout, re.M)
    assert 4_000 < int(more[1].replace(",", "")) <= 5_000


@pytest.mark.three_rubies
def test_path(ruby, rbdump, extension, tmp_path):
    """The path to one object, and the object itself, which has the path's last step as the only one that refers to it."""
    with leaking(ruby, extension, rbdump, tmp_path) as (program, _):
        objects = written(run(rbdump, "heap", "-f", "objspace", program.pid).stdout.splitlines())
        klass = next(address for address, one in objects.items() if one.get("name") == "InThread")
        address = next(address for address, one in objects.items() if int(one.get("class", "0"), 16) == klass)
        path = run(rbdump, "heap", "--why", hex(address), program.pid)
        one = run(rbdump, "object", program.pid, hex(address))
        array = run(rbdump, "object", program.pid, steps_of(path)[0].split()[-1])
        stopped = run(rbdump, "heap", "--why", "InThread", "--stop", "--max-pause", 4000, program.pid)
        no_object = run(rbdump, "object", program.pid, hex(address + 8))
        no_class = run(rbdump, "heap", "--why", "InNothing", program.pid)
    steps = steps_of(path)
    assert path.returncode == 0 and len(steps) == 2, path.stdout
    assert re.fullmatch(r"  fiber-local variable pending of thread 2 → Array \(2000 entries\) (0x[0-9a-f]+)", steps[0])
    assert re.fullmatch(rf"  \[\d+\] → InThread {address:#x}", steps[1])
    holder = steps[0].split()[-1]
    assert one.stdout.startswith(f"InThread {address:#x}\n  T_OBJECT in a slot of ")
    assert re.search(rf"\nRefers to 1 object:\n  class → class InThread {klass:#x}\n", one.stdout)
    assert re.search(rf"\nReferred to by 1 object:\n  Array \(2000 entries\) {holder}, \[\d+\]\n\nReferred to by \d+ roots?", one.stdout)
    assert "\n  fiber-local variable pending of thread 2\n" in array.stdout.rpartition("\nReferred to by ")[2], array.stdout
    assert "2,000 objects of InThread" in stopped.stdout and " ran while " not in stopped.stdout, stopped.stderr
    for failed in (no_object, no_class):
        assert (failed.returncode, failed.stdout) == (FAILED, "")
        assert (failed.returncode, failed.stderr.count("there is no ")) == (FAILED, 1)


# An Array and a Hash of more memory than rbdump copies at once, and a list of more objects than a path has lines.
LARGE = r"""
%w[InArray InHash InList].each { |name| Object.const_set(name, Class.new) }
ELEMENTS = Array.new(18_000_000)
ELEMENTS[-1] = InArray.new
TABLE = {}
6_000_000.times { |key| TABLE[key] = nil }
TABLE[:last] = InHash.new
class Link
  def initialize(following)
    @following = following
  end
end
last = InList.new
LIST = (1..3_000).inject(last) { |following, _| Link.new(following) }
require "objspace"
address = ObjectSpace.dump(last)[/0x\h+/]
last = nil
GC.start
$stdout.write("ready #{address}\n")
$stdout.flush
sleep
"""


@pytest.mark.any_ruby
def test_large(ruby, rbdump):
    """The last object of a large Array, of a large Hash, and of a long list."""
    if not has_constants(ruby):
        return
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", LARGE], stdout=subprocess.PIPE) as program:
        try:
            ready, address = program.stdout.readline().split()
            assert ready == b"ready"
            why = {name: run(rbdump, "heap", "--why", name, program.pid) for name in ("InArray", "InHash", "InList")}
            path = run(rbdump, "heap", "--why", address.decode(), program.pid)
        finally:
            program.kill()
    for name, done in why.items():
        assert f"1 object of {name}; paths lead from the known roots to it\n" in done.stdout
    assert re.search(r"constant ELEMENTS → Array \(18000000 entries\) ", why["InArray"].stdout)
    assert re.search(r" \[17999999\] → InArray ", why["InArray"].stdout)
    assert re.search(r" \[:last\] → InHash ", why["InHash"].stdout)
    steps = steps_of(path)
    assert len(steps) == 1001, path.stdout
    # The root and the class Object; the end of the list is the last.
    assert "→ class Object 0x" in steps[0] and re.match("  constant LIST → Link 0x", steps[1])
    assert steps[500] == "  … 2,002 objects that are not printed …"
    assert re.fullmatch(rf"  @following → InList {int(address, 16):#x}", steps[-1])


# What only a block of at_exit keeps. The stacks of the thread that has made it are gone.
NO_PATH = """
class InBlock
end
def keep
  object = InBlock.new
  at_exit { object }
end
Thread.new { keep; nil }.join
GC.start
$stdout.write("ready\\n")
$stdout.flush
sleep
"""


@pytest.mark.any_ruby
def test_no_path(ruby, rbdump):
    """Where no path is found, the reasons are told why there can be one."""
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", NO_PATH], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            why = run(rbdump, "heap", "--why", "InBlock", program.pid)
            objects = written(run(rbdump, "heap", "-f", "objspace", program.pid).stdout.splitlines())
            klass = next(address for address, one in objects.items() if one.get("name") == "InBlock")
            address = next(address for address, one in objects.items() if int(one.get("class", "0"), 16) == klass)
            path = run(rbdump, "heap", "--why", hex(address), program.pid)
        finally:
            program.kill()
    assert "1 object of InBlock; paths lead from the known roots to all except 1, which may be garbage\n" in why.stdout
    assert "No path from a known root leads to the object. It may be garbage.\n" in path.stdout
    for done in (why, path):
        assert "rbdump does not look for the blocks of at_exit and trace_var.\n" in done.stdout
        assert re.search(r"^\d+ objects may have more references than rbdump finds; most are T_DATA", done.stdout, re.M)


# Names that could control a terminal.
CONTROLS = r"""
NAMES = ["A\u009b2J", "B\u202ec", "Ünïcode", "C\u2028"]
NAMES.each { |name| Object.const_set(name, Class.new) }
LONG = ["x" * (40 << 20), "y" * 70_000]
KEPT = [Object.const_get(NAMES[0]).new, "quote \" \\ and \e[2J"]
GC.start
$stdout.write("ready\n")
$stdout.flush
sleep
"""


@pytest.mark.any_ruby
@pytest.mark.since((2, 6), "names of constants that do not begin with an ASCII letter")
def test_controls(ruby, rbdump):
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", CONTROLS], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            dump = run(rbdump, "heap", "-f", "objspace", program.pid).stdout
            tree = run(rbdump, "heap", "--dominators", program.pid).stdout
            others = [
                run(rbdump, "heap", *arguments, program.pid).stdout
                for arguments in (("--dominators", "--json"), ("--paths", "--all"), ("--paths", "--json"), ("-f", "collapsed"),
                                  ("--dominators", "-f", "collapsed"), ("-f", "flamegraph"), ("--dominators", "-f", "flamegraph"))
            ]  # fmt: skip
        finally:
            program.kill()
    objects = written(dump.splitlines()).values()
    assert {one.get("name") for one in objects} >= {"A\x9b2J", "B\u202ec", "Ünïcode", "C\u2028"}
    assert "quote \" \\ and \x1b[2J" in {one.get("value") for one in objects}
    # Of long Strings, the length is written, and up to 1 MiB the bytes.
    assert 40 << 20 in {one.get("bytesize") for one in objects}
    assert "y" * 70_000 in {one.get("value") for one in objects}
    for output in (dump, tree, *others):
        assert not set(output.replace("\n", "")) & {*map(chr, range(32)), *map(chr, range(127, 160)), "\u2028", "\u202e"}
    assert "Ünïcode" in dump


@pytest.mark.any_ruby
def test_refusals(rbdump, ruby):
    for arguments in ((1,), ("0x1000",), (1, 2), (1, "0x12g"), (1, 2, "0x1000"), (1, "0x0")):
        wrong = run(rbdump, "object", *arguments)
        assert (wrong.returncode, wrong.stdout) == (USAGE, ""), arguments
    for arguments in (("-f", "x"), ("-o", "x"), ("--why", "x", "--dominators"), ("--why", "x", "--diff", "x"), ("--why", "0x12g"), ("--why", ""), 
                      ("-f", "objspace", "--json"), ("--why", "0x1000", "--top", 3), ("--depth", 3), ("--dominators", "--depth", 0), ("--dominators", "--top", 3, "--json")):
        wrong = run(rbdump, "heap", 1, *arguments)
        assert (wrong.returncode, wrong.stdout) == (USAGE, ""), arguments
