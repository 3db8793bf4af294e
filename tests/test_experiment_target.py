"""
rbdump experiment: its target goes on, and ends, as if nobody had looked, whatever happens to rbdump. And an experiment ends
when it is to, when it is interrupted, or when its target ends.
"""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from harness.dump import run
from harness.experiment import Graph, summary
from harness.process import (
    children_of,
    has_ended,
    is_untouched,
    schedstat,
    status,
    task_channels,
    task_states,
    tasks,
    tracers_of,
    wait_until,
)
from harness.survival import processes_of
from harness.terminal import interrupted


# ---- the target survives


@pytest.fixture(scope="session")
def result(tmp_path_factory):
    """result(ruby, rounds): what a target that nothing is done to answers."""
    known = {}

    def answer(ruby, rounds):
        if (ruby, rounds) not in known:
            with Graph(ruby, "churn", tmp_path_factory.mktemp("undisturbed"), rounds) as graph:
                known[ruby, rounds] = (graph.process.stdout.read(), graph.process.wait(120))
        return known[ruby, rounds]

    return answer


@pytest.mark.any_ruby
def test_command_ends_as_it_would(ruby, rbdump, tmp_path, result):
    rounds = 300000
    graph = Graph(ruby, "churn", tmp_path, rounds)
    done = subprocess.run(
        [rbdump, "experiment", "-r", "5000", "-d", "2", "--json", tmp_path / "report.json", "--", *graph.command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # On a busy machine the table comes before the target's last line.
    assert done.stdout.startswith("ready\n") and f"\n{result(ruby, rounds)[0]}" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["ended"] in ("duration", "target-exited")
    assert sum(mode["samples"] for mode in report["modes"]) > 100


@pytest.mark.long
@pytest.mark.any_ruby
@pytest.mark.parametrize("whom, how", [("process", "again"), ("group", "again"), ("tracer", "again"), ("process", "step")])
def test_killed_at_random_moments(ruby, rbdump, tmp_path, result, whom, how):
    """kill -9 of rbdump, of its group (timeout -s KILL), or of who traces: the target's result is right."""
    rounds = 400000
    times = random.Random(3)
    with Graph(ruby, "churn", tmp_path, rounds) as graph:
        for _ in range(20):
            with subprocess.Popen(
                [rbdump, "experiment", "-p", str(graph.pid), "-m", "paused", "-r", "20000", "-d", "10", "--on-torn", how],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as running:
                try:
                    running.wait(times.uniform(0.02, 0.15))
                except subprocess.TimeoutExpired:
                    if whom == "process":
                        running.kill()
                    elif whom == "group":
                        os.killpg(running.pid, signal.SIGKILL)
                    else:
                        for tracer in tracers_of(running.pid):
                            os.kill(tracer, signal.SIGKILL)
            assert graph.process.poll() in (None, 0)
            if graph.process.poll() is not None:
                break
        answer = graph.process.stdout.read()
        assert (answer, graph.process.wait(60)) == result(ruby, rounds)


@pytest.mark.any_ruby
def test_stopped_by_its_terminal(ruby, rbdump, tmp_path):
    """^Z stops rbdump, and not its target with it."""
    with Graph(ruby, "churn", tmp_path) as graph:
        for _ in range(8):
            with subprocess.Popen(
                [rbdump, "experiment", "-p", str(graph.pid), "-m", "paused", "-r", "20000", "-d", "60"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as running:
                has_run = sampling(running)
                wait_until(lambda: has_run() or running.poll() is not None, "it samples", 30)
                assert running.poll() is None, running.stdout.read()
                os.killpg(running.pid, signal.SIGSTOP if _ % 2 else signal.SIGTSTP)
                wait_until(lambda: task_states(graph.pid) & {"R", "S"}, "the target goes on", 5)
                wait_until(lambda: is_untouched(graph.pid), "the target goes on", 5)
                tracers = tracers_of(running.pid)
                os.killpg(running.pid, signal.SIGKILL)
            # A tracer whose parent was killed may take a moment to end, and touches the target again meanwhile.
            wait_until(lambda: all(has_ended(tracer) for tracer in tracers), "the tracer has ended", 10)
            wait_until(lambda: is_untouched(graph.pid), "nobody traces it", 10)
        assert graph.process.poll() is None


# ---- it ends


@pytest.mark.any_ruby
@pytest.mark.parametrize("ended, seconds", [("interrupted", 100), ("duration", 1)], ids=["interrupted", "duration"])
def test_low_rates(ruby, rbdump, tmp_path, ended, seconds):
    """An end comes when it is asked for, however long it is to the next sample: here, fifty seconds."""
    with Graph(ruby, "churn", tmp_path) as graph:
        began = time.monotonic()
        with subprocess.Popen(
            [rbdump, "experiment", "-p", str(graph.pid), "-m", "paused", "-r", "0.02", "-d", str(seconds), "--json", "-"],
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            if ended == "interrupted":
                wait_until(lambda: waits_for_a_sample(running.pid), "it waits until it is to take a sample", 30)
                began = time.monotonic()
                running.send_signal(signal.SIGINT)
            report = json.loads(running.stdout.read())
        assert running.returncode == 0
        assert time.monotonic() - began < 30
    assert report["ended"] == ended


def waits_for_a_sample(pid):
    """Whether rbdump has its handlers of signals, and the one of its processes that samples sleeps until a time has come."""
    has_handler = int(status(pid, "SigCgt"), 16) >> (signal.SIGINT - 1) & 1
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread of it that has ended
        return has_handler and any("hrtimer_nanosleep" in task_channels(tracer) for tracer in tracers_of(pid))
    return False


def test_command_that_fails(ruby, rbdump, tmp_path):
    """How a target ended that rbdump started is in the report."""
    script = tmp_path / "fails.rb"
    script.write_text("x = 0\nx += 1 while x < 20_000_000\nexit 7\n")
    done = subprocess.run(
        [rbdump, "experiment", "-r", "1000", "-d", "60", "--json", "-", "--", ruby.path, "--disable-gems", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    report = json.loads(done.stdout)
    assert report["ended"] == "target-exited"
    assert report["target_status"] == {"exit_status": 7, "signal": None}


@pytest.mark.three_rubies
def test_threads_that_come_and_go(ruby, rbdump, tmp_path):
    """A thread that ends is none of the target's ends."""
    script = tmp_path / "threads.rb"
    script.write_text(
        "Thread.new { STDIN.read; exit!(0) }\nputs; STDOUT.flush\n"
        "loop { Thread.new { x = 0; x += 1 while x < 3_000_000 }.join }\n"
    )
    with subprocess.Popen(
        [ruby.path, "--disable-gems", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as target:
        assert target.stdout.readline() == "\n"
        done = run(rbdump, "experiment", "-p", target.pid, "-m", "paused,unpaused", "-r", 200, "-d", 2, "--json", "-")
        target.stdin.close()
        assert target.wait(30) == 0
    report = json.loads(done.stdout)
    assert (done.returncode, report["ended"]) == (0, "duration")
    for mode in report["modes"]:
        # On a busy machine a thread may not stop in time. That says nothing of its stack.
        judged = mode["samples"] + mode["dropped"] - mode["rejected"].get("not-stopped", 0)
        assert mode["accepted"] + mode["dropped"] >= 0.9 * judged > 0, summary(mode)


def ended_report(rbdump, pid, end):
    """The report of an experiment of a minute that is ended by `end`, which is given it, once it samples."""
    with subprocess.Popen(
        [rbdump, "experiment", "-p", str(pid), "-r", "1000", "-d", "60", "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        wait_until(sampling(running), "it samples", 30)
        end(running)
        report = json.loads(running.stdout.read())
        assert (running.wait(30), running.stderr.read()) == (0, "")
    return report


@pytest.mark.any_ruby
def test_target_that_ends(ruby, rbdump, tmp_path):
    with Graph(ruby, "churn", tmp_path) as graph:
        report = ended_report(rbdump, graph.pid, lambda running: graph.process.stdin.close())
        assert graph.process.wait(30) == 0
    assert report["ended"] == "target-exited"
    assert report["duration_s"] < 50


def sampling(running):
    """
    A condition: the threads of rbdump have been given a CPU more often, or had it for longer, than a session takes to begin
    with; if it waits awake, there is no more often. (A test that looks at the target does not see it traced: on two CPUs,
    the test is where rbdump goes while it is.)
    """

    def has_run():
        switches = ran_ns = 0
        for pid in [running.pid, *children_of(running.pid)]:
            with contextlib.suppress(FileNotFoundError):
                for task in tasks(pid):
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        counts = schedstat(pid, task)
                        switches += counts.switches
                        ran_ns += counts.ran
        return switches > 500 or ran_ns > 500_000_000

    return has_run


@pytest.mark.outer_rubies
@pytest.mark.parametrize("program", ["cat", "ruby"])
def test_target_that_becomes_another_program(ruby, rbdump, tmp_path, program):
    """Another one of the same file, too: everything is then where it was, as without randomized addresses."""
    words = {"cat": ["cat"], "ruby": [ruby.path, "--disable-gems", "-e", "STDOUT.write(STDIN.read)"]}[program]
    (tmp_path / "exec.rb").write_text(
        "def spin; x = 0; x += 1 until $go; end\nThread.new { STDIN.gets; $go = true }\n"
        f"puts; STDOUT.flush\nspin\nexec(*{json.dumps(words)})\n"
    )
    with subprocess.Popen(
        ["setarch", "-R", ruby.path, "--disable-gems", tmp_path / "exec.rb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as target:
        assert target.stdout.readline() == "\n"

        def go(_running):
            target.stdin.write("go\n")
            target.stdin.flush()

        report = ended_report(rbdump, target.pid, go)
        assert report["ended"] == "target-execed"
        wait_until(lambda: is_untouched(target.pid), "nobody traces it", 10)
        target.stdin.write("still here\n")
        target.stdin.close()
        assert target.stdout.read().endswith("still here\n")
        assert target.wait(30) == 0


@pytest.mark.any_ruby
@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_ended_early(ruby, rbdump, tmp_path, with_signal):
    with Graph(ruby, "churn", tmp_path) as graph:
        report = ended_report(rbdump, graph.pid, lambda running: running.send_signal(with_signal))
        assert is_untouched(graph.pid)
    assert report["ended"] == "interrupted"


@pytest.mark.any_ruby
def test_guard_ends_with_it(ruby, rbdump, tmp_path):
    """Also one that is asleep: it would keep standard error open, and whoever reads that from a pipe would wait for it."""
    with Graph(ruby, "churn", tmp_path) as graph:
        command = [rbdump, "experiment", "-p", graph.pid, "-m", "unpaused", "-r", 1000, "-n", 800, "--json", os.devnull]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL) as running:
            guard = wait_until(lambda: processes_of(running).get("guard"), "there is a guard", 20)
            assert running.wait(60) == 0
            assert has_ended(guard)


@pytest.mark.any_ruby
def test_progress_line_and_interrupt_key(ruby, rbdump, tmp_path):
    """On a terminal there is a line that tells how far it is; ^C there ends it, with the results so far."""
    with Graph(ruby, "churn", tmp_path) as graph:
        command = [rbdump, "experiment", "-p", graph.pid, "-n", 1000000, "--json", tmp_path / "report.json"]
        status, shown = interrupted(command, lambda shown: shown.count(b" samples, ") >= 3)
        assert status == 0
        assert is_untouched(graph.pid)
    assert re.search(rb"rbdump: \d+ s, \d+ samples, \d+ rejected", shown), shown
    assert json.loads((tmp_path / "report.json").read_text())["ended"] == "interrupted"
    assert b"ended by: interrupted" in shown


@pytest.mark.any_ruby
def test_status_of_what_ends_while_it_is_traced(ruby, rbdump, tmp_path):
    """It is told the tracer alone; at such a rate some of these do."""
    script = tmp_path / "fails.rb"
    script.write_text(
        "x = 0\nnil while File.read('/proc/self/status')[/TracerPid:\\s*(\\d+)/, 1] == '0'\n"
        "x += 1 while x < 5_000_000\nexit 7\n"
    )
    for _ in range(8):
        done = subprocess.run(
            [rbdump, "experiment", "-m", "paused", "-r", "20000", "-d", "200", "--json", "-"]
            + ["--", ruby.path, "--disable-gems", script],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["target_status"] == {"exit_status": 7, "signal": None}


# ---- what rbdump was started with


def test_child_signal_ignored(ruby, rbdump, tmp_path):
    """Daemons ignore SIGCHLD, and who they start inherits that; rbdump needs it, and its target gets it back ignored."""
    report = tmp_path / "report.json"
    # One that spins, where others want the CPUs, too, stops only when it has got one again; one that has slept gets it at once.
    naps = f"until File.size?({str(report)!r}); x = 0; x += 1 while x < 10_000; sleep 0.0005; end"
    # A shell, or Ruby, sets it anew.
    first = "import os, signal, sys; print(signal.getsignal(signal.SIGCHLD), flush=True); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [rbdump, "experiment", "-m", "paused", "-r", "500", "-n", "100", "--json", report]
        + ["--", sys.executable, "-c", first, ruby.path, "--disable-gems", "-e", naps],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] in ("Handlers.SIG_IGN", str(int(signal.SIG_IGN)))
    (mode,) = json.loads(report.read_text())["modes"]
    # A wait that nothing ends takes 5 ms.
    assert mode["pause_us"]["p50"] < 4000, mode["pause_us"]
