"""Targets that never stand still: what is printed is right, or marked; and they run on."""

import json
import os
import re
import time

import pytest
from conftest import note_not_applicable
from harness import redefined
from harness.bounds import poisson_most
from harness.dump import current, run
from harness.process import is_untouched, wait_until
from harness.recording import Running

# Paused, some of the churns have their main thread in a torn window, which is told, in up to one dump of ten: of so many,
# most have to be whole.
DUMPS, DUMPS_PAUSED = 8, 16
DUMPS_OF_SOAK, DUMPS_PAUSED_OF_SOAK = 12, 24
# What the main thread's oldest frame may be while it runs fibers: a fiber's stack begins with the fiber's block, or
# with a method that an Enumerator calls; one that has just been made, or is about to end, has no frame.
OLDEST = {"fibers": {"<main>", "block in fibers", "block in Object#fibers", "each", "Array#each", "Enumerator#each", None}}


def impossible(frames):
    """What cannot be of the stack of the target's `calls`, innermost frame first; None if it can all be."""
    if frames and frames[0]["kind"] == "cfunc":
        frames = frames[1:]  # what any method may be in
    steps = [frame for frame in frames if frame["path"] == "calls.rb"]
    if steps != frames[: len(steps)] or len(steps) > 21:
        return "frames of calls.rb among others, or too many"
    numbers = [int(re.fullmatch(r"(?:Calls#)?step_(\d+)", frame["label"])[1]) for frame in steps]
    for callee, caller, frame in zip(numbers, numbers[1:], steps[1:]):
        called = {4: (caller * 5 + 1) % 16, 6: (caller * 3 + 2) % 16}.get(frame["line"])
        if callee != called:
            return f"step_{caller} at line {frame['line']} has not called step_{callee}"
    if numbers and numbers[-1] != 0:
        return f"the first step is step_{numbers[-1]}"
    return None


def may_raise_priority():
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    except PermissionError:
        return False
    os.sched_setscheduler(0, policy, param)
    return True


def is_told(found):
    return (found["complete"] is True) == (found["reason"] is None)


def check_marks(status, answer):
    """The exit status is what verdicts and lists say; a thread that is complete has no frame that could not be read."""
    verdicts = {thread["verdict"] for thread in answer["threads"]}
    assert verdicts <= {"complete", "truncated", "torn", "unreadable"}
    lists = [answer["thread_list"], answer["fibers"]]
    assert all(is_told(found) for found in lists)
    assert status == (0 if verdicts == {"complete"} and all(found["complete"] for found in lists) else 1)
    for thread in answer["threads"]:
        if thread["verdict"] == "complete":
            assert {frame["kind"] for frame in thread["frames"]} <= {"ruby", "cfunc"}
            assert thread["reason"] is None
        else:
            assert thread["reason"]


@pytest.mark.outer_rubies
@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
@pytest.mark.parametrize(
    "churn",
    [
        # How frames come and go differs between the oldest Ruby and the newest (dumper/ruby/), not what is read beside them.
        "calls", "blocks", "threads", "exceptions",
        *(pytest.param(churn, marks=pytest.mark.newest_ruby) for churn in ("fibers", "garbage", "compaction", "code")),
    ],
)  # fmt: skip
def test_right_or_marked(ruby, start, rbdump, churn, mode, times):
    check_dumps(start(ruby, "churn.rb", churn), rbdump, churn, mode, times)


@pytest.mark.newest_ruby
@pytest.mark.long
@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
@pytest.mark.parametrize("churn", ["calls", "blocks", "garbage", "exceptions"])
@pytest.mark.parametrize("jit", ["yjit", "zjit"])
def test_right_or_marked_in_code_of_a_jit(ruby, start, rbdump, jit, churn, mode, times):
    """3.1's YJIT publishes a frame before it is filled in, and no window tells where: left out here."""
    if jit not in ruby.jits or ruby.series < (3, 2):
        note_not_applicable(f"what never stands still, in code of {jit.upper()}, on {ruby.id}: not built in, or of 3.1")
        return
    check_dumps(start(ruby, "churn.rb", churn, flags=ruby.jits[jit]), rbdump, churn, mode, times)


def check_dumps(target, rbdump, churn, mode, times):
    mains = 0
    dumps = times(DUMPS, DUMPS_OF_SOAK) if mode else times(DUMPS_PAUSED, DUMPS_PAUSED_OF_SOAK)
    for _ in range(dumps):
        done = run(rbdump, "-p", target.pid, "--json", *mode)
        assert done.stderr == ""
        assert done.returncode in (0, 1)
        answer = json.loads(done.stdout)
        check_marks(done.returncode, answer)
        for thread in current(answer):
            mains += bool(thread["main"] and thread["reason"] == "window")
            if thread["verdict"] != "complete":
                continue
            labels = [frame["label"].rpartition("#")[2] for frame in thread["frames"]]
            if thread["name"] == "beside":
                assert labels == ["pop", "block in <main>"]
            if thread["main"]:
                mains += 1
                oldest = thread["frames"][-1]["label"] if thread["frames"] else None
                assert oldest in OLDEST.get(churn, {"<main>"})
                if churn == "calls":
                    assert not impossible(thread["frames"]), impossible(thread["frames"])
        assert target.process.poll() is None
    if not mode:
        assert mains > dumps * 0.6, "a pause is there to get whole stacks"
    wait_until(lambda: is_untouched(target.pid), "it runs on")
    assert target.release() == 0


@pytest.mark.outer_rubies
@pytest.mark.parametrize("mode", ["paused", "unpaused"])
def test_names_of_what_is_redefined(ruby, rbdump, mode):
    """Code and names are read after the stacks, while methods are redefined and collected: none is another's."""
    if ruby.series < (2, 4):
        note_not_applicable(f"redefining.rb on {ruby.id}: needs Ruby 2.4")
        return
    judge, seen, pauses, complete, half_made = redefined.Judge(), [], [], 0, []
    # Unpaused, up to 2.7, it is not known whether a frame is whole: at most 1.44 of a thousand stacks (doc/experiments.md).
    # Without a priority, the main thread can run while its stack is copied, and be in the same place twice.
    half_made_most = 0
    if mode == "unpaused" and (ruby.series < (3, 0) or not may_raise_priority()):
        half_made_most = poisson_most(1.44 * DUMPS_PAUSED / 1000)
    with Running(ruby, redefined.SCRIPT) as target:
        assert target.first_line == "ready"
        for _ in range(DUMPS_PAUSED):
            before = time.time_ns()
            done = run(rbdump, "-p", str(target.pid), "--json", *(["--no-stop"] if mode == "unpaused" else []))
            answer = json.loads(done.stdout)
            check_marks(done.returncode, answer)
            pauses.append(answer["pauses"])
            (main,) = [thread for thread in answer["threads"] if thread["main"]]
            if main["verdict"] != "complete":
                continue
            complete += 1
            number, why = judge.of_stack(main["frames"])
            if why is not None:
                half_made.append((why, main["frames"]))
                assert len(half_made) <= half_made_most, half_made
                # The newest frame is that of an earlier call: no other frame, and no name, is wrong.
                assert re.search(r" called from line | in one stack$", why), half_made
            elif number is not None:
                seen.append((number, before, time.time_ns()))
        assert is_untouched(target.pid)
        ended = dict(tuple(map(int, line.split())) for line in target.finish().splitlines())
    for number, before, after in seen:
        assert before <= ended[number] and ended.get(number - 1, 0) <= after, (number, before, after)
    assert complete > (0.6 if mode == "paused" or may_raise_priority() else 0.2) * DUMPS_PAUSED and len(seen) >= DUMPS_PAUSED // 8, (complete, len(seen))
    # Nearly each time there is code that was not seen before the stop: it needs no other one.
    if mode == "paused":
        assert sum(count == 1 for count in pauses) >= 0.25 * DUMPS_PAUSED, pauses
