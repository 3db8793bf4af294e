"""Suspended fibers, ractors, M:N threads, threads that have not started or are ending: every stack that Ruby has."""

import contextlib
import json
import os
import re
import signal

import pytest
from conftest import RUBIES, note_not_applicable
from harness.core import gcore_of, read_core, settle
from harness.dump import (
    as_text,
    check,
    current,
    difference,
    dump,
    rbdumps_frames,
    rubys_frames,
    run,
    thread_of,
    without_waits,
)
from harness.process import is_untouched, wait_until, wait_until_it_reads
from harness.under_gdb import stop_in

PARTIAL = 1
MODES = ["paused", "unpaused", "core"]
HOOKS = {"block", "io_wait", "kernel_sleep"}
BUSY = {"running", "waiting_gvl"}
DUMPS, DUMPS_OF_SOAK = 8, 20  # of fibers that do not rest


def is_suspended(entry):
    """Whether it is a fiber's; a thread that has never used one has none until 2.4."""
    return bool(entry["fiber"]) and not entry["fiber"]["current"]


def suspended(answer):
    return [entry for entry in answer["threads"] if is_suspended(entry)]


def look(rbdump, target, mode, folder):
    """What rbdump says of a target."""
    if mode == "core":
        with gcore_of(target.pid, folder) as core:
            return read_core(rbdump, core)
    return dump(rbdump, target.pid, *(["--no-stop"] if mode == "unpaused" else []))


def thread_key(entry):
    """What tells the thread that an entry is of: "main", its name, or None if it has ended, or has none (until 2.2)."""
    return "main" if entry["main"] else entry["name"]


def check_fibers(answer, target):
    """The suspended fibers are those that Ruby tells of, each with its thread and every frame."""
    keys = {subject["key"]: as_text(subject["name"]) for subject in target.ready["threads"]} | {b"main": "main"}
    told = [(keys.get(fiber["thread"]), rubys_frames(fiber)) for fiber in target.ready["fibers"]]
    found = [(thread_key(entry), rbdumps_frames(entry)) for entry in suspended(answer)]
    for key, frames in told:
        same = [other for other in found if other[0] == key and not difference(other[1], frames)]
        if same:
            found.remove(same[0])
            continue
        of_thread = [others for thread, others in found if thread == key]
        nearest = max(of_thread, key=lambda others: sum(a == b for a, b in zip(others, frames)), default=[])
        raise AssertionError(f"a fiber of {key} is missing; the nearest: {difference(nearest, frames)}")
    assert not found, f"Ruby does not tell of {len(found)}: {found}"
    assert answer["fibers"] == {"complete": True, "reason": None, "missing": None}


def check_order(answer):
    """Each thread is followed by its fibers, which have what is its own; those of ended threads come last."""
    at = None
    for entry in answer["threads"]:
        if is_suspended(entry):
            assert entry["state"] == "suspended" and entry["fiber"]["state"] == "suspended"
        if not is_suspended(entry) or entry["ractor"] is None:
            at = entry
        assert [entry[name] for name in ("thread", "tid", "ractor", "name", "main")] == [
            at[name] for name in ("thread", "tid", "ractor", "name", "main")
        ]


def look_at_rest(rbdump, target, mode, folder, ruby):
    """What rbdump says of it once it has settled: every thread and every suspended fiber as Ruby itself tells."""
    settle(rbdump, target.pid)
    answer = look(rbdump, target, mode, folder)
    check(answer, target, ruby, mode)
    check_fibers(answer, target)
    return answer


@pytest.mark.target("fibers_suspended.rb")
@pytest.mark.parametrize("mode", MODES)
def test_suspended_fibers(ruby, start, rbdump, tmp_path, mode):
    target = start(ruby, "fibers_suspended.rb")
    answer = look_at_rest(rbdump, target, mode, tmp_path, ruby)
    check_order(answer)
    assert is_untouched(target.pid)
    assert target.release() == 0


@pytest.mark.target("fibers_suspended.rb")
def test_who_resumed_whom(ruby, start, rbdump):
    """From the fiber that a thread runs to its first one."""
    target = start(ruby, "fibers_suspended.rb")
    answer = dump(rbdump, target.pid)
    told = {fiber["key"]: rubys_frames(fiber) for fiber in target.ready["fibers"]}
    with_fiber = [entry for entry in answer["threads"] if entry["fiber"]]
    fibers = {entry["fiber"]["id"]: entry for entry in with_fiber}
    assert len(fibers) == len(with_fiber)
    at = thread_of(answer, next(subject for subject in target.ready["threads"] if subject["key"] == b"nested"))
    nested = at["thread"]
    for depth in (1, 2, 3, 4):
        at = fibers[at["fiber"]["resumed_by"]]
        assert not difference(rbdumps_frames(at), told[b"nested %d" % depth])
    assert at["fiber"]["resumed_by"] is None
    main = fibers[thread_of(answer, {"key": b"main"})["fiber"]["resumed_by"]]
    assert not difference(rbdumps_frames(main), told[b"main"])
    assert {entry["fiber"]["resumed_by"] for entry in suspended(answer) if entry["thread"] != nested} == {None}


@pytest.mark.target("fibers_suspended.rb")
def test_text(ruby, start, rbdump):
    target = start(ruby, "fibers_suspended.rb")
    wait_until_it_reads(target.pid)
    answer = dump(rbdump, target.pid)
    done = run(rbdump, "-p", target.pid, "--all")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    nr_fibers = len(suspended(answer))
    assert lines[1].startswith(f"{len(answer['threads']) - nr_fibers} threads, {nr_fibers} suspended fibers, paused for ")
    headers = [line for line in without_waits(lines[2:]) if line and not line.startswith("    ")]
    for entry, header in zip(answer["threads"], headers):
        fiber, tid = entry["fiber"], entry["tid"]
        name = " (main)" if entry["main"] else "" if entry["name"] is None else f' "{entry["name"]}"'
        by = f", resumed by {fiber['resumed_by']}" if fiber and fiber["resumed_by"] else ""
        if entry["ractor"] is None:
            assert header == f"Fiber {fiber['id']} suspended, of a thread that has ended"
        elif is_suspended(entry):
            assert header == f"Fiber {fiber['id']} suspended, of thread {tid}{name}{by}"
        else:
            assert re.fullmatch(rf"Thread {tid}{re.escape(name)} (blocked|sleeping forever)(, in fiber 0x\w+{by})?", header)
    assert len(headers) == len(answer["threads"])


@pytest.mark.target("fiber_scheduler.rb")
@pytest.mark.parametrize("mode", MODES)
def test_scheduler(ruby, start, rbdump, tmp_path, mode):
    """A hundred fibers; what each waits for is told by the frames that Ruby itself shows of it."""
    target = start(ruby, "fiber_scheduler.rb")
    answer = look_at_rest(rbdump, target, mode, tmp_path, ruby)
    waiting = [entry for entry in suspended(answer) if entry["fiber"]["waits_on"]]
    (other,) = [entry for entry in suspended(answer) if not entry["fiber"]["waits_on"]]
    assert len(waiting) == 100
    assert rbdumps_frames(other) in [rubys_frames(fiber) for fiber in target.ready["fibers"] if fiber["key"] == b"other"]

    def last_part(label):
        return "" if label.startswith("block ") else re.split(r"[#.]", label)[-1]

    seen = set()
    for entry in waiting:
        labels = [last_part(label) for _, _, _, label in rbdumps_frames(entry)]
        at = next(i for i, label in enumerate(labels) if label in HOOKS)
        waits = entry["fiber"]["waits_on"]
        assert waits["hook"] == f"Scheduler#{labels[at]}"
        assert last_part(waits["for"]) == labels[at + 1]
        seen.add((labels[at], labels[at + 1]))
    assert {("kernel_sleep", "sleep"), ("block", "pop"), ("io_wait", "wait_readable")} <= seen
    if mode == "paused":
        text = run(rbdump, "-p", target.pid, "--all").stdout
        assert len(re.findall(r"^Fiber 0x\w+ suspended, .*, waits in Scheduler#\w+ for \S+$", text, re.M)) == 100


def last_labels(entry):
    return [re.split(r"[#.]", frame.get("label") or "")[-1] for frame in entry["frames"]]


def legal(entry):
    """Whether a suspended fiber of fibers_busy.rb can be as it is shown."""
    labels = last_labels(entry)
    # Resumed for the first time: it has a stack, and is about to begin.
    if not labels and entry["fiber"]["state"] == "resumed":
        return True
    if "turn" in labels:
        return labels == ["yield", *["turn"] * (len(labels) - 2), labels[-1]] and "block" in labels[-1]
    if labels[0] == "yield":
        return labels[1] == "made" and len(labels) == 3
    # The one that has resumed another: the thread's own.
    return labels[0] in ("resume", "each", "new", "block (2 levels) in <main>", "block in <main>")


@pytest.mark.outer_rubies
@pytest.mark.target("fibers_busy.rb")
@pytest.mark.parametrize("mode", ["paused", "unpaused"])
def test_fibers_that_do_not_rest(ruby, start, rbdump, mode, times):
    """
    Right or marked: no stack that cannot be, and if some were missed, it is said. And it is not all marked: of twenty
    dumps of each Ruby since 1.9.3 on a busy machine, all fibers were complete and 4.95 of 5 threads, if paused; at least
    800 fibers and 4.8 of 5 threads, if not. The bounds are far below that. A collection marks all stacks of a dump at
    once: such dumps are counted by themselves.
    """
    target = start(ruby, "fibers_busy.rb")
    dumps = times(DUMPS, DUMPS_OF_SOAK)
    complete = collected = 0
    fibers, threads = [], []
    for _ in range(dumps):
        done = run(rbdump, "-p", target.pid, "--json", *(["--no-stop"] if mode == "unpaused" else []))
        assert done.returncode in (0, PARTIAL), done
        answer = json.loads(done.stdout)
        verdicts = {entry["verdict"] for entry in answer["threads"]}
        assert (done.returncode == 0) == (verdicts == {"complete"} and answer["fibers"]["complete"])
        complete += answer["fibers"]["complete"]
        if any(entry["reason"] == "collected" for entry in current(answer)):
            collected += 1
        else:
            fibers += [entry["verdict"] == "complete" for entry in suspended(answer)]
            threads += [entry["verdict"] == "complete" for entry in current(answer)]
        for entry in suspended(answer):
            assert entry["verdict"] != "complete" or legal(entry), entry
        turners = {entry["thread"] for entry in answer["threads"] if "turn" in last_labels(entry)}
        turns = [entry for entry in suspended(answer) if entry["thread"] in turners]
        if answer["fibers"]["complete"] and verdicts == {"complete"}:
            # Nineteen that wait, and the thread's own or the twentieth.
            assert len(turns) == 20
    assert sum(fibers) >= (0.9 * len(fibers) if mode == "paused" else 19) and len(fibers) >= 19
    assert sum(threads) > (0.8 if mode == "paused" else 0.5) * len(threads)
    assert collected <= (0 if mode == "paused" else 0.8 * dumps)
    # From 2.7 to 3.2 fibers that were made while the heap was searched, or not yet filled in, may be missing most times.
    if mode == "paused" and not (2, 7) <= ruby.series < (3, 3):
        assert complete > dumps / 2
    assert is_untouched(target.pid)


# ---- ractors


def start_ractors(ruby, start, **options):
    """Starts them anew if they never begin: now and then, those of 3.1.2 wait for each other for ever."""
    for _ in range(9):
        with contextlib.suppress(TimeoutError):
            return start(ruby, "ractors_busy.rb", timeout=30, **options)
    return start(ruby, "ractors_busy.rb", **options)


def check_busy_ractors(target, rbdump, mode, folder, ruby):
    """Four ractors, each with two threads that never stop: right stacks, and at most one runs. Gives the eight threads."""
    answer = look(rbdump, target, mode, folder)
    busy = [thread for thread in current(answer) if (thread["name"] or "").startswith("busy ")]
    assert len(busy) == 8
    for subject in target.ready["busy"]:
        thread = thread_of(answer, {"key": b"", "name": subject["name"]})
        assert (thread["verdict"], thread["reason"]) == ("complete", None)
        assert thread["state"] in BUSY
        assert not difference(rbdumps_frames(thread), rubys_frames(subject))
    ractors = {number: {t["ractor"] for t in busy if t["name"].startswith(f"busy {number}")} for number in range(4)}
    assert sorted(map(list, ractors.values())) == [[2], [3], [4], [5]]
    for number in range(2, 6):
        assert [t["state"] for t in busy if t["ractor"] == number].count("running") <= 1
    check(answer, target, ruby, mode)
    assert is_untouched(target.pid)
    return busy


@pytest.mark.long
@pytest.mark.outer_rubies
@pytest.mark.target("ractors_busy.rb")
@pytest.mark.parametrize("mode", ["paused", "core"])
def test_busy_ractors(ruby, start, rbdump, tmp_path, mode):
    check_busy_ractors(start_ractors(ruby, start), rbdump, mode, tmp_path, ruby)


# ---- M:N threads

many_to_many = pytest.mark.since((3, 3), "M:N threads")
MANY_TO_MANY = {"RUBY_MN_THREADS": "1"}


@pytest.mark.long
@pytest.mark.newest_ruby
@many_to_many
@pytest.mark.parametrize("script", ["threads.rb", "waits.rb", "fibers_suspended.rb", "ractor.rb"])
@pytest.mark.parametrize("mode", MODES)
def test_idle_many_to_many(ruby, start, rbdump, tmp_path, script, mode):
    """A thread that waits has no kernel thread; its stack is there all the same."""
    target = start(ruby, script, environment=MANY_TO_MANY)
    answer = look_at_rest(rbdump, target, mode, tmp_path, ruby)
    assert [thread for thread in current(answer) if thread["tid"] is None]


@many_to_many
def test_busy_many_to_many(ruby, start, rbdump):
    target = start(ruby, "states.rb", "2", environment=MANY_TO_MANY)
    seen = []

    def one_runs_one_waits():
        answer = dump(rbdump, target.pid)
        busy = [thread for thread in current(answer) if (thread["name"] or "").startswith("busy ")]
        assert len(busy) == 2
        seen.append({thread["state"] for thread in busy})
        assert seen[-1] <= BUSY
        assert {thread["verdict"] for thread in answer["threads"]} == {"complete"}
        for thread in busy:
            labels = [frame["label"].rpartition("#")[2] for frame in thread["frames"]]
            assert (labels[0], labels[-1]) == ("spin", "block (2 levels) in <main>")
        return seen[-1] == BUSY

    wait_until(one_runs_one_waits, "one runs and one waits")


@many_to_many
@pytest.mark.parametrize("mode", ["paused", "core"])
def test_busy_ractors_many_to_many(ruby, start, rbdump, tmp_path, mode):
    if ruby.series > (4, 0):
        note_not_applicable(f"busy ractors with M:N threads on {ruby.id}: its ractors do not begin")
        return
    target = start_ractors(ruby, start, environment=MANY_TO_MANY)
    busy = check_busy_ractors(target, rbdump, mode, tmp_path, ruby)
    # The second thread of a ractor has no kernel thread while the first one runs; nor has one that has just been given
    # its ractor's lock, until a kernel thread comes for it. What is on a CPU has one.
    assert [thread for thread in busy if thread["tid"] and thread["state"] == "running"]
    assert [thread for thread in busy if thread["tid"] is None]


# ---- threads that have not started, or are ending


@contextlib.contextmanager
def stopped_at(target, function, commands=()):
    """A target told to go on, stopped (SIGSTOP) where gdb has first seen it enter a function, or after `commands`."""
    stop_in(target.pid, function, lambda: target.tell("go"), commands)
    yield
    os.kill(target.pid, signal.SIGCONT)


with_debug = pytest.mark.parametrize(
    "debugged", [ruby for ruby in RUBIES if ruby.has_debug], ids=lambda ruby: ruby.id
)


def start_a_starter(start, ruby, rbdump):
    """starts_a_thread.rb, with the main thread and the starter left: the thread that said that all is ready has ended."""
    target = start(ruby, "starts_a_thread.rb")
    wait_until(lambda: len(current(dump(rbdump, target.pid, status=None))) == 2, "its first thread has ended")
    return target


@with_debug
def test_thread_that_has_not_started(debugged, start, rbdump):
    """It is in the list of threads, and does not have a stack yet."""
    if debugged.series < (2, 6):
        note_not_applicable(f"a thread of {debugged.id} that has not started: until 2.5 it is not listed by then")
        return
    target = start_a_starter(start, debugged, rbdump)
    if debugged.series < (3, 0):
        # The thread that makes it puts it in the list, maybe after it has begun, and keeps the GVL until it waits for it.
        before_its_stack = "thread_join_m"
    else:
        # Since 3.3 it is the thread that makes it that gives it a stack.
        before_its_stack = "thread_start_func_2" if debugged.series < (3, 3) else "native_thread_create"
    with stopped_at(target, before_its_stack):
        answer = dump(rbdump, target.pid)
        new = [thread for thread in current(answer) if not thread["frames"]]
        assert len(current(answer)) == 3
        assert [(thread["verdict"], thread["state"] in ("waiting_gvl", "running")) for thread in new] == [("complete", True)]
    assert target.line() == b"joined"


@with_debug
def test_thread_that_is_ending(debugged, start, rbdump):
    if debugged.series < (2, 7):
        note_not_applicable(f"a thread of {debugged.id} that is ending: until 2.6 its stack is not taken from it")
        return
    target = start_a_starter(start, debugged, rbdump)
    with stopped_at(target, "rb_threadptr_root_fiber_terminate", ["finish"]):
        answer = dump(rbdump, target.pid)
        assert {thread["verdict"] for thread in answer["threads"]} == {"complete"}
        ending = [thread for thread in current(answer) if not thread["frames"]]
        # Until 2.7 it has left the list by then.
        assert [thread["state"] for thread in ending] in ([], ["dead"])
        assert [thread["name"] for thread in current(answer) if thread["frames"]].count("starter") == 1
    assert target.line() == b"joined"
