"""
Stack copies that no sampling loop has taken, and no source has checked, go through the whole pipeline: checked, named,
recorded, shown.
"""

import contextlib
import gzip
import json
import re

import pytest
from harness.dump import check, run
from harness.process import wait_until_it_reads
from harness.recording import SECOND, report
from harness.symbolize import probe_path
from harness.synthetic import ROOT
from harness.target import Target

COUNT = 25
MIXED_COUNT = 5  # for each that contradicts itself, the code is read anew
PERIOD = SECOND // 100
FORMATS = ("summary", "collapsed", "flamegraph", "speedscope", "pprof", "firefox", "callgrind", "json")
LOST = "(unreadable: lost)"
STARVED_BYTES = 200_000  # of the 50 samples, some have no room


def names(frames):
    """Each frame, innermost first: its name; that of Ruby code with where it is, which C functions have none of."""
    return tuple(
        (frame["name"], frame["path"], frame["line"]) if frame["kind"] == "ruby" else (frame["name"],) for frame in frames
    )


@pytest.fixture(autouse=True)
def _layouts(monkeypatch):
    """The probe is not where rbdump finds its layouts."""
    monkeypatch.setenv("RBDUMP_OFFSETS_D", str(ROOT / "offsets.d"))


def replay(target, folder, save, count=COUNT, room=None):
    """
    The recording of a target's stack copies, `count` times each.

    room   None, or so many bytes of a queue in which all have to be at once
    """
    copies, recording = folder / "copies", folder / "replayed.rbdump"
    how, *rest = ["play"] if room is None else ["starve", room]
    for arguments in ([save, target.pid, copies], [how, target.pid, copies, count, recording, *rest]):
        done = run(probe_path("replay"), *map(str, arguments))
        assert (done.returncode, done.stderr) == (0, "")
    return recording


@pytest.mark.three_rubies
@pytest.mark.long
@pytest.mark.target("threads.rb")
def test_mixed_stack_copies(ruby, rbdump, tmp_path):
    """Two frames have each other's code, which is consistent in itself: only the checks of methods tell."""
    with contextlib.closing(Target(ruby.path, "threads.rb")) as target:
        wait_until_it_reads(target.pid)
        dumped = json.loads(run(rbdump, "-p", str(target.pid), "--json").stdout)
        counts = report(rbdump, replay(target, tmp_path, "save-mixed", MIXED_COUNT), "--idle").counts
    of_ruby = [{frame["label"] for frame in thread["frames"] if frame["kind"] == "ruby"} for thread in dumped["threads"]]
    mixed = sum(len(labels) > 1 for labels in of_ruby)
    assert mixed > 50
    assert counts["torn"] == mixed * MIXED_COUNT
    assert counts["complete"] == (len(of_ruby) - mixed) * MIXED_COUNT == counts["samples"] - counts["torn"]


@pytest.mark.target("threads.rb")
def test_replayed_stack_copies(ruby, rbdump, tmp_path):
    with contextlib.closing(Target(ruby.path, "threads.rb")) as target:
        wait_until_it_reads(target.pid)
        dumped = json.loads(run(rbdump, "-p", str(target.pid), "--json").stdout)
        check(dumped, target, ruby)
        recording = replay(target, tmp_path, "save")
    profile = report(rbdump, recording, "--idle")
    threads = [thread for thread in dumped["threads"] if thread["fiber"] is None or thread["fiber"]["current"]]
    assert len(threads) > 50
    assert profile.counts["samples"] == profile.counts["complete"] == COUNT * len(threads)
    for thread in threads:
        spans = [one for one in profile.spans if one.thread["tid"] == thread["tid"]]
        assert {names(one.frames) for one in spans} == {names(thread["frames"])}
        assert sum(one.weight for one in spans) == COUNT * PERIOD
    page = run(rbdump, "report", str(recording), "--idle", "-f", "flamegraph")
    assert page.returncode == 0
    shown = {json.loads(text) for text in re.findall(r'^("(?:[^"\\]|\\.)*"),?$', page.stdout, re.M)}
    assert {frame["name"] for thread in threads for frame in thread["frames"]} <= shown


@pytest.mark.target("threads.rb")
def test_lost_stack_copies(ruby, rbdump, tmp_path):
    """Names are not found in time, and there is no room for more samples: each that is lost is counted, in all formats."""
    with contextlib.closing(Target(ruby.path, "threads.rb")) as target:
        wait_until_it_reads(target.pid)
        recording = replay(target, tmp_path, "save", room=STARVED_BYTES)
    profile = report(rbdump, recording, "--idle")
    lost = [one for one in profile.spans if [frame["name"] for frame in one.frames] == [LOST]]
    number = sum(one.count for one in lost)
    threads = len({one.thread["tid"] for one in profile.spans})
    assert threads > 50 and profile.counts["samples"] == COUNT * threads
    assert profile.counts["unreadable"] == number == COUNT * len({one.thread["tid"] for one in lost})
    assert 0 < number < profile.counts["complete"] + number == profile.counts["samples"]
    seconds = sum(one.weight for one in lost) / SECOND
    assert seconds == number * PERIOD / SECOND
    for form in FORMATS:
        output = tmp_path / form
        done = run(rbdump, "report", str(recording), "--idle", "-f", form, "-o", str(output))
        assert (done.returncode, done.stderr) == (0, ""), form
        data = output.read_bytes()
        assert LOST.encode() in (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data), form
    collapsed = (tmp_path / "collapsed").read_text()
    assert sum(int(line.rpartition(" ")[2]) for line in collapsed.splitlines() if LOST in line) == round(seconds * 1e6)
