"""Recordings: each stack is one that the target can have."""

import collections
import contextlib
import json
import re
import signal

import pytest
from conftest import note_not_applicable
from harness import redefined
from harness.process import is_untouched
from harness.recorded import check_counts, check_well_formed, modes
from harness.recording import Recording, Running, record, report
from test_graph import is_watcher, judge


@pytest.mark.outer_rubies
@modes
@pytest.mark.parametrize(
    "variants",
    [("churn", "threads", "exceptions"), ("blocks", "fibers", "gc"), ("tailcalls", "deep", "ractors")],
    ids="+".join,
)
def test_recorded_stacks_are_legal(ruby, rbdump, tmp_path, file, variants, mode):
    """Several targets of known calls in one recording: each stack that is complete is one of its process's own."""
    if ruby.series < (2, 6):
        note_not_applicable(f"graph.rb on {ruby.id}: needs Ruby 2.6")
        return
    if ruby.series < (3, 0):
        variants = [variant for variant in variants if variant != "ractors"]
    with contextlib.ExitStack() as stack:
        targets, oracles = {}, {}
        for seed, variant in enumerate(variants, 1):
            folder = tmp_path / variant
            folder.mkdir()
            target = stack.enter_context(Running(ruby, "graph/graph.rb", variant, seed, folder))
            assert target.first_line == "ready"
            targets[target.pid] = variant
            oracles[target.pid] = json.loads((folder / "oracle.json").read_text())
        pids = [word for pid in targets for word in ("-p", pid)]
        # Of one that moves objects nearly all the time, there are few spans.
        seconds = 4.5 if "gc" in variants else 1.5
        status, _, errors = record(rbdump, *pids, "-r", 1000, "-d", seconds, "--mode", mode, file=file)
        assert status == 0, errors
        assert all(is_untouched(pid) for pid in targets)
    profile = report(rbdump, file, "--idle")
    check_counts(profile, errors)
    check_well_formed(profile)
    assert set(profile.pids()) == set(targets)
    for pid, variant in targets.items():
        # Spans: a thread that waits for a CPU is seen at the same place again, and is wrong or right only once.
        complete, wrong = 0, []
        for one in profile.of(pid):
            if one.verdict != "complete" or one.state == "starting" or any(is_watcher(frame) for frame in one.frames):
                continue
            complete += 1
            why = judge(oracles[pid], one.frames)
            if why:
                wrong.append(why)
        assert complete >= 30, (variant, complete, profile.counts)
        # At most 1.44 of a thousand, as measured (doc/experiments.md), and three standard deviations.
        expected = complete * 1.44 / 1000 if mode == "unpaused" and ruby.series < (3, 0) else 0
        assert len(wrong) <= expected + 3 * expected**0.5, (variant, complete, wrong[:5])


@pytest.mark.long
@modes
def test_what_is_dropped_is_not_seen_again(ruby, rbdump, file, mode):
    """Code that comes to be where other code was is never taken for that: each method is seen in its own time alone."""
    with Running(ruby, "shares/dropping.rb") as target:
        assert target.first_line == "ready"
        with Recording(rbdump, "-p", target.pid, "-r", 2000, "--mode", mode, file=file) as recording:
            assert target.line() == "many"
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        assert is_untouched(target.pid)
        dropped = int(target.finish())
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    seen, complete = [], 0
    for one in sorted(profile.of(main=True), key=lambda one: one.start):
        frames = [frame for frame in one.frames if "dropped_" in frame["name"]]
        complete += one.count if one.verdict == "complete" else 0
        if not frames:
            continue
        (number,) = {int(re.search(r"dropped_([0-9]+)$", frame["name"])[1]) for frame in frames}
        assert {frame["path"] for frame in frames} == {f"dropped_{number}.rb"}
        seen.append(number)
    assert seen == sorted(seen)
    # There are thousands of collections a second: the first sample of a method is often one that is not vouched for.
    assert complete >= 0.3 * profile.counts["samples"] > 100, profile.counts
    # Each that was looked at is: a name is not kept for want of a new one.
    assert len(set(seen)) >= 0.3 * (max(seen) - min(seen) + 1) > 100, (len(set(seen)), seen[0], seen[-1], dropped)


@pytest.mark.long
@pytest.mark.outer_rubies
@modes
def test_blocks_that_are_moved(ruby, rbdump, file, mode):
    """Where a block of a method was, another one comes to be that the same method evals: neither is taken for the other."""
    if ruby.series < (2, 7):
        note_not_applicable(f"moved_blocks.rb on {ruby.id}: there is no compaction before 2.7")
        return
    with Running(ruby, "shares/moved_blocks.rb") as target:
        assert target.first_line == "ready"
        with Recording(rbdump, "-p", target.pid, "-r", 4000, "--mode", mode, file=file) as recording:
            assert target.line(seconds=120) == "many"
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        target.finish()
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    callers = collections.defaultdict(collections.Counter)
    for one in profile.of(main=True):
        frames = list(one.frames)
        for callee, caller in zip(frames, frames[1:]):
            if callee["name"] in ("Moved#work_block", "Moved#work_eval"):
                evaled = caller["path"].startswith("(eval")
                callers[callee["name"]][evaled] += one.count
    assert set(callers["Moved#work_eval"]) == {True}, callers
    assert set(callers["Moved#work_block"]) == {False}, callers
    assert callers["Moved#work_eval"][True] > 1000 and callers["Moved#work_block"][False] > 100, callers


@pytest.mark.long
@pytest.mark.any_ruby
@modes
def test_names_of_what_is_redefined(ruby, rbdump, file, mode):
    """Methods are redefined in all ways: a name is of the line that calls it, of its neighbours' time, and of its sample's."""
    if ruby.series < (2, 4):
        note_not_applicable(f"redefining.rb on {ruby.id}: needs Ruby 2.4")
        return
    with Running(ruby, redefined.SCRIPT) as target:
        assert target.first_line == "ready"
        status, _, errors = record(rbdump, "-p", target.pid, "-r", 2000, "-d", 4, "--mode", mode, file=file)
        assert status == 0, errors
        told = target.finish()
    judge = redefined.Judge()
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    judge.judge(profile, [tuple(map(int, line.split())) for line in told.splitlines()])
    assert judge.wrong.total() <= redefined.torn_most(ruby, mode, judge.of_generations), judge.wrong
    assert judge.of_generations > 100 and judge.named > 0.8 * judge.samples, (judge.samples, judge.named, judge.marks)


@pytest.mark.long
@pytest.mark.any_ruby
@modes
def test_methods_that_change_places(ruby, rbdump, file, mode):
    """Where the code of one method was, that of another is: none is ever seen under the line that calls the other."""
    with Running(ruby, "shares/swapped.rb") as target:
        ready, *lines = target.first_line.split()
        assert ready == "ready"
        status, _, errors = record(rbdump, "-p", target.pid, "-r", 5000, "-d", 6, "--mode", mode, file=file)
        assert status == 0, errors
        assert is_untouched(target.pid)
        target.finish()
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    seen = collections.Counter()
    for one in profile.of(main=True):
        frames = [(frame["name"], frame["line"]) for frame in one.frames if frame["name"].startswith("Swapped#")]
        for (name, _), (caller, line) in zip(frames, frames[1:]):
            if caller == "Swapped#work":
                seen[name, line] += one.count
    assert seen.keys() == {("Swapped#left", int(lines[0])), ("Swapped#right", int(lines[1]))}, seen
    assert min(seen.values()) > 100, seen
    assert profile.counts["complete"] >= 0.9 * profile.counts["samples"] > 100, profile.counts
