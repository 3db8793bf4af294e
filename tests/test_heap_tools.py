"""rbdump heap -f objspace, for other tools: the same as Ruby's own dump, also as heapy and sheap show both."""

import collections
import json
import os
import re
import subprocess

import pytest
from conftest import note_not_applicable
from harness.dump import run
from harness.heap import heap, written

# Ruby's own dump, and then nothing more: the process stops itself.
DUMP_ALL = """
require "objspace"
class Session
  def initialize(number)
    @name, @list = "session #{number}", [number]
  end
end
KEPT = Array.new(3_000) { |number| Session.new(number) }
SHADY = Array.new(200) { Fiber.new {} }
20.times { |number| Object.autoload("Later#{number}", "/nowhere/#{number}.rb") }
GC.start
GC.start
GC.disable
file = File.open(ARGV[0], "w")
ObjectSpace.dump_all(output: file)
file.flush
Process.kill(:STOP, $$)
"""


# What sheap says of a dump: a path from the roots to an object, and how many objects of its class there are.
SHEAP = """
require "set"
require "sheap"
heap = Sheap::Heap.new(ARGV[0])
sessions = heap.plain_objects.instances_of(heap.class_named("Session").first)
puts "#{sessions.size} sessions", heap.find_path(sessions.min_by(&:address)).drop(1).map { |one| "#{one.type_str} #{one.address}" }
"""


def by_sheap(ruby, file):
    library = f"{os.environ['RBDUMP_TEST_SHEAP']}/lib"
    done = subprocess.run([ruby.path, "-I", library, "-e", SHEAP, file], check=True, capture_output=True, text=True, timeout=120)
    return done.stdout


@pytest.mark.any_ruby
@pytest.mark.since((2, 7), "a dump that is complete before its file is closed")
def test_dump_all(ruby, rbdump, tmp_path):
    """The same lines as Ruby's own, but for what the program changes between both; heapy reads both."""
    own, mine = tmp_path / "own.json", tmp_path / "mine.json"
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", DUMP_ALL, own]) as program:
        try:
            assert os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1])
            done = run(rbdump, "heap", "-f", "objspace", "-o", mine, program.pid)
            counted = heap(rbdump, program.pid)["classes"]
        finally:
            program.kill()
    assert done.returncode == 0, done.stderr
    theirs, ours = written(own.read_text().splitlines()), written(mine.read_text().splitlines())
    assert set(theirs) <= set(ours) and len(ours) - len(theirs) < 50
    different = {}
    for address, one in theirs.items():
        if one["type"] in ("DATA", "IMEMO"):
            continue
        for key in ("type", "class", "superclass", "name", "struct", "length", "ivars", "bytesize", "encoding", "memsize"):
            if one.get(key) != ours[address].get(key) and (key, one["type"]) != ("memsize", "CLASS"):
                different[(key, one["type"])] = (one, ours[address])
        if set(one.get("references", ())) != set(ours[address].get("references", ())):
            different.setdefault("references", []).append((one, ours[address]))
    changed = different.pop("references", [])
    assert different == {} and len(changed) < 12, changed
    # Those that programs do not see, by the names of their C types.
    internal = collections.Counter(f"(internal {one['struct']})" for one in theirs.values() if "struct" in one and "class" not in one)
    mine_of = {row["class"]: row["objects"] for row in counted if row["type"] == "T_DATA"}
    assert len(internal) > 2 and all(0 <= mine_of[name] - count < 5 for name, count in internal.items()), (internal, mine_of)
    for key, has in (("old", lambda flags: "old" in flags), ("shady", lambda flags: "wb_protected" not in flags)):
        of_type = collections.Counter(one["type"] for one in theirs.values() if has(one.get("flags", ())))
        mine_of = collections.Counter({row["type"]: 0 for row in counted})
        for row in counted:
            mine_of[row["type"]] += row[key]
        assert sum(of_type.values()) > 100 and all(0 <= mine_of[f"T_{name}"] - count < 5 for name, count in of_type.items()), (key, of_type, mine_of)
    roots = [{json.loads(line)["root"] for line in file.read_text().splitlines() if '"type":"ROOT"' in line} for file in (own, mine)]
    # Since 4.0, what C code has registered is a part of the VM's roots.
    known = {"vm", "global_tbl", "machine_context"} | ({"global_list"} if ruby.series < (4, 0) else set())
    assert known <= roots[0] & roots[1]
    if "RBDUMP_TEST_SHEAP" in os.environ:
        seen = [by_sheap(ruby, file) for file in (own, mine)]
        assert seen[0] == seen[1] and "3000 sessions\n" in seen[0]
    else:
        note_not_applicable("sheap: $RBDUMP_TEST_SHEAP does not name a folder with its sources")
    for file in (own, mine):
        lines = len(file.read_text().splitlines())
        read = subprocess.run(["heapy", "read", file], check=True, capture_output=True, text=True, timeout=60).stdout
        assert re.search(rf"^Count: {lines}$", read, re.M), read


TRACED = """
require "objspace"
ObjectSpace.trace_object_allocations_start
class Session; def initialize(number); @number = number; end; end
KEPT = Array.new(300) { |i| [Session.new(i), "name #{i % 7} of a session that is long"] }
GC.start
GC.start
file = File.open(ARGV[0], "w")
ObjectSpace.dump_all(output: file)
file.flush
Process.kill(:STOP, $$)
"""


@pytest.mark.any_ruby
@pytest.mark.since((2, 7), "a dump that is complete before its file is closed")
def test_heapy(ruby, rbdump, tmp_path):
    """heapy says the same of both dumps: how many objects and bytes the line has allocated that keeps them, and duplicates."""
    script, own, mine = tmp_path / "traced.rb", tmp_path / "own.json", tmp_path / "mine.json"
    script.write_text(TRACED)
    with subprocess.Popen([ruby.path, "--disable-gems", script, own]) as program:
        try:
            assert os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1])
            done = run(rbdump, "heap", "-f", "objspace", "-o", mine, program.pid)
        finally:
            program.kill()
    assert done.returncode == 0, done.stderr
    told = []
    for file in (own, mine):
        said = subprocess.run(["heapy", "read", file, "all"], check=True, capture_output=True, text=True, timeout=60).stdout
        memory, objects, _, duplicates = re.split(r"^(?:object count|High Ref Counts|Duplicate strings).*$", said, flags=re.M)
        told.append([re.search(rf"^ +(\d+)  {script}:5$", part, re.M)[1] for part in (memory, objects)])
        told[-1].append({part for part in duplicates.split("\n\n") if f"{script}:5" in part})
    assert told[0] == told[1] and int(told[0][1]) >= 900 and len(told[0][2]) == 7, told
