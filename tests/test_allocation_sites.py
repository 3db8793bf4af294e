"""rbdump heap and rbdump object: where objects were allocated, against what Ruby's own dump says."""

import contextlib
import json
import os
import re
import subprocess

import pytest
from harness.core import gcore_of
from harness.dump import run

KEYS = ("file", "line", "method", "generation")

# Ruby's own dump, and then nothing more: the process stops itself. What is recorded is of several files, methods and
# generations, and of objects that are freed while it is recorded and afterwards.
TRACED = r"""
require "objspace"
class Shop
  def self.open(name)
    new(name)
  end
  def initialize(name)
    @name, @list = "shop #{name}", [name]
  end
  def [](name)
    "found #{name}"
  end
end
BEFORE = Object.new
def record
  Array.new(3_000) { |number| Shop.open(number) if number.even? }
end
def more
  GC.start
  20.times { |i| KEPT << eval("[Object.new]", binding, "/made/up #{i}\u00fc.rb", i) }
  KEPT << KEPT[0]["nothing"]
end
if ARGV[1] == "block"
  ObjectSpace.trace_object_allocations { KEPT = record; more }
  3_000.times { |i| KEPT << i.to_s }
elsif ARGV[1] == "start"
  ObjectSpace.trace_object_allocations_start
  KEPT = record
  more
else
  KEPT = record
  more
end
GC.start
GC.disable
file = File.open(ARGV[0], "w")
ObjectSpace.dump_all(output: file)
file.close
Process.kill(:STOP, $$)
"""


def sites(lines):
    """What is written of each object, by its address."""
    parsed = (json.loads(line) for line in lines)
    return {one["address"]: {key: one[key] for key in KEYS if key in one} for one in parsed if one["type"] not in ("ROOT", "SHAPE")}


@contextlib.contextmanager
def traced(ruby, folder, how):
    """A program that has recorded where its objects were allocated, and Ruby's own dump of it."""
    own = folder / "own.json"
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", TRACED, own, how]) as program:
        try:
            assert os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1])
            # Up to 2.7, Ruby writes the line 0, too.
            yield program.pid, sites(line.replace(', "line":0,', ",") for line in own.read_text().splitlines())
        finally:
            program.kill()


@pytest.mark.any_ruby
@pytest.mark.parametrize("how", ["start", "block"])
def test_sites(ruby, rbdump, tmp_path, how):
    calls_new = ruby.series < (4, 0)  # since then, the code that calls Class#new allocates the object itself
    with traced(ruby, tmp_path, how) as (pid, own):
        done = run(rbdump, "heap", "-f", "objspace", pid)
        mine = sites(done.stdout.splitlines())
        made_up = {address: site for address, site in own.items() if site.get("file") == "/made/up 7ü.rb"}
        address = next(address for address, site in made_up.items() if not calls_new or site.get("method") == "new")
        one = run(rbdump, "object", pid, address)
        inner = next(address for address, site in own.items() if site.get("method") == "[]")
        other = run(rbdump, "object", pid, inner)
        with gcore_of(pid, tmp_path) as core:
            of_core = run(rbdump, "heap", "-f", "objspace", "--core", core)
    assert done.returncode == 0, done.stderr
    assert sites(of_core.stdout.splitlines()) == mine
    known = {address: site for address, site in own.items() if site}
    assert 4_500 < len(known) < len(own)
    assert {site["method"] for site in known.values() if "method" in site} >= (
        {"initialize", "[]"} | ({"new"} if calls_new else set()) | ({"record"} if ruby.series >= (2, 7) else set())
    )
    different = {address: (site, mine[address]) for address, site in own.items() if site != mine[address]}
    # Records of objects that have had the slot before, and were of another type, are left out. Ruby writes them.
    left_out = int((re.search(r"(\d+) records of where an object was allocated are left out", done.stderr) or [0, 0])[1])
    assert "could not be read" not in done.stderr and all(mine_of == {} for _, mine_of in different.values()), different
    # Up to 2.6, these are also some that have had a record before.
    assert len(different) <= left_out + (20 if ruby.series < (2, 7) else 0) and (how == "block" or left_out == 0)
    generation = own[address]["generation"]
    place = r" in Class#new" if calls_new else r"(?: in \S+)?"
    assert re.search(rf"\n  allocated at /made/up 7ü\.rb:7{place}, after {generation} collections\n", one.stdout), one.stdout
    line = own[inner]["line"]
    assert line in (11, 12) and re.search(rf"\n  allocated at -e:{line} in Shop#\[\], after \d+ collections\n", other.stdout), other.stdout


@pytest.mark.any_ruby
def test_no_sites(ruby, rbdump, tmp_path):
    """The extension is there, but nothing was recorded."""
    with traced(ruby, tmp_path, "never") as (pid, own):
        done = run(rbdump, "heap", "-f", "objspace", pid)
        one = run(rbdump, "object", pid, next(iter(own)))
    assert not any(own.values()) and not any(sites(done.stdout.splitlines()).values())
    assert "allocated" not in done.stderr and "allocated" not in one.stdout


# A program that records, and never stands still: its records are changed while they are read.
BUSY = r"""
require "objspace"
class Churn
  def run
    list = []
    loop do
      list << Object.new << "text #{list.size}"
      list = [] if list.size > 40_000
      eval("[Object.new]", nil, "made up #{rand(2000)}.rb", 77)
    end
  end
end
ObjectSpace.trace_object_allocations_start
$stdout.write("ready\n")
$stdout.flush
Churn.new.run
"""


@pytest.mark.any_ruby
def test_busy(ruby, rbdump):
    """What is written is never a mixture of two records."""
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", BUSY], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            # If the table of the texts changes while it is read, all records are refused.
            for _ in range(50):
                found = sites(run(rbdump, "heap", "-f", "objspace", program.pid).stdout.splitlines())
                if sum("file" in site for site in found.values()) > 1_000:
                    break
        finally:
            program.kill()
    places = {(site.get("file"), site.get("line"), site.get("method")) for site in found.values() if "file" in site}
    made_up = {place for place in places if place[0].startswith("made up ")}
    assert {(line, method) for _, line, method in made_up} <= {(77, "run"), (77, "new")}
    assert {line for path, line, _ in places if path == "-e"} <= {*range(3, 17)}, places - made_up
    assert {"run", *(["new"] if ruby.series < (4, 0) else [])} <= {method for _, _, method in places}
