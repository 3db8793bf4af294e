"""`--locals`, `--self`: each variable of programs that are made at random, as Ruby itself sees it; live and from a core."""

import json
import os
import pathlib
import subprocess
import zlib

import pytest
from conftest import note_not_applicable
from harness.core import gcore_of, settle
from harness.dump import as_text, run
from harness.process import wait_until
from harness.programs import make
from harness.rubies import JIT_NAMES

PROGRAMS, PROGRAMS_OF_SOAK = 12, 60
ENVIRONMENT = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def rows(answer, name):
    """{ (path, line): [{ name: variable }] } of the frames of a thread, outermost first."""
    thread = next(thread for thread in answer["threads"] if thread["name"] == name)
    assert thread["verdict"] == "complete"
    frames = [frame for frame in thread["frames"] if frame["kind"] == "ruby"]
    assert all(frame["locals_missing"] is None for frame in frames)
    found = {}
    for frame in reversed(frames):
        found.setdefault((frame["path"], frame["line"]), []).append({local["name"]: local for local in frame["locals"]})
    return found


def differs(local, text, kind):
    """What is wrong with a variable; None if it is right, or says that it may not be."""
    if local is None:
        return "is missing"
    # A block parameter that was not used yet; or, perhaps, another variable.
    if local["doubt"] == "or-block" and (text == "nil" or text.startswith("#<Proc")):
        return None
    # Nothing runs, so what is read later is the same.
    if local["doubt"] not in (None, "later", "or-block"):
        return f"is {local['doubt']}"
    if kind != "object" and (local["value"], local["kind"]) != (text, kind):
        return f"is {local['value']} ({local['kind']}), not {text} ({kind})"
    return None if local["kind"] == kind else f"is of kind {local['kind']}, not {kind}"


def compare(answer, told):
    """Compares all that the programs have told. Gives how many values were compared, and what was wrong."""
    count, wrong = 0, []
    for name, frames in told:
        shown = rows(answer, as_text(name))
        for path, line, variables in frames:
            at = shown[(as_text(path), line)].pop(0)
            for variable, text, kind in variables:
                problem = differs(at.get(as_text(variable)), as_text(text), as_text(kind))
                count += 1
                if problem:
                    wrong.append(f"{as_text(path)}:{line}: {as_text(variable)} {problem}")
    return count, wrong


@pytest.mark.long
def test_programs(ruby, start, rbdump, tmp_path, times):
    count = times(PROGRAMS, PROGRAMS_OF_SOAK)
    script = tmp_path / "programs.rb"
    script.write_text("# encoding: utf-8\n" + make(zlib.crc32(ruby.id.encode()), count))
    target = start(ruby, str(script), flags=("-W0",), environment=ENVIRONMENT)
    settle(rbdump, target.pid)
    told = target.ready["told"]
    done = run(rbdump, target.pid, "--locals", "--self", "--json")
    assert done.returncode == 0, done.stderr
    values, wrong = compare(json.loads(done.stdout), told)
    assert not wrong, "\n".join(wrong[:40])
    assert values > 15 * count
    with gcore_of(target.pid, tmp_path) as core:
        done = run(rbdump, "--core", core, ruby.elf if ruby.id != "debian" else ruby.path, "--locals", "--self", "--json")
        assert done.returncode == 0, done.stderr
        assert compare(json.loads(done.stdout), told) == (values, [])


# One that never rests: each call has values that fit together.
MOVING = r"""
class Box
  def initialize; @first = @second = 0; end
  def set(n); @first = n; @second = n; end
end
def inner(x, y, z, k: 0)
  w = x + 1
  v = [w, x, z]
  leaf(v, w)
end
def leaf(v, w)
  u = v[0] == w
  u ? w : 0
end
def outer(box)
  i = 0
  buffer = [0, 0]
  loop do
    i += 1
    j = i
    z = [i, i]
    buffer[0] = i
    buffer[1] = i
    box.set(i)
    inner(i, j, z, k: i)
  end
end
$stdout.sync = true
Thread.new { $stdin.read; exit!(0) }
Thread.new { sleep 0.01 until $count; puts "{}" }
20_000.times { leaf([1], 1) }
$count = true
outer(Box.new)
"""


def number(local):
    return int(local["value"]) if local and local["kind"] == "integer" else None


def contradiction(frame):
    """What does not fit together among the variables of a frame that are not marked; None if all fit."""
    known = {local["name"]: local for local in frame["locals"] if local["doubt"] is None}
    name, value = frame["label"].rpartition("#")[2].rpartition(" ")[2], {key: known[key]["value"] for key in known}
    x, w, i = (number(known.get(key)) for key in "xwi")
    if name == "inner" and x is not None:
        expected = {"y": {str(x)}, "z": {f"[{x}, {x}]"}, "k": {str(x)}, "w": {"nil", str(x + 1)}}
        expected["v"] = {"nil", f"[{x + 1}, {x}, [{x}, {x}]]"}
        return next((key for key in expected if key in value and value[key] not in expected[key]), None)
    if name == "leaf" and w is not None and w > 1 and "v" in value:
        return None if value["v"] == f"[{w}, {w - 1}, [{w - 1}, {w - 1}]]" else "v"
    if name == "outer" and i is not None and "buffer" in value:
        first, second = json.loads(value["buffer"])
        return None if i - 1 <= second <= first <= i else "buffer"
    return None


@pytest.mark.outer_rubies
@pytest.mark.parametrize("jit", ["none", *JIT_NAMES])
def test_moving(ruby, start, rbdump, tmp_path, jit, times):
    """At random moments, each variable is right, or it is marked; also if a JIT keeps variables in registers."""
    if jit != "none" and jit not in ruby.jits:
        note_not_applicable(f"{jit} on {ruby.id}")
        return
    script = tmp_path / "moving.rb"
    script.write_text(MOVING)
    target = start(ruby, str(script), flags=ruby.jits.get(jit, ()))
    exact, frames = 0, 0
    for _ in range(times(12, 200)):
        answer = json.loads(run(rbdump, target.pid, "--locals", "--json").stdout)
        thread = next(thread for thread in answer["threads"] if thread["main"])
        for frame in thread["frames"] if thread["verdict"] == "complete" else []:
            if frame["kind"] == "ruby":
                assert contradiction(frame) is None, frame
                exact += sum(local["doubt"] is None for local in frame["locals"])
                frames += 1
    assert frames > 12 and exact > frames / 2


def test_innermost_of_a_jit(ruby, start, rbdump, tmp_path):
    """What a JIT may have in a register is not shown. Frames around it are."""
    flags = next((ruby.jits[name] for name in JIT_NAMES if name in ruby.jits and name != "mjit"), None)
    if flags is None:
        note_not_applicable(f"a JIT that keeps variables in registers, on {ruby.id}")
        return
    script = tmp_path / "spins.rb"
    script.write_text(
        "def spins(a, b)\n  c = a + b\n  c = (c * 3 + a) % 1000 while c >= 0\n  c\nend\n"
        "def around(text)\n  list = [text]\n  spins(text.size, 7)\nend\n"
        "Thread.new { $stdin.read; exit!(0) }\n$stdout.sync = true\nputs '{}'\naround('four')\n"
    )
    target = start(ruby, str(script), flags=flags)

    def spinning():
        threads = json.loads(run(rbdump, target.pid, "--locals", "--json").stdout)["threads"]
        main = next(thread for thread in threads if thread["main"])
        spins = any(frame["label"].endswith("spins") for frame in main["frames"])
        return main if main["verdict"] == "complete" and spins else None

    thread = wait_until(spinning, "its main thread spins")
    innermost = thread["frames"][0]
    if innermost["kind"] == "ruby":
        doubts = {local["name"]: (local["value"], local["doubt"]) for local in innermost["locals"]}
        assert doubts == {name: (None, "in-register") for name in "abc"}
    around = next(frame for frame in thread["frames"] if frame["label"].endswith("around"))
    assert {local["name"]: local["value"] for local in around["locals"]} == {"text": '"four"', "list": '["four"]'}


@pytest.mark.outer_rubies
def test_block_parameters(ruby, start, rbdump, tmp_path):
    """A block parameter that was not used yet has no value in memory: it is marked, and no other variable is."""
    script = tmp_path / "blocks.rb"
    script.write_text(
        "def all(...); target(...); end\ndef target(*a, **k, &b); late = 1 if $never; rests; end\n"
        "def used(x, &b); kept = b; all(x, y: 2, &b); end\ndef rests; $stdout.sync = true; puts '{}'; sleep; end\n"
        "Thread.new { $stdin.read; exit!(0) }\nused(1) { 2 }\n"
    )
    target = start(ruby, str(script), flags=("-W0",))
    settle(rbdump, target.pid)
    frames = json.loads(run(rbdump, target.pid, "--locals", "--json").stdout)["threads"][0]["frames"]
    shown = {frame["label"].rpartition("#")[2]: {local["name"]: local for local in frame["locals"]} for frame in frames if frame["kind"] == "ruby"}
    assert {name: local["doubt"] for name, local in shown["target"].items()} == {"a": None, "k": None, "b": "or-block", "late": "or-block"}
    assert shown["target"]["a"]["value"] == "[1]"
    assert {name: (local["value"], local["doubt"]) for name, local in shown["used"].items()} == {
        "x": ("1", None), "b": ("#<Proc>", None), "kept": ("#<Proc>", None),
    }  # fmt: skip


VARIOUS = r"""
class Point
  def initialize(x, y); @x = x; @y = y; @name = "p\e[31m\u0007"; end
  def wait; kept = self; Still::GATE.pop; end
end
require File.join(Dir.pwd, "still.rb")
Still.thread("subject", "pop") { Point.new(1, [2, 3]).wait }
Still.thread("outside", "pop") { [1].each { |inside| Still::GATE.pop } }
Still.watch "pop"
secret = "top secret"
Still::GATE.pop
"""


@pytest.fixture
def various(ruby, start, rbdump, tmp_path):
    script = tmp_path / "various \x1b[31m.rb"
    script.write_text(VARIOUS)
    target = start(ruby, str(script), environment={**ENVIRONMENT, "RBDUMP_TEST_SECRET": "hunter2"})
    settle(rbdump, target.pid)
    return target


@pytest.mark.outer_rubies
def test_off_unless_asked_for(rbdump, various):
    answer = run(rbdump, various.pid, "--json").stdout
    assert "args" not in json.loads(answer)
    for thread in json.loads(answer)["threads"]:
        assert not any({"locals", "self", "source"} & set(frame) for frame in thread["frames"])
    assert "top secret" not in answer and "hunter2" not in answer


@pytest.mark.outer_rubies
def test_self(rbdump, various):
    threads = json.loads(run(rbdump, various.pid, "--self", "--json").stdout)["threads"]
    frames = next(thread["frames"] for thread in threads if thread["name"] == "subject")
    point = {"value": '#<Point @x=1, @y=[2, 3], @name="p\\e[31m\\a">', "kind": "object", "doubt": None}
    assert [frame["self"] for frame in frames if frame["label"].endswith("wait")] == [point]
    assert frames[-1]["self"] == {"value": "main", "kind": "object", "doubt": None}
    assert not any("locals" in frame for frame in frames)


EXCEPTIONS = r"""
class Coded < StandardError
  def initialize(code, message); @code = code; super(message); end
end
def rests(plain, coded, quoted, lines, without, missing)
  $stdout.sync = true
  puts %({"plain": "#{plain.inspect.unpack("H*")[0]}", "coded": "#{coded.inspect.unpack("H*")[0]}", "quoted": "#{quoted.inspect.unpack("H*")[0]}"})
  sleep
end
Thread.new { $stdin.read; exit!(0) }
missing = begin nil.nothing; rescue NameError => error; error; end
rests(ArgumentError.new("bad thing"), Coded.new(3, "a code"), IOError.new(%q(a "#{b}" \ "c\")), Coded.new(4, "two\nlines"), RuntimeError.new, missing)
"""


@pytest.mark.outer_rubies
def test_exceptions(ruby, start, rbdump, tmp_path):
    """The message as Ruby's own inspect has it, before the instance variables."""
    script = tmp_path / "exceptions.rb"
    script.write_text(EXCEPTIONS)
    target = start(ruby, str(script), flags=("-W0",))
    settle(rbdump, target.pid)
    frames = json.loads(run(rbdump, target.pid, "--locals", "--json").stdout)["threads"][0]["frames"]
    frame = next(frame for frame in frames if frame["label"].endswith("rests"))
    shown = {local["name"]: local["value"] for local in frame["locals"]}
    plain, coded, quoted = (target.ready[name].decode() for name in ("plain", "coded", "quoted"))
    assert shown["plain"] == plain == "#<ArgumentError: bad thing>"
    assert shown["coded"] == coded[:-1] + " @code=3>"
    assert shown["quoted"] == quoted == r'#<IOError: a "#{b}" \ "c\">'
    assert shown["lines"] == '#<Coded:"two\\nlines" @code=4>'
    assert shown["without"] == "#<RuntimeError>"
    assert shown["missing"].startswith("#<NoMethodError") and "message" not in shown["missing"]


@pytest.mark.outer_rubies
def test_text(rbdump, various):
    """A block whose outer code no longer runs shows the variables of that code. Nothing controls the terminal."""
    done = run(rbdump, various.pid, "--locals", "--self", "--source")
    assert done.returncode == 0 and done.stderr == ""
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout
    outside = run(rbdump, various.pid, "--locals").stdout.split('"outside"')[1].split("\n\n")[0]
    assert '        inside = 1\n        secret = "top secret"\n' in outside
    assert "        self = #<Point @x=1" in done.stdout


@pytest.mark.outer_rubies
def test_args(rbdump, various, tmp_path):
    answer = json.loads(run(rbdump, various.pid, "--args", "--json").stdout)["args"]
    with open(f"/proc/{various.pid}/cmdline", "rb") as file:
        words = file.read().split(b"\0")[:-1]
    with open(f"/proc/{various.pid}/environ", "rb") as file:
        names = [entry.split(b"=")[0] for entry in file.read().split(b"\0")[:-1]]
    assert answer["command_line"] == [as_text(word) for word in words]
    assert answer["environment_names"] == [as_text(name) for name in names] and "RBDUMP_TEST_SECRET" in answer["environment_names"]
    assert answer["program_name"] == str(various.script)
    text = run(rbdump, various.pid, "--args").stdout
    assert "hunter2" not in text and "RBDUMP_TEST_SECRET" in text and "\x1b" not in text
    with gcore_of(various.pid, tmp_path) as core:
        answer = json.loads(run(rbdump, "--core", core, "--args", "--json").stdout)["args"]
    assert answer["program_name"] == str(various.script) and answer["environment_names"] is None
    assert as_text(b" ".join(words)).startswith(answer["command_line"][0].rstrip())


@pytest.mark.any_ruby
@pytest.mark.parametrize("option", ["--locals", "--self"])
def test_no_stop(ruby, rbdump, option):
    """Values of a process that goes on would be of many moments."""
    done = run(rbdump, "1", option, "--no-stop")
    assert done.returncode == 64 and done.stderr.count("\n") <= 2
    assert "--locals and --self cannot be used with --no-stop" in done.stderr


def waits_for_reader(process):
    """Whether it is in open(2) of a FIFO that nobody reads (fs/pipe.c, wait_for_partner())."""
    return pathlib.Path(f"/proc/{process.pid}/wchan").read_text() == "wait_for_partner"


@pytest.mark.any_ruby
def test_source(ruby, start, rbdump, tmp_path):
    """The lines of the file; and what is not read: other kinds of files, a file that has become another, links of /proc."""
    lines = ["Thread.new { $stdin.read; exit!(0) }", "$stdout.sync = true", "def rests(ready)", '  puts "{}"', "  sleep", "end"]
    lines += ["def tab(*)", "\tyield # caf\u00e9 \x1b", "end"]
    script = tmp_path / "source.rb"
    script.write_text("\n".join([*lines, "tab { rests(1) }", ""]))
    target = start(ruby, str(script))
    settle(rbdump, target.pid)

    def source():
        frames = json.loads(run(rbdump, target.pid, "--source", "--json").stdout)["threads"][0]["frames"]
        return [frame["source"] for frame in frames if frame["kind"] == "ruby"]

    def around(line):
        return [{"line": n, "text": (lines + ["tab { rests(1) }"])[n - 1]} for n in range(line - 2, min(line + 2, len(lines) + 1) + 1)]

    shown = source()
    assert [entry["lines"] for entry in shown] == [around(5), around(10), around(8), around(10)]
    assert {entry["reason"] for entry in shown} == {None}
    script.unlink()
    assert {entry["reason"] for entry in source()} == {"there is no such file"}
    os.mkfifo(script)
    with subprocess.Popen(["sh", "-c", 'exec 3>"$0"', script]) as writer:
        wait_until(lambda: waits_for_reader(writer), "the writer waits")
        assert {entry["reason"] for entry in source()} == {"it is not a regular file"}
        assert writer.poll() is None, "rbdump has opened the FIFO"
        os.close(os.open(script, os.O_RDONLY | os.O_NONBLOCK))
    script.unlink()
    script.write_text("one line\n")
    assert {entry["reason"] for entry in source()} == {"the file does not have this line"}
    script.unlink()
    script.symlink_to("/proc/self/maps")
    assert {entry["reason"] for entry in source()} == {"it is not a regular file"}
