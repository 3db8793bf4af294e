"""What the tests of recordings share: targets of known shares, and what holds of every recording."""

import re
import time

import pytest
from harness import kernel
from harness.process import is_untouched, schedstat
from harness.recording import (
    SECOND,
    Running,
    counts_in,
    record,
    report,
    timelines,
    warnings_in,
)

FAILED, NOT_RUBY, NO_PERMISSION, USAGE = 2, 3, 4, 64
POINTS = 0.03
# When a recording has begun at the latest, on a machine that stands still for a second now and then.
START_BOUND = 10 * SECOND
STALL = 5 * SECOND  # and for how long it stands still at most
LOOPS = ("Loops#a", "Loops#b", "Loops#c")
# What a thread of phases.rb is in while it does what its timeline calls so.
PHASES = {"Phases#collect": "gc", "Phases#compute": "cpu", "Phases#receive": "blocked", "Phases#rest": "sleeping"}
# The mode `kernel`, if it must work here; if not, tests/test_kernel.py says why.
IN_KERNEL = ["kernel"] if kernel.why_not() is None else []
rates_and_modes = pytest.mark.parametrize(
    "rate, mode",
    [(99, "paused"), (1000, "paused"), (99, "unpaused"), *((99, mode) for mode in IN_KERNEL)],
    ids=["99-paused", "1000-paused", "99-unpaused", *(f"99-{mode}" for mode in IN_KERNEL)],
)
modes = pytest.mark.parametrize("mode", ["paused", "unpaused", *IN_KERNEL])
# Where the oldest Ruby is of outer_rubies: how a state is found is the same in each mode, but for who reads it.
paused_on_the_oldest = pytest.mark.parametrize(
    "mode", ["paused", *(pytest.param(mode, marks=pytest.mark.newest_ruby) for mode in ["unpaused", *IN_KERNEL])]
)


def check_refusal(done, status, *words):
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("rbdump: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def close(measured, truth, points=POINTS):
    """Whether all shares are within so many points of what the target says."""
    return all(abs(measured.get(key, 0) - truth.get(key, 0)) <= points for key in measured.keys() | truth.keys())


def check_counts(profile, errors, rate=None):
    """The line at the end, the counts, and the samples in the spans are one; so many a second, or said to be late."""
    line = counts_in(errors)
    assert {key: profile.counts[key] for key in line} == line
    # Some were taken late, others not at all; none is counted twice, so no share of those that were due is above one.
    assert profile.counts["missed"] <= profile.counts["late"] <= profile.counts["samples"] + profile.counts["missed"]
    for warning in warnings_in(errors):
        assert float(re.search(r"warning: ([0-9.]+) %", warning)[1]) <= 100, errors
    verdicts = ("complete", "truncated", "torn", "unreadable")
    assert sum(profile.counts[verdict] for verdict in verdicts) == profile.counts["samples"]
    in_spans = dict.fromkeys(verdicts, 0)
    for one in profile.spans:
        in_spans[one.verdict] += one.count if one.state != "starting" else 0  # nothing was looked at
    assert in_spans == {verdict: profile.counts[verdict] for verdict in verdicts}, (in_spans, profile.counts)
    if rate:
        # Since the first sample: what comes before it, and after the last one, takes longer on a busy machine.
        spans = profile.of(main=True)
        main = sum(one.count for one in spans)
        rounds = rate * (max(one.end for one in spans) - min(one.start for one in spans)) / SECOND
        assert main <= 1.02 * rounds + 2
        assert main + profile.counts["late"] + profile.counts["skipped"] >= 0.95 * rounds - 2, (main, profile.counts, rounds)


def unseen(profile, spans):
    """
    For what share of the weight of spans nobody looked: of that, only the sample after it tells, and shares may be off by
    so much. A sample or two that are late are not that; all of a thread that was not stopped in time is.
    """
    period = SECOND / profile.answer["rate"]
    parts = [one.weight if is_not_stopped(one) else max(0, one.weight - (one.count + 2) * period) for one in spans]
    return sum(parts) / sum(one.weight for one in spans)


def is_not_stopped(one):
    """Whether a thread was to be stopped and did not in time, which on a busy machine depends on when it gets a CPU."""
    return any(frame["name"] == "(torn: not-stopped)" for frame in one.frames)


def check_well_formed(profile):
    """Spans of one thread ascend and do not overlap; what is marked says so."""
    ends = {}
    for one in profile.spans:
        key = (one.pid, id(one.thread))
        assert one.start >= ends.get(key, 0), (one.start, ends[key])
        ends[key] = one.end
        assert one.end <= profile.duration + SECOND
        marks = [frame["name"] for frame in one.frames if frame["kind"] == "mark"]
        if one.verdict == "complete":
            assert not any(verdict in mark for verdict in ("truncated", "torn", "unreadable") for mark in marks), marks
        if one.state == "starting":
            assert any("starting" in mark for mark in marks), one.frames


def stood_still(profile, seconds):
    """Whether rbdump got no CPU for a while: it says that it missed samples, or it ended much too late."""
    counts = profile.counts
    return counts["missed"] > 0.01 * (counts["samples"] + counts["missed"]) or profile.duration > (seconds + 0.3) * SECOND


def undisturbed(make, seconds):
    """
    What `make()` gives, the first of which is the profile of a recording of so many seconds. Made again if the machine stood
    still, twice at most: the last recording is judged as any other.
    """
    for _ in range(3):
        made = make()
        if not stood_still(made[0], seconds):
            break
    return made


def recorded_target(*arguments, options=()):
    """
    The profile with all that waits, standard error, the timelines of the target, and for how many ns its main thread waited for
    a CPU at most; undisturbed.
    """
    return undisturbed(lambda: record_target(*arguments, options=options), options[options.index("-d") + 1])


def record_target(ruby, rbdump, file, script, *arguments, options=()):
    with Running(ruby, f"shares/{script}", *arguments) as target:
        assert target.first_line == "ready"
        before, waited = time.time_ns(), schedstat(target.pid).waited
        status, out, errors = record(rbdump, "-p", target.pid, *options, file=file)
        after, waited = time.time_ns(), schedstat(target.pid).waited - waited
        assert (status, out) == (0, ""), errors
        assert is_untouched(target.pid)
        truth = timelines(target.finish())
    profile = report(rbdump, file, "--idle")
    assert before <= profile.start <= profile.start + profile.duration <= after
    check_well_formed(profile)
    return profile, errors, truth, waited


def interval(profile, spans):
    """From when to when a thread is in a profile: nearly all of the time in which any is."""
    begin, end = min(one.start for one in spans), max(one.end for one in spans)
    last = max(one.end for one in profile.spans)
    # The end of a recording can come late, too.
    assert begin < START_BOUND and profile.duration - last < START_BOUND, (begin, last, profile.duration)
    assert end - begin >= 0.9 * (last - begin), (begin, end, last)
    return profile.start + begin, profile.start + end
