"""
Dumps of memory that lies: lists in rings, huge sizes, wrong types, in the objects of which a dump shows locks, values and
native frames. It takes hardly longer than a dump of the same memory unchanged, and hardly more memory; no circle of threads
that wait for each other is found that is not there.
"""

import json
import os
import random
import re
import subprocess
import types

import pytest
from conftest import note_not_applicable
from harness.core import gcore_of
from harness.core_memory import CoreMemory
from harness.process import is_untouched, wait_until
from harness.usage import measured

pytestmark = [
    pytest.mark.skipif(os.environ.get("SAN") == "1", reason="a sanitizer takes memory and time of its own"),
    pytest.mark.newest_ruby,
]
EVERYTHING = ("--locals", "--self", "--source", "--native", "--all")
SECONDS, MIB = 1.0, 64
STRUCT_WORDS = 4  # as many as a Mutex has; behind it is other memory
HUGE = 0x7FFFFFFFFFFFFFF0
FLAGS_TYPE, T_DATA = 0x1F, 0x0C  # ruby/internal/value_type.h


@pytest.fixture
def whole(ruby, start, tmp_path, rbdump):
    """The core of locks.rb, and how rbdump reads it unchanged."""
    target = start(ruby, "locks.rb")
    with gcore_of(target.pid, tmp_path) as core:
        # Where the structs of threads lie, no stack can be found: that the layout does not fit is tested elsewhere.
        told = [text for text in target.ready["objects"].values() if not text.startswith(b"#<Thread:0x")]
        # In the order in which they were made, so that a seed leads to the same changes again.
        objects = list(dict.fromkeys(int(re.search(rb":(0x[0-9a-f]+)>", text)[1], 16) for text in told))
        unchanged = measured(rbdump, "--core", core, "--json", *EVERYTHING, output=tmp_path / "answer")
        assert unchanged.status == 0, unchanged.errors
        answer = json.loads((tmp_path / "answer").read_text())
        assert len(answer["deadlocks"]) >= 6
        yield types.SimpleNamespace(
            core=core, memory=CoreMemory(core), objects=objects, unchanged=unchanged, deadlocks=circles(answer),
            answer=tmp_path / "answer",
        )  # fmt: skip


def circles(answer):
    """Each deadlock as the threads and fibers that are in it."""
    of_entry = [(thread["thread"], (thread["fiber"] or {}).get("address")) for thread in answer["threads"]]
    return {frozenset(of_entry[index] for index in deadlock["threads"]) for deadlock in answer["deadlocks"]}


def check(rbdump, whole, changes, what):
    """Gives the answer, and the deadlocks in it that are not there in the unchanged core."""
    with whole.memory.changed(changes):
        done = measured(rbdump, "--core", whole.core, "--json", *EVERYTHING, output=whole.answer)
    assert done.status in (0, 1), (what, done.errors)
    answer = json.loads(whole.answer.read_text())
    assert done.cpu_seconds < whole.unchanged.cpu_seconds + SECONDS, (what, done, whole.unchanged)
    assert done.mib < whole.unchanged.mib + MIB, (what, done, whole.unchanged)
    return answer, circles(answer) - whole.deadlocks


def structs_of(whole):
    """The structs of the objects, to which the last word of an object leads (RTypedData.data)."""
    found = [whole.memory.words(address, 5)[4] for address in whole.objects]
    return list(dict.fromkeys(word for word in found if word % 8 == 0 and whole.memory.offset(word) is not None))


def test_types_that_lie(rbdump, whole):
    """Each object claims to be of another type: of each type in turn."""
    flags = {address: whole.memory.words(address, 1)[0] for address in whole.objects}
    for kind in range(FLAGS_TYPE + 1):
        changes = {address: word & ~FLAGS_TYPE | kind for address, word in flags.items()}
        answer, invented = check(rbdump, whole, changes, f"type {kind}")
        assert not invented, kind
        if kind != T_DATA:
            assert len(answer["deadlocks"]) < len(whole.deadlocks), kind


def test_rings_and_huge_sizes(rbdump, whole):
    """All words of the objects, and those of their structs, are the same: an address, or a number."""
    structs = structs_of(whole)
    assert structs
    for what, word in (("itself", None), ("huge", HUGE), ("all", -1), ("odd", 1), ("none", 0)):
        of_objects = {
            address + 8 * i: address if word is None else word for address in whole.objects for i in range(1, 5)
        }  # fmt: skip
        of_structs = {address + 8 * i: address if word is None else word for address in structs for i in range(STRUCT_WORDS)}
        for changes in (of_objects, of_structs):
            _, invented = check(rbdump, whole, changes, what)
            assert not invented, what


def test_words_at_random(rbdump, whole):
    structs = structs_of(whole)
    places = [address + 8 * i for address in whole.objects for i in range(5)]
    places += [address + 8 * i for address in structs for i in range(STRUCT_WORDS)]
    for seed in range(20):
        chosen = random.Random(seed)
        words = [*whole.objects, *structs, HUGE, -1, 0, 1, 1 << 32, 1 << 62]
        changes = {place: chosen.choice(words) for place in chosen.sample(places, 30)}
        _, invented = check(rbdump, whole, changes, f"seed {seed}")
        # Of a Mutex whose holder is changed, memory says that its holder has ended.
        assert all(len(circle) == 1 for circle in invented), seed


def large_source(folder, name, follows):
    """A file of 4 MB of short lines, whose method calls that of the next one."""
    lines = "#\n" * 2_000_000
    call = f"require_relative {follows!r}; call_{follows}" if follows else "puts 1; $stdout.flush; sleep"
    (folder / f"{name}.rb").write_text(f"def call_{name}; {call}; end\n{lines}")


def test_source_in_many_large_files(rbdump, ruby, tmp_path):
    names = [f"part{i}" for i in range(24)]
    for name, follows in zip(names, [*names[1:], None], strict=True):
        large_source(tmp_path, name, follows)
    command = [ruby.path, "--disable-gems", "-r", tmp_path / "part0.rb", "-e", "call_part0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as target:
        try:
            assert target.stdout.readline() == b"1\n"
            plain = measured(rbdump, target.pid, "--json")
            done = measured(rbdump, target.pid, "--json", "--source", output=tmp_path / "answer")
            assert is_untouched(target.pid)
        finally:
            target.kill()
    assert (done.status, plain.status) == (0, 0), done.errors
    assert done.cpu_seconds < plain.cpu_seconds + SECONDS and done.mib < plain.mib + MIB, (plain, done)
    (thread,) = json.loads((tmp_path / "answer").read_text())["threads"]
    shown = [frame for frame in thread["frames"] if frame["name"].endswith(tuple(f"call_{name}" for name in names))]
    assert len(shown) == len(names)
    # Not all of them are read: of the others, it is said why they have no lines.
    assert {bool(frame["source"]["lines"]) for frame in shown} == {True, False}
    assert all(bool(frame["source"]["lines"]) != bool(frame["source"]["reason"]) for frame in shown)


def test_large_perf_map(rbdump, ruby, tmp_path):
    """Two million lines, which the process of a JIT may have written."""
    if "yjit" not in ruby.jits:
        note_not_applicable(f"YJIT: {ruby.id} has none")
        pytest.skip("no YJIT")
    program = "def work(n) = n > 0 ? [n].each { |m| work(m - 1) } : (puts 1; $stdout.flush; sleep)\n"
    command = [ruby.path, "--disable-gems", *ruby.jits["yjit"], "-e", program + "100.times { [1].each { |x| x } }; work(9)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as target:
        path = f"/tmp/perf-{target.pid}.map"
        try:
            assert target.stdout.readline() == b"1\n"
            wait_until(lambda: measured(rbdump, target.pid, "--native").status == 0, "it reads")
            plain = measured(rbdump, target.pid, "--json", "--native", output=tmp_path / "plain")
            with open(path, "w") as perf_map:
                perf_map.write("1000 7fffffffffff some_code\n")
                perf_map.writelines(f"{(1 << 63) + i * 16:x} 8 a\n" for i in range(2_000_000))
            os.chmod(path, 0o644)
            done = measured(rbdump, target.pid, "--json", "--native", output=tmp_path / "answer")
        finally:
            target.kill()
            if os.path.exists(path):
                os.unlink(path)
    assert done.status == 0, done.errors
    assert "[JIT]" in (tmp_path / "plain").read_text()
    assert "some_code" in (tmp_path / "answer").read_text()
    assert done.cpu_seconds < plain.cpu_seconds + SECONDS and done.mib < plain.mib + MIB, (plain, done)
