"""rbdump heap: counts and sizes of objects, against what Ruby says of each of its objects."""

import collections
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest
from conftest import note_not_applicable
from harness.core import gcore_of
from harness.dump import run
from harness.heap import HERE, Objects, build, heap

PARTIAL, FAILED, USAGE = 1, 2, 64
# On a busy machine, a reading can take longer than the default allows.
STOPPED = ("--stop", "--max-pause", "4000")

# The sizes of T_DATA are known only to the C code that made them, but for some of Ruby itself. These are among them.
KNOWN_DATA = {(name, "T_DATA") for name in ("Proc", "Binding", "Thread")}


@contextlib.contextmanager
def ready(ruby, script):
    """A program that says when it is ready, and is killed afterwards."""
    with subprocess.Popen(
        [ruby.path, "--disable-gems", HERE / script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            yield program
        finally:
            program.kill()


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return build(tmp_path_factory.mktemp("extension"))


def unsized(series):
    """The types, besides T_DATA, of which rbdump does not know how much memory some of their objects own."""
    if series >= (2, 5):
        return set()
    note_not_applicable("the sizes of classes and modules on Ruby up to 2.4: no layout has their tables of methods")
    # Up to 2.1, encodings that are not built in have no fixed number.
    return {"T_CLASS", "T_MODULE"} | ({"T_STRING"} if series < (2, 2) else set())


def untold(series, unpaused=False):
    """What Ruby does not tell: up to 2.1, when a collection begins; up to 2.0, which objects are dead."""
    return (["collections-not-known"] if unpaused and series < (2, 2) else []) + (["dead-not-known"] if series < (2, 1) else [])


def check(answer, truth):
    """That each number is what Ruby says."""
    assert answer["complete"] and answer["doubts"] == untold(truth.series, answer["mode"] == "unpaused")
    assert answer["slots"] == truth.slots
    assert answer["objects"] + answer["dead"] == len(truth.objects)
    assert answer["free"] == truth.slots - len(truth.objects)
    pools = {pool["slot_size"]: pool["slots"] - pool["free"] for pool in answer["pools"]}
    assert {size: count for size, count in pools.items() if count} == collections.Counter(one.slot_size for one in truth.objects)
    assert sum(pool["slots"] for pool in answer["pools"]) == answer["slots"] and answer["pages_unread"] == 0
    assert sum(pool["pages"] for pool in answer["pools"]) == sum(answer["pages_by_tenths_in_use"]) + answer["pages_empty"] == answer["pages"]
    mine, rubys = collections.Counter(), collections.Counter(one.type for one in truth.objects)
    for row in answer["classes"]:
        mine[row["type"]] += row["objects"] + row["dead"]
    assert {kind: count for kind, count in mine.items() if count} == rubys
    check_types(answer, truth)
    check_classes(answer, truth)
    check_sizes(answer, truth)


def check_types(answer, truth):
    rubys = collections.Counter(one.type for one in truth.objects)
    assert {row["type"]: row["objects"] + row["dead"] for row in answer["types"]} == rubys
    for row in answer["types"]:
        of_type = [one for one in answer["classes"] if one["type"] == row["type"]]
        for key in set(row) - {"type"}:
            numbers = [one[key] for one in of_type]
            assert row[key] == (None if None in numbers else sum(numbers)), (row, key)


def check_classes(answer, truth):
    named = collections.Counter((one.klass, one.type) for one in truth.objects if one.klass)
    mine = collections.Counter()
    for row in answer["classes"]:
        mine[(row["class"], row["type"])] += row["objects"] + row["dead"]
    kinds = {klass for klass, of_type in named if of_type == "T_DATA"}
    assert len(kinds) >= (32 if truth.series >= (3, 3) else 24), kinds
    # The program sees the names of classes that were there before it told them.
    assert len(named) > 30
    assert {key: mine[key] for key in named} == dict(named)


def check_sizes(answer, truth):
    sizes = collections.Counter()
    for one in truth.objects:
        if one.klass:
            sizes[(one.klass, one.type)] += one.size
    mine, unknown = collections.Counter(), collections.Counter()
    for row in answer["classes"]:
        mine[(row["class"], row["type"])] += row["slot_bytes"] + row["owned_bytes"]
        unknown[(row["class"], row["type"])] += row["owned_unknown"]
    known = {key: size for key, size in sizes.items() if not unknown[key]}
    assert {key: mine[key] for key in known} == known
    assert all(mine[key] <= sizes[key] for key in sizes)
    assert {key[1] for key in sizes if unknown[key]} <= {"T_DATA", *unsized(truth.series)}
    assert len(known) > 20 and KNOWN_DATA - set(known) <= ({("Proc", "T_DATA")} if truth.series < (2, 4) else set())


def test_stopped(ruby, rbdump, extension):
    with Objects(ruby, extension) as truth:
        answer = heap(rbdump, *STOPPED, truth.pid)
    assert answer["mode"] == "stopped" and 0 < answer["pause_ms"] < 4000
    check(answer, truth)


def test_unpaused(ruby, rbdump, extension):
    """A program that does nothing: there is one number, not a range."""
    with Objects(ruby, extension) as truth:
        answer = heap(rbdump, truth.pid)
    assert answer["mode"] == "unpaused" and answer["pause_ms"] is None
    if untold(ruby.series, unpaused=True):
        note_not_applicable(f"one number instead of a range on {ruby.id}: it does not tell when a collection begins")
        assert all(row["low"] <= row["objects"] <= row["high"] for row in answer["classes"])
    else:
        assert all(row["low"] == row["objects"] == row["high"] for row in answer["classes"])
    check(answer, truth)


@pytest.mark.three_rubies
def test_core(ruby, rbdump, extension, tmp_path):
    with Objects(ruby, extension) as truth, gcore_of(truth.pid, tmp_path) as core:
        answer = heap(rbdump, "--core", core)
    assert answer["mode"] == "core" and answer["core"] == str(core)
    check(answer, truth)


@pytest.mark.outer_rubies
def test_ranges(ruby, rbdump, times):
    """While a program makes objects as fast as it can, those that it keeps are within the range of each look."""
    wanted = times(15, 100)
    looks = certain = 0
    with ready(ruby, "churn.rb") as program:
        # On a busy machine, a collection begins during nearly every look.
        while looks < wanted or (certain == 0 and looks < 200 and not untold(ruby.series, unpaused=True)):
            looks += 1
            answer = heap(rbdump, program.pid)
            rows = {row["class"]: row for row in answer["classes"] if row["type"] == "T_OBJECT"}
            assert rows["Keeps"]["low"] <= 5_000 <= rows["Keeps"]["high"]
            assert rows["AlsoKeeps"]["low"] <= 2_000 <= rows["AlsoKeeps"]["high"]
            # There are always so many; others of them may not have been freed yet.
            assert rows["Changes"]["high"] >= 3_000
            if not answer["doubts"]:
                certain += 1
                assert rows["Keeps"]["low"] == 5_000 and rows["Keeps"]["high"] == 5_000
    assert certain > 0 or untold(ruby.series, unpaused=True)


@pytest.mark.outer_rubies
def test_dead(ruby, rbdump):
    """What a collection has not marked is dead, also if its slot was not swept yet."""
    with ready(ruby, "dead.rb") as program:
        for answer in (heap(rbdump, program.pid), heap(rbdump, *STOPPED, program.pid)):
            rows = {row["class"]: row for row in answer["classes"] if row["type"] == "T_OBJECT"}
            assert answer["doubts"] == untold(ruby.series, answer["mode"] == "unpaused")
            assert rows["Kept"]["objects"] == 1_000 and rows["Kept"]["dead"] == 0
            assert rows["Dropped"]["objects"] <= 1 and rows["Dropped"]["dead"] > 10_000
            assert answer["dead"] == sum(row["dead"] for row in answer["classes"])


@pytest.mark.any_ruby
def test_too_many_classes(ruby, rbdump):
    with ready(ruby, "singletons.rb") as program:
        answer = heap(rbdump, *STOPPED, program.pid)
        text = run(rbdump, "heap", program.pid)
    assert answer["doubts"] == ["too-many-classes"]
    assert "There are too many kinds of objects" in text.stdout
    rows = {row["class"]: row["objects"] for row in answer["classes"]}
    assert rows["Single"] < 70_000 and rows["(others)"] > 0


@pytest.mark.any_ruby
def test_text(ruby, rbdump, extension):
    with Objects(ruby, extension) as truth:
        few = run(rbdump, "heap", truth.pid, "-n", 3)
        whole = run(rbdump, "heap", truth.pid, "--all")
    assert few.returncode == whole.returncode == 0
    assert f"process {truth.pid}, ruby " in few.stdout and "heap: read while it ran" in few.stdout
    assert re.search(r"^ +\d[\d,]* .* \d+ more \(--all shows them\)$", few.stdout, re.M)
    assert re.search(r"^ +200 +\S+ \S+ +\S+ \S+ +\d+\.\d  Pair \(T_STRUCT\)$", whole.stdout, re.M)
    assert "more (" not in whole.stdout


@pytest.mark.outer_rubies
def test_diff(ruby, rbdump, tmp_path):
    """What has grown comes first, and what has gone has a row, too."""
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    with subprocess.Popen(
        [ruby.path, "--disable-gems", HERE / "leak.rb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout.readline() == b"ready\n"
        before.write_text(run(rbdump, "heap", "--json", *STOPPED, program.pid).stdout)
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"done\n"
        text = run(rbdump, "heap", "--diff", before, program.pid, "-n", 2)
        answer = heap(rbdump, *STOPPED, "--diff", before, program.pid)
        after.write_text(json.dumps(answer))
        same = heap(rbdump, *STOPPED, "--diff", after, program.pid)
        same_text, all_text = (run(rbdump, "heap", "--diff", after, after, *option) for option in ((), ("--all",)))
        wrong = run(rbdump, "heap", "--diff", HERE / "leak.rb", program.pid)
        before.write_text(json.dumps(json.loads(before.read_text()) | {"pid": 1, "complete": False, "doubts": ["interrupted"]}))
        doubtful, doubts = run(rbdump, "heap", "--diff", before, program.pid), heap(rbdump, *STOPPED, "--diff", before, program.pid)["before"]
        program.stdin.close()
    rows = {(row["class"], row["type"]): row for row in answer["classes"]}
    sessions, jobs = rows[("Session", "T_OBJECT")], rows[("Job", "T_OBJECT")]
    assert (sessions["before"]["objects"], sessions["objects"]) == (0, 10_000)
    assert jobs["before"]["objects"] == 3_000 and jobs["objects"] <= 1
    grown = [row["slot_bytes"] + row["owned_bytes"] - row["before"]["slot_bytes"] - row["before"]["owned_bytes"] for row in answer["classes"]]
    assert grown == sorted(grown, reverse=True)
    assert {"Session", "Hash"} <= {row["class"] for row in answer["classes"][:4]}
    assert re.search(r"^ +10,000 +\+10,000 +\S+ KiB +\+\S+ KiB  Session \(T_OBJECT\)$", text.stdout, re.M)
    assert all(row["before"]["objects"] == row["objects"] for row in same["classes"])
    # What has not changed is not shown.
    header, rest = same_text.stdout.splitlines()[-2:]
    assert header.endswith("class (type)") and rest.endswith(f"  {len(answer['classes'])} more (--all shows them)")
    assert all_text.stdout.count("(T_") == len(answer["classes"])
    assert answer["before"] == {"pid": program.pid, "complete": True, "doubts": []} and "The earlier file" not in text.stdout
    assert doubts == {"pid": 1, "complete": False, "doubts": ["interrupted"]}
    assert re.findall(r"^The earlier file.*", doubtful.stdout, re.M) == [
        "The earlier file is about process 1.", "The earlier file: ^C ended the reading, so only part of the heap was read."
    ]  # fmt: skip
    assert wrong.returncode == FAILED and "was not written by `rbdump heap --json`" in wrong.stderr


@pytest.mark.any_ruby
def test_refusals(ruby, rbdump, extension):
    with Objects(ruby, extension) as truth:
        short = run(rbdump, "heap", "--stop", "--max-pause", 1, truth.pid)
    assert (short.returncode, short.stdout) == (FAILED, "")
    assert re.search(r"would be stopped for about \d+ ms, which is more than the permitted 1 ms; give --max-pause", short.stderr)
    for arguments in ((), ("-p", 1, "--core", "x"), ("--core", "x", "--stop"), (1, "--max-pause", 5), (1, "-n", 0), (1, 2), (1, "--json", "-n", 2)):
        wrong = run(rbdump, "heap", *arguments)
        assert (wrong.returncode, wrong.stdout) == (USAGE, ""), arguments
        assert "see rbdump help heap" in wrong.stderr


@pytest.mark.newest_ruby
def test_interrupted(ruby, rbdump):
    """^C during the looks at a program that collects all the time: the last whole look, or what was read, which is said."""
    script = "KEPT = Array.new(2_000_000) { Object.new }; $stdout.sync = true; puts 'ready'; Thread.new { $stdin.read; exit!(0) }; loop { GC.start }"
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"ready\n"
        terminal, theirs = os.openpty()
        with subprocess.Popen([rbdump, "heap", "--json", str(program.pid)], stdout=subprocess.PIPE, stderr=theirs) as running:
            os.close(theirs)
            shown = b""
            while b"pages of the heap; ^C ends the reading" not in shown:
                shown += os.read(terminal, 4096)
            running.send_signal(signal.SIGINT)
            answer = json.loads(running.stdout.read())
        os.close(terminal)
        program.stdin.close()
    interrupted = "interrupted" in answer["doubts"]
    assert running.returncode == (PARTIAL if interrupted else 0) and answer["complete"] == (not interrupted)
    kept = [row for row in answer["classes"] if (row["class"], row["type"]) == ("Object", "T_OBJECT")]
    if not interrupted:
        assert kept[0]["objects"] >= 2_000_000 and answer["looks"] > 0
    elif kept:
        assert kept[0]["high"] >= kept[0]["objects"]
