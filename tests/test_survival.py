"""Whatever happens to a process of rbdump, the target goes on, gets its signals, and its work is right."""

import itertools
import os
import random
import signal
import subprocess

import pytest
from harness.process import Bound, is_untouched, schedstat, task_states, wait_until
from harness.survival import (
    PROCESSES,
    VERBS,
    Changer,
    Survivor,
    check_sums,
    kill_many,
    kill_one,
    processes_of,
    running_rbdump,
    stop_one,
    wait_for_progress,
    wait_for_tracer,
)

# Kills of each Ruby; bench/kills.py, which make soak runs, does thousands.
KILLS = 40

# How often each process is stopped at a random moment; bench/stops.py, which make soak runs, does it for much longer.
STOPS = 2

# How often a tracer is stopped in the middle of a stop of the target.
HELD = 5

# A rate at which a tracer hardly ever holds somebody.
RARELY = "20"

# How many signals the target must answer after its tracer was stopped.
ANSWERED = 3

# For LD_PRELOAD: the first process that seizes a thread stops itself right after that.
STOPS_AFTER_SEIZE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int stopped;

long ptrace(enum __ptrace_request request, ...)
{
	long (*next)(enum __ptrace_request, pid_t, void *, void *) = dlsym(RTLD_NEXT, "ptrace");
	va_list arguments;
	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *address = va_arg(arguments, void *), *data = va_arg(arguments, void *);
	va_end(arguments);
	long result = next(request, pid, address, data);
	if (request == PTRACE_SEIZE && result == 0 && !atomic_exchange(&stopped, 1))
		syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP); /* this thread stops before it goes on */
	return result;
}
"""


@pytest.mark.long
@pytest.mark.outer_rubies
def test_killed(ruby, rbdump, tmp_path):
    """kill -9 of any of its processes, at random moments: each signal is seen once, no thread stays stopped."""
    with Survivor(ruby, tmp_path) as survivor:
        done = kill_many(rbdump, survivor.pid, tmp_path, KILLS, 7)
        assert min(done.values()) > 0, done
        assert survivor.lost is None and survivor.sent > 100
        check_sums(survivor.finish())


@pytest.mark.outer_rubies
def test_killed_while_the_target_becomes_another_program(ruby, rbdump, tmp_path):
    """exec by a thread that is not the first, again and again: it always arrives."""
    moments = random.Random(11)
    with Changer(ruby, tmp_path, 60) as target:
        while not target.has_ended():
            kill_one(rbdump, moments.choice(tuple(VERBS)), "tracer", target.pid, tmp_path, moments)
            target.wait_for_exec()
        target.finish()


def waited_for_cpus(pid):
    """For how many seconds the main thread of a process, and this test, have waited for a CPU: not while they were stopped."""
    return sum(schedstat(waiting).waited for waiting in (pid, os.getpid())) / 1e9


@pytest.mark.alone
@pytest.mark.any_ruby
@pytest.mark.parametrize("verb", ["record", "experiment"])
def test_tracer_is_stopped(ruby, rbdump, tmp_path, verb):
    """SIGSTOP of the process that traces, in the middle of a stop of the target: that goes on, most times within 0.1 s."""
    waits = []
    with Survivor(ruby, tmp_path) as survivor, running_rbdump(rbdump, verb, survivor.pid, tmp_path) as running:
        mine = os.sched_getaffinity(0)
        cpus = itertools.cycle(sorted(mine))
        try:
            tracer = wait_for_tracer(running)

            def stopped_in_the_middle():
                """
                The guard may have it go on before that is seen: then it is tried again. From another CPU, for on the tracer's
                own this test runs only while the tracer sleeps.
                """
                os.sched_setaffinity(0, {next(cpus)})
                os.kill(tracer, signal.SIGSTOP)
                bound = Bound(0.02)
                while bound.left():
                    if task_states(tracer) == {"T"}:
                        if "t" in task_states(survivor.pid):
                            return True
                        break
                os.kill(tracer, signal.SIGCONT)
                return False

            for _ in range(HELD):
                wait_until(stopped_in_the_middle, "it is stopped while it holds a thread", 60)
                before = waited_for_cpus(survivor.pid)
                waits.append(wait_for_progress(survivor, 20) - (waited_for_cpus(survivor.pid) - before))
                wait_until(lambda: "t" not in task_states(survivor.pid), "it lets go", 20)
                os.kill(tracer, signal.SIGCONT)
        finally:
            os.sched_setaffinity(0, mine)
        running.terminate()
        running.wait(30)
        assert sorted(waits)[HELD // 2] < 0.15, waits
        check_sums(survivor.finish())


@pytest.mark.any_ruby
@pytest.mark.parametrize("verb", VERBS)
def test_tracer_is_stopped_as_it_seizes(ruby, rbdump, tmp_path, verb):
    """Before it asks the thread to stop, or without asking: the thread then stops at each signal that it gets."""
    source, library = tmp_path / "stops.c", tmp_path / "stops.so"
    source.write_text(STOPS_AFTER_SEIZE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    # A sanitized rbdump would not have another library come first.
    sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
    environment = os.environ | {"LD_PRELOAD": str(library), "ASAN_OPTIONS": sanitizer}
    with Survivor(ruby, tmp_path) as survivor:
        with running_rbdump(rbdump, verb, survivor.pid, tmp_path, env=environment) as running:
            wait_until(lambda: running.poll() is not None or not is_untouched(survivor.pid), "it has seized a thread", 20)
            sent = survivor.sent
            wait_until(lambda: survivor.sent > sent + ANSWERED, "the target answers its signals", 15)
        assert running.returncode == 0
        check_sums(survivor.finish())


@pytest.mark.any_ruby
def test_stopped_and_told_to_end(ruby, rbdump, tmp_path):
    """A tracer that is stopped goes on when rbdump is told to end, so that both end."""
    with Survivor(ruby, tmp_path) as survivor:
        with running_rbdump(rbdump, "experiment", survivor.pid, tmp_path, "-r", RARELY) as running:
            tracer = wait_for_tracer(running)

            def stopped_while_it_holds_nobody():
                """If it has just begun to hold somebody, the guard has it go on within 0.1 s."""
                wait_until(lambda: is_untouched(survivor.pid), "it holds nobody", 20)
                os.kill(tracer, signal.SIGSTOP)
                bound = Bound(0.2)
                while bound.left():
                    stopped = task_states(tracer) == {"T"}
                return stopped

            wait_until(lambda: not is_untouched(survivor.pid), "it has begun", 20)
            wait_until(stopped_while_it_holds_nobody, "it is stopped, and holds nobody", 20)
        check_sums(survivor.finish())


@pytest.mark.long
@pytest.mark.parametrize("whom", PROCESSES)
@pytest.mark.any_ruby
def test_stopped(ruby, rbdump, tmp_path, whom):
    """SIGSTOP of any of its processes for a second, at random moments: the target does not stand still for so long."""
    moments = random.Random(5)
    with Survivor(ruby, tmp_path) as survivor:
        standstills = [
            stop_one(rbdump, verb, whom, survivor, tmp_path, moments, 1) for _ in range(STOPS) for verb in VERBS
        ]
        stopped = [standstill for standstill in standstills if standstill is not None]
        assert stopped, f"{whom} was never there to be stopped"
        assert max(stopped) < 0.9, standstills
        check_sums(survivor.finish())


@pytest.mark.any_ruby
@pytest.mark.parametrize("verb", ["record", "experiment"])
def test_guard_is_killed(ruby, rbdump, tmp_path, verb):
    """Another one takes its place."""
    with Survivor(ruby, tmp_path) as survivor, running_rbdump(rbdump, verb, survivor.pid, tmp_path) as running:
        for _ in range(3):
            guard = wait_until(lambda: processes_of(running).get("guard"), "there is a guard", 20)
            os.kill(guard, signal.SIGKILL)
            wait_until(
                lambda guard=guard: processes_of(running).get("guard") not in (None, guard), "there is another one", 20
            )
        running.terminate()
        running.wait(30)
        wait_for_progress(survivor, 20)
        check_sums(survivor.finish())
