"""Recordings: each stack is one that the target can have."""

import collections
import contextlib
import json
import re
import signal

import pytest
from conftest import note_not_applicable
from harness import kernel, redefined
from harness.dump import run
from harness.process import is_untouched, wait_until
from harness.recorded import check_counts, check_well_formed, is_not_stopped, modes
from harness.recording import CUT, SECOND, Recording, Running, record, report
from test_graph import is_watcher, judge


@pytest.mark.outer_rubies
@modes
@pytest.mark.parametrize(
    "variants",
    [
        ("churn", "threads", "exceptions"),
        # On the oldest Ruby, experiments have these (test_experiment_verdicts.py, test_kernel.py), with more stacks of each.
        pytest.param(("blocks", "fibers", "gc"), marks=pytest.mark.newest_ruby),
        pytest.param(("tailcalls", "deep", "ractors"), marks=pytest.mark.newest_ruby),
    ],
    ids="+".join,
)
def test_recorded_stacks_are_legal(ruby, rbdump, tmp_path, file, variants, mode, times):
    """Several targets of known calls in one recording: each stack that is complete is one of its process's own."""
    if ruby.series < (2, 6):
        note_not_applicable(f"graph.rb on {ruby.id}: needs Ruby 2.6")
        return
    if mode == "kernel" and not kernel.is_built_into(rbdump):
        note_not_applicable(f"sampling in the kernel, on {ruby.id}: its rbdump was built without")
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
        with Recording(rbdump, *pids, "-r", 1000, "--mode", mode, file=file) as recording:
            # Of one that moves objects nearly all the time, there are few.
            usual = times(100, 200)
            enough = collections.Counter({pid: 40 if variant == "gc" else usual for pid, variant in targets.items()})
            wait_until(lambda: not enough - complete_of(recording), "there are enough stacks of each")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        assert all(is_untouched(pid) for pid in targets)
    profile = report(rbdump, file, "--idle")
    check_counts(profile, errors)
    check_well_formed(profile)
    assert set(profile.pids()) == set(targets)
    for pid, variant in targets.items():
        stacks = judged(profile, pid)
        assert len(stacks) >= 30, (variant, len(stacks), profile.counts)
        wrong = [why for why in (judge(oracles[pid], frames) for frames in stacks) if why]
        assert len(wrong) <= redefined.torn_most(ruby, mode, len(stacks)), (variant, len(stacks), wrong[:5])
        if mode == "kernel":
            # Of a thread that was just calling or leaving a method, the outer frames are shown.
            outer = outer_frames(profile, pid)
            wrong = [why for why in (judge(oracles[pid], frames) for frames in outer) if why]
            assert not wrong, (variant, len(outer), wrong[:5])
            assert outer or variant != "churn"


def complete_of(recording):
    """
    How many complete spans of threads that do not wait there are by now, by pid. Their frames are left alone: to make those of
    many deep stacks takes so long that there are ever more of them.
    """
    if not recording.file.exists():
        return collections.Counter()
    done = run(recording.rbdump, "report", recording.file, "-f", "json")
    if done.returncode != CUT:
        return collections.Counter()
    answer = json.loads(done.stdout)
    pids = [answer["processes"][thread["process"]]["pid"] for thread in answer["threads"]]
    return collections.Counter(pids[one["thread"]] for one in answer["runs"] if one["verdict"] == "complete")


def judged(profile, pid):
    """
    The complete stacks of the graph. Of spans: a thread that waits for a CPU is seen at the same place again, and is wrong or
    right only once.
    """
    return [
        one.frames
        for one in profile.of(pid)
        if one.verdict == "complete" and one.state != "starting" and not any(is_watcher(frame) for frame in one.frames)
    ]


def outer_frames(profile, pid):
    """The stacks of the graph without the innermost frame, which was not finished."""
    return [
        one.frames[1:]
        for one in profile.of(pid)
        if one.verdict == "truncated"
        and one.frames[0]["name"] == "(torn: window)"
        and not any(frame["kind"] == "mark" or is_watcher(frame) for frame in one.frames[1:])
    ]


@pytest.mark.outer_rubies
@pytest.mark.long
@modes
def test_what_is_dropped_is_not_seen_again(ruby, rbdump, file, mode):
    """Code that comes to be where other code was is never taken for that: each method is seen in its own time alone."""
    with Running(ruby, "shares/dropping.rb") as target:
        assert target.first_line == "ready"
        with Recording(rbdump, "-p", target.pid, "-r", 2000, "--mode", mode, file=file) as recording:
            assert target.line() == "many"
            recording.wait_until(lambda profile: len(set(dropped_in(profile))) > 300, "many of them are there")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        assert is_untouched(target.pid)
        times = [tuple(map(int, line.split())) for line in target.finish().splitlines()]
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    # An estimated stack is of another moment, and says so.
    seen = dropped_in(profile)
    assert seen == sorted(seen)
    # There are thousands of collections a second: the first sample of a method is often one that is not vouched for.
    main = [one for one in profile.of(main=True) if not is_not_stopped(one)]
    complete = sum(one.count for one in main if one.verdict == "complete")
    assert complete >= 0.3 * sum(one.count for one in main) > 100, (complete, profile.counts)
    # Each that was looked at often enough is seen: a name is not kept for want of a new one.
    looks = [profile.start + one.start + one.weight * nth // one.count for one in main for nth in range(1, one.count + 1)]
    looked_at = {number for number, began, ended in times if sum(began <= look <= ended for look in looks) >= 3}
    assert len(looked_at & set(seen)) >= 0.3 * len(looked_at) > 30, (len(looked_at), len(set(seen)), seen[0], seen[-1])


def dropped_in(profile):
    """The numbers of the methods that are seen, in order of time."""
    seen = []
    for one in sorted(profile.of(main=True), key=lambda one: one.start):
        if one.estimated:
            continue
        frames = [frame for frame in one.frames if "dropped_" in frame["name"]]
        if not frames:
            continue
        (number,) = {int(re.search(r"dropped_([0-9]+)$", frame["name"])[1]) for frame in frames}
        assert {frame["path"] for frame in frames} == {f"dropped_{number}.rb"}
        seen.append(number)
    return seen


@pytest.mark.long
@pytest.mark.newest_ruby
@modes
def test_blocks_that_are_moved(ruby, rbdump, file, mode, times):
    """Where a block of a method was, another one comes to be that the same method evals: neither is taken for the other."""
    if ruby.series < (2, 7):
        note_not_applicable(f"moved_blocks.rb on {ruby.id}: there is no compaction before 2.7")
        return
    with Running(ruby, "shares/moved_blocks.rb") as target:
        assert target.first_line == "ready"
        with Recording(rbdump, "-p", target.pid, "-r", 4000, "--mode", mode, file=file) as recording:
            assert target.line() == "many"
            enough = times(50, 100)
            recording.wait_until(lambda profile: are_many(moved_callers(profile), enough), "there are enough samples of both")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        target.finish()
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    callers = moved_callers(profile)
    assert set(callers["Moved#work_eval"]) == {True}, callers
    assert set(callers["Moved#work_block"]) == {False}, callers
    assert are_many(callers, enough), callers


def moved_callers(profile):
    """{the method that a block calls: {whether that block was evaled: samples}}"""
    callers = collections.defaultdict(collections.Counter)
    for one in profile.of(main=True):
        frames = list(one.frames)
        for callee, caller in zip(frames, frames[1:]):
            if callee["name"] in ("Moved#work_block", "Moved#work_eval"):
                evaled = caller["path"].startswith("(eval")
                callers[callee["name"]][evaled] += one.count
    return callers


def are_many(callers, enough):
    return callers["Moved#work_eval"].total() > 10 * enough and callers["Moved#work_block"].total() > enough


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
    # In the kernel, a stack stands for the time up to a flush if the thread runs on: for less than a period, if the clock is exact.
    apart = SECOND // 1000 if mode == "kernel" else 0
    judge.judge(profile, [tuple(map(int, line.split())) for line in told.splitlines()], apart)
    assert judge.wrong.total() <= redefined.torn_most(ruby, mode, judge.of_generations), judge.wrong
    late = judge.marks["(torn: not-stopped)"]  # on a busy machine
    assert judge.of_generations > 100 and judge.named > 0.8 * (judge.samples - late), (judge.samples, judge.named, judge.marks)


@pytest.mark.long
@pytest.mark.any_ruby
@modes
def test_methods_that_change_places(ruby, rbdump, file, mode):
    """Where the code of one method was, that of another is: none is ever seen under the line that calls the other."""
    with Running(ruby, "shares/swapped.rb") as target:
        ready, *lines = target.first_line.split()
        assert ready == "ready"
        status, _, errors = record(rbdump, "-p", target.pid, "-r", 5000, "-d", 3, "--mode", mode, file=file)
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
    # Nearly all on a machine that is not busy: else names are found later, and a collection may come first.
    stopped = sum(one.count for one in profile.spans if not is_not_stopped(one))
    assert profile.counts["complete"] >= 0.5 * stopped > 100, profile.counts
