"""Recordings: shares of methods and of states, against the target's own clocks."""

import collections
import signal
import time

import pytest
from harness.dump import run
from harness.process import schedstat
from harness.recorded import (
    IN_KERNEL,
    LOOPS,
    PHASES,
    POINTS,
    check_counts,
    close,
    interval,
    is_not_stopped,
    modes,
    paused_on_the_oldest,
    rates_and_modes,
    recorded_target,
    unseen,
)
from harness.recording import SECOND, Recording, Running, collapsed, report, shares_of


@pytest.mark.alone
@pytest.mark.newest_ruby
@rates_and_modes
def test_shares_of_methods(ruby, rbdump, file, rate, mode):
    """Three loops of 60, 30 and 10 %, by wall and by CPU time."""
    profile, errors, truth, waited = recorded_target(
        ruby, rbdump, file, "loops.rb", options=["-r", rate, "-d", 3.5, "--mode", mode]
    )
    assert (profile.answer["rate"], profile.answer["mode"]) == (rate, mode)
    assert profile.duration >= 3.4 * SECOND
    truth, main = truth["main"], profile.of(main=True)
    wall = {f"Loops#{key}": share for key, share in truth.wall(*interval(profile, main)).items()}
    cpu = {f"Loops#{key}": share for key, share in truth.cpu(*interval(profile, main)).items()}

    def method(one):
        return one.method(*LOOPS)

    points = POINTS + unseen(profile, main)
    assert close(shares_of(main, method), wall, points), (shares_of(main, method), wall, points)
    # A weight is real time: that of a thread that was there all the time is all the time.
    begin, end = interval(profile, main)
    assert 0.99 * (end - begin) <= sum(one.weight for one in main) <= end - begin
    by_cpu = report(rbdump, file, "--by", "cpu").of(main=True)
    # Where the machine is busy, a thread on its way to a CPU is not on one: wall and CPU time then are not the same.
    points += max(abs(wall.get(key, 0) - cpu.get(key, 0)) for key in wall.keys() | cpu.keys())
    assert close(shares_of(by_cpu, method), cpu, points), (shares_of(by_cpu, method), cpu)
    # A loop is itself the innermost but for a look at the clock now and then; and if it waits for a CPU elsewhere.
    rubys = [(one, [frame["name"] for frame in one.frames if frame["kind"] == "ruby"]) for one in main]
    innermost = sum(one.weight for one, names in rubys if names and names[0] in LOOPS)
    assert innermost > (0.95 - unseen(profile, main)) * sum(one.weight for one in main) - waited, (innermost, waited)
    agreement = truth.agreement(profile, main, lambda one: (method(one) or "none")[-1])
    assert agreement > 0.85 - unseen(profile, main), agreement
    assert mode == "kernel" or not any(one.estimated for one in profile.spans)
    # The same of a format that knows of no time.
    lines = collapsed(run(rbdump, "report", file, "-f", "collapsed", "--by", "cpu").stdout)
    weights = {name: sum(weight for frames, weight in lines if name in ";".join(frames)) for name in LOOPS}
    total = sum(weights.values())
    assert total >= (0.95 - unseen(profile, main)) * sum(weight for _, weight in lines) > 0
    assert close({name: weight / total for name, weight in weights.items()}, cpu, points), (weights, cpu)
    check_counts(profile, errors)


@pytest.mark.alone
@pytest.mark.any_ruby
@pytest.mark.parametrize("mode", ["unpaused", "paused"])
def test_share_of_stacks_that_are_ever_new(ruby, rbdump, file, mode):
    """Where nearly all stacks are known, those that are not are seen as often as they are there."""

    # Those in which the method is called: it is not yet there for the first of what the target counts.
    call = ("turns.rb", 5)

    def fresh(profile):
        spans = profile.of(main=True)
        return [one for one in spans if any((frame["path"], frame["line"]) == call for frame in one.frames)]

    with Running(ruby, "shares/fresh.rb") as target:
        assert target.first_line == "ready"
        with Recording(rbdump, "-p", target.pid, "-r", 1000, "--mode", mode, file=file) as recording:
            recording.wait_until(lambda profile: len(fresh(profile)) >= 400, "there are enough of them")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        share = float(target.finish())
    assert 0.02 < share < 0.2
    profile = report(rbdump, file)
    main = profile.of(main=True)
    # Of a span in which the target, or rbdump, waited for a CPU, three samples count: such a wait can come anywhere.
    found, all_of_it = ([min(one.weight, 3 * SECOND // 1000) for one in spans] for spans in (fresh(profile), main))
    # Each span is one of those by chance, and with all of its weight: five standard deviations.
    deviation = (share * (1 - share) * sum(weight**2 for weight in all_of_it)) ** 0.5
    assert sum(found) <= share * sum(all_of_it) + 5 * deviation, (sum(found) / sum(all_of_it), share, deviation)
    # An unpaused copy is made again if the stack has changed meanwhile: then one of those that come and go may be over. The
    # longer rbdump waits for a CPU between two copies, the more often that happens.
    least = share * (0.6 if mode == "unpaused" else 1)
    assert sum(found) >= least * sum(all_of_it) - 5 * deviation, (sum(found) / sum(all_of_it), share, deviation)
    assert 5 * deviation < share * sum(all_of_it) / 2, (deviation, sum(all_of_it))  # it says something


@pytest.mark.alone
@pytest.mark.outer_rubies
@paused_on_the_oldest
def test_shares_of_waiting_for_the_gvl(ruby, rbdump, file, mode):
    """Two threads that want the CPU: each waits for the other about half of its time."""
    options = ["-r", 99, "-d", 3.5, "--mode", mode]
    profile, errors, truth, _ = recorded_target(ruby, rbdump, file, "gvl.rb", options=options)
    check_counts(profile, errors)
    waiting = report(rbdump, file, "--by", "gvl")
    assert {one.state for one in waiting.spans} == {"gvl"}
    for name in ("left", "right"):
        found = profile.of(name=name)
        told = truth[name].wall(*interval(profile, found))
        # Where the machine is busy, who has the GVL may have to wait for a CPU.
        unclear = told.pop("switch", 0)
        assert 0.25 < told["gvl"] / (told["gvl"] + told["cpu"]) < 0.75, told
        unclear += unseen(profile, found)
        states = shares_of(found, lambda one: one.state)
        assert close(states, told, POINTS + unclear), (name, states, told, unclear)
        assert truth[name].agreement(profile, found, lambda one: one.state) > 0.85 - unclear
        all_of_it = sum(one.weight for one in found)
        share = sum(one.weight for one in waiting.of(name=name)) / all_of_it
        assert abs(share - told["gvl"]) <= POINTS + unclear, (name, share, told, unclear)
        complete = [one for one in found if one.verdict == "complete"]
        assert sum(one.count for one in complete) >= 0.9 * sum(one.count for one in found if not is_not_stopped(one))
        methods = shares_of(complete, lambda one: one.method("Contest#left", "Contest#right"))
        assert methods.get(f"Contest#{name}", 0) > 0.99, methods
    # The main thread is in Thread#join, once it has had the GVL to get there.
    main = profile.of(main=True)
    there = min(one.start for one in main if (one.state, one.method("Thread#join")) == ("sleeping", "Thread#join"))
    joining = shares_of([one for one in main if one.start >= there], lambda one: (one.state, one.method("Thread#join")))
    assert joining.pop(("sleeping", "Thread#join"), 0) > 0.9, joining
    assert sum(share for (state, _), share in joining.items() if state != "gvl") < 0.02, joining


@pytest.mark.alone
@pytest.mark.outer_rubies
@paused_on_the_oldest
def test_shares_of_states(ruby, rbdump, file, tmp_path, mode):
    """A quarter of the time the garbage collector, a quarter work, the rest a read that waits, and sleep."""
    options = ["-r", 99, "-d", 3.5, "--mode", mode]
    profile, errors, truth, waited = recorded_target(ruby, rbdump, file, "phases.rb", tmp_path, options=options)
    truth, main = truth["main"], profile.of(main=True)
    told = truth.wall(*interval(profile, main))
    unclear = unseen(profile, main)
    methods = shares_of(main, lambda one: PHASES.get(one.method(*PHASES)))
    assert close(methods, told, POINTS + unclear), (methods, told, unclear)
    agreement = truth.agreement(profile, main, lambda one: PHASES.get(one.method(*PHASES)))
    assert agreement > 0.85 - unclear, agreement
    # Who was woken, and waits for a CPU, still rests or receives by its own clock, but not for the kernel.
    points = POINTS + unclear + waited / sum(one.weight for one in main)
    states = shares_of(main, lambda one: one.state)
    assert close(states, told, points), (states, told, points)
    syscalls = shares_of([one for one in main if one.state == "blocked"], lambda one: one.syscall)
    assert syscalls.get("read", 0) > 0.95, syscalls
    # Each view has what it is of, and of the same weight.
    views = {by: report(rbdump, file, "--by", by) for by in ("wall", "cpu", "gvl", "gc")}
    seen = {by: {one.state for one in view.of(main=True)} for by, view in views.items()}
    assert seen["gc"] == {"gc"} and "cpu" in seen["cpu"] <= {"cpu", "gc"} and "sleeping" not in seen["wall"], seen
    everything = sum(one.weight for one in main)
    for by, what in [("gc", {"gc"}), ("cpu", seen["cpu"]), ("wall", {"cpu", "gc", "blocked"})]:
        share = sum(one.weight for one in views[by].of(main=True)) / everything
        assert abs(share - sum(told[state] for state in what)) <= points, (by, share, told, points)
    collecting = shares_of(views["gc"].of(main=True), lambda one: one.method(*PHASES))
    # In the kernel, stacks are named later than they are copied: when the collection has gone on, some of them have no names.
    marked = sum(one.weight for one in views["gc"].of(main=True) if one.verdict == "unreadable") if mode == "kernel" else 0
    assert collecting.get("Phases#collect", 0) > 0.95 - marked / (everything * told["gc"]), collecting
    check_counts(profile, errors)


@pytest.mark.alone
@pytest.mark.newest_ruby
@modes
def test_blocked_while_it_has_the_gvl(ruby, rbdump, file, mode):
    """Ruby says that it runs: that it does not is the kernel's to say, also after it did for hundreds of samples."""
    options = ["-r", 1000, "-d", 2.5, "--mode", mode]
    profile, errors, truth, waited = recorded_target(ruby, rbdump, file, "holding.rb", options=options)
    truth, main = truth["main"], profile.of(main=True)
    told = truth.wall(*interval(profile, main))
    assert 0.1 < told["blocked"] < 0.5, told
    # Who was woken, and waits for a CPU, still holds by its own clock, but not for the kernel.
    points = POINTS + unseen(profile, main) + waited / sum(one.weight for one in main)
    states = shares_of(main, lambda one: one.state)
    assert close(states, told, points), (states, told, points)
    methods = shares_of(main, lambda one: (one.state, one.method("Holding#compute", "Holding#hold")))
    assert methods.get(("cpu", "Holding#compute"), 0) > told["cpu"] - points, (methods, points)
    assert methods.get(("blocked", "Holding#hold"), 0) > told["blocked"] - points, (methods, points)
    syscalls = shares_of([one for one in main if one.state == "blocked"], lambda one: one.syscall)
    # A stop ends a poll(2) for a moment: the kernel then calls it so.
    assert syscalls.get("poll", 0) + syscalls.get("restart_syscall", 0) > 0.95, syscalls
    # In the kernel, what is counted are pieces of time.
    check_counts(profile, errors, None if mode == "kernel" else 1000)


@pytest.mark.alone
@pytest.mark.any_ruby
@modes
def test_thread_that_naps(ruby, rbdump, file, mode):
    """
    A thread that sleeps for a moment again and again. Its state is not of before it fell asleep or woke up; and it is seen to
    compute as often as it does: samples do not keep step with the timers of the kernel.
    """
    with Running(ruby, "shares/naps.rb") as target:
        assert target.first_line == "ready"
        with Recording(rbdump, "-p", target.pid, "-r", 1000, "--mode", mode, file=file) as recording:
            recording.wait_for_samples()
            before, began = schedstat(target.pid), time.time_ns()
            recording.wait_until(lambda profile: profile.end() > began + 4 * SECOND, "four seconds are there")
            after, ended = schedstat(target.pid), time.time_ns()
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        target.finish()
    profile = report(rbdump, file, "--idle")
    main = [one for one in profile.of(main=True) if began <= profile.start + one.start <= ended]
    states = collections.Counter()
    for one in main:
        states[one.state, one.method("Naps#compute", "Kernel#sleep")] += one.count
    computing = states["cpu", "Naps#compute"]
    assert computing > 40, states
    assert states["blocked", "Kernel#sleep"] + states["sleeping", "Naps#compute"] < 0.03 * computing + 3, states
    if mode == "paused":
        share = sum(one.count for one in main if one.state == "cpu") / states.total()
        ran, waited = ((now - then) / (ended - began) for now, then in zip(after[:2], before[:2]))
        # What comes by chance: five standard deviations. And that for which nobody looked.
        points = 5 * (share * (1 - share) / states.total()) ** 0.5 + unseen(profile, main)
        # A thread that waits for a CPU after a stop is `cpu`; one that waits after its sleep still `sleeping`.
        assert ran - points <= share <= ran + waited + points, (share, ran, waited, points, states)


@pytest.mark.alone
@pytest.mark.any_ruby
@pytest.mark.parametrize("option, states", [("--on-cpu", {"cpu", "gc"}), ("--gc", {"gc"})], ids=["on-cpu", "gc"])
def test_only_some_states(ruby, rbdump, file, tmp_path, option, states):
    """Nothing is recorded of threads that wait, or do anything but collect garbage."""
    options = ["-r", 500, "-d", 2, option]
    profile, _, truth, waited = recorded_target(ruby, rbdump, file, "phases.rb", tmp_path, options=options)
    main = profile.of(main=True)
    assert {one.state for one in main} == states
    begin, end = min(one.start for one in main), max(one.end for one in main)
    told = truth["main"].wall(profile.start + begin, profile.start + end)
    share = sum(one.weight for one in main) / (end - begin)
    # As in the test of all states.
    points = POINTS + unseen(profile, main) + waited / (end - begin)
    assert abs(share - sum(told[state] for state in states)) <= points, (share, told, points)


def work_of(profile, begin):
    ran = collections.Counter()
    for one in profile.of(name="runs"):
        if one.state == "cpu" and profile.start + one.start >= begin:
            ran[one.method("Runs#work", "Runs#rest")] += one.weight
    return ran


@pytest.mark.any_ruby
@pytest.mark.alone
@pytest.mark.parametrize("mode", IN_KERNEL)
def test_short_runs(ruby, rbdump, file, mode):
    """A thread that runs for less than the time between two interrupts is on a CPU where it computes, and not where it waits."""
    with Running(ruby, "shares/short_runs.rb") as target:
        with Recording(rbdump, "-p", target.pid, "-r", 99, "--mode", mode, file=file) as recording:
            # Until it has met the clock for the first time, only stacks of its waits are known.
            met = recording.wait_until(lambda profile: "Runs#work" in work_of(profile, 0), "it has met the clock").end()
            recording.wait_until(lambda profile: profile.end() > met + 4 * SECOND, "four seconds more are there")
            status, _, errors = recording.end(signal.SIGINT)
        target.finish()
    assert status == 0, errors
    ran = work_of(report(rbdump, file, "--idle"), met)
    assert ran.total() > 0 and ran["Runs#work"] >= 0.8 * ran.total(), ran
