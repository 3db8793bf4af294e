"""rbdump experiment: its verdicts against a target whose every legal call is known (targets/graph/graph.rb)."""

import contextlib
import json
import os
import pathlib
import pty
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import run
from harness.pinned import pinned_in_a_window
from harness.process import children_of, is_untouched, task_states, tracers_of, wait_until

GRAPH = pathlib.Path(__file__).parent / "targets/graph/graph.rb"
VARIANTS = ["churn", "deep", "blocks", "exceptions", "fibers", "tailcalls", "threads", "ractors", "gc"]
FAILED, NOT_RUBY, USAGE = 2, 3, 64

with_windows = pytest.mark.parametrize(
    "windowed", [ruby for ruby in RUBIES if ruby.has_debug], ids=lambda ruby: ruby.id
)


class Graph:
    """A running target: for ever, or so many rounds if they are given."""

    def __init__(self, ruby, variant, folder, rounds=None, flags=()):
        self.folder = folder
        self.oracle = folder / "oracle.json"
        command = [ruby.path, *flags, "--disable-gems", GRAPH, variant, "1", folder]
        self.command = [str(word) for word in command + ([] if rounds is None else [rounds])]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.supported = self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self.process.stdin.close()
        self.process.stdout.close()


def experiment(rbdump, graph, *arguments, timeout=300):
    """The report of an experiment, and the lines of its torn log."""
    report, log = graph.folder / "report.json", graph.folder / "torn.log"
    done = subprocess.run(
        [rbdump, "experiment", "-p", str(graph.pid), "--on-torn", "step", "--oracle", graph.oracle, "--json", report,
         "--torn-log", log]
        + [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(report.read_text())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return answer, {mode["mode"]: mode for mode in answer["modes"]}, lines


def summary(mode):
    return {key: mode[key] for key in ("mode", "samples", "accepted", "rejected", "impossible", "impossible_kinds")}


def test_paused_is_right(ruby, rbdump, tmp_path):
    """20,000 stacks under tight churn: all accepted, each a legal one."""
    with Graph(ruby, "churn", tmp_path) as graph:
        _, modes, lines = experiment(rbdump, graph, "-m", "paused", "-r", 20000, "-n", 20000)
        assert is_untouched(graph.pid)
    paused = modes["paused"]
    # On a busy machine a thread may not have stopped in time: that says nothing of its stack, and ends a block (of 1,000).
    late = paused["rejected"].pop("not-stopped", 0)
    assert late <= 2 and 20000 - 1000 * late <= paused["samples"] <= 20000, (late, summary(paused))
    # Where a collection began before the names of new code were read, nobody vouches for them.
    collected = paused["rejected"].pop("collected", 0)
    assert collected <= 100, summary(paused)
    assert (paused["rejected"], paused["impossible"]["count"]) == ({}, 0), (summary(paused), lines[:3])
    assert paused["accepted"] == paused["impossible"]["of"] == paused["samples"] - late - collected
    assert 0 < paused["impossible"]["high"] < 4 / 20000
    assert 0 < paused["pause_us"]["p50"] <= paused["pause_us"]["p99"] <= paused["pause_us"]["max"]


@pytest.mark.outer_rubies
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant(ruby, rbdump, tmp_path, variant):
    """Blocks, C functions, exceptions, fibers, threads, ractors, compaction: paused, no stack is wrong."""
    with Graph(ruby, variant, tmp_path) as graph:
        if not graph.supported:
            assert variant == "ractors" and ruby.series < (3, 0)
            return
        _, modes, lines = experiment(rbdump, graph, "-m", "paused,unpaused", "-r", 2000, "-n", 1000)
        assert is_untouched(graph.pid)
    for mode in modes.values():
        # A thread that has not begun gives no sample.
        assert 500 < mode["samples"] <= 1000, summary(mode)
        # Unpaused on 2.7, call-site evidence is all there is, and it does not decide on blocks, nor where there are
        # tail calls: a thread that has to wait for its CPU while it makes a frame is right in the middle of that.
        undecided = mode["mode"] == "unpaused" and ruby.series < (3, 0) and variant not in ("churn", "deep")
        bound = 10 if undecided else 0
        assert mode["impossible"]["count"] <= bound, (summary(mode), lines[:3])
        # This one spends most of its time in collections that move objects: what is moved, or may have been freed, before
        # its names are read has none. How much that is depends on how soon they are.
        moved, collected = mode["rejected"].get("compacted", 0), mode["rejected"].get("collected", 0)
        assert (moved == 0 and collected <= 150) or (variant == "gc" and mode["accepted"] > 0), summary(mode)
        accepted = mode["accepted"] + moved + collected
        if mode["mode"] == "paused":
            assert accepted >= mode["samples"] - 1, summary(mode)
        assert accepted >= 0.9 * mode["samples"], summary(mode)


@pytest.mark.long
def test_with_yjit(ruby, rbdump, tmp_path):
    """3.1's YJIT publishes a frame before it is filled in, as 2.7 does, and no window tells where: left out here."""
    if not ruby.has_yjit or ruby.series < (3, 2):
        note_not_applicable(f"an experiment with YJIT on {ruby.id}: not built in, or that of 3.1")
        return
    with Graph(ruby, "blocks", tmp_path, flags=["--yjit"]) as graph:
        _, modes, lines = experiment(rbdump, graph, "-m", "paused,unpaused", "-r", 2000, "-n", 2000)
    for mode in modes.values():
        assert mode["impossible"]["count"] == 0, (summary(mode), lines[:3])
        assert mode["accepted"] >= 1800, summary(mode)
        # What YJIT leaves out costs the innermost frame its line.
        assert mode["soft"].get("pc-outside", 0) > 0, mode["soft"]


def test_naive_modes_show_errors(ruby, rbdump, tmp_path):
    """So that it is seen to measure. They read from another CPU; `unpaused` from that of the thread, if it may."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        note_not_applicable("reading a process while it runs: there is one CPU")
        return
    with Graph(ruby, "churn", tmp_path) as graph:
        os.sched_setaffinity(graph.pid, {cpus[0]})
        _, modes, lines = experiment(rbdump, graph, "-m", "unpaused-naive,unpaused", "-r", 5000, "-n", 2000)
        os.sched_setaffinity(0, {cpus[1]})
        try:
            _, elsewhere, _ = experiment(rbdump, graph, "-m", "unpaused", "-r", 1000, "-n", 100)
        finally:
            os.sched_setaffinity(0, cpus)
    assert (modes["unpaused"]["off_cpu"], elsewhere["unpaused"]["off_cpu"]) == (0, 100)
    naive = modes["unpaused-naive"]
    # The less, the more others want the CPUs: who is waiting is not changing.
    assert naive["impossible"]["count"] > 20, summary(naive)
    assert naive["impossible"]["low"] < naive["impossible"]["value"] < naive["impossible"]["high"]
    assert len([line for line in lines if line["mode"] == "unpaused-naive"]) == (
        naive["impossible"]["count"] + sum(naive["rejected"].values())
    )
    assert modes["unpaused"]["accepted"] >= 1800, summary(modes["unpaused"])


@pytest.mark.long
@with_windows
def test_paused_naive_errors_lie_in_windows(windowed, rbdump, tmp_path):
    """2.7 publishes a frame before it is filled in; later Rubies do not, and show no error at all."""
    with Graph(windowed, "churn", tmp_path) as graph:
        answer, modes, lines = experiment(rbdump, graph, "-m", "paused-naive", "-r", 20000, "-n", 20000)
    wrong = modes["paused-naive"]["impossible"]["count"]
    assert answer["windows_known"] is True
    assert sum(place["count"] for place in answer["where"]) == len(lines)
    # What the checks say of them: nothing against any that was legal and stopped outside of a window.
    checks = modes["paused-naive"]["checks"]
    legal, impossible = checks["legal"], checks["impossible"]
    assert legal["accepted"] > 16000
    assert (legal["rejected"], legal["call_site"]["any"]["contradicts"]) == ({}, 0), legal
    assert legal["call_site"]["innermost"]["agrees"] > 0.5 * legal["accepted"], legal
    assert checks["unknown"]["accepted"] == 0
    # Where a collection began before the names of new code were read, nobody vouches for them: nothing is wrong there.
    named = [line for line in lines if line["reason"] != "collected"]
    assert len(lines) - len(named) <= 100, summary(modes["paused-naive"])
    passed = impossible["call_site"]["innermost"]
    found = sum(impossible["rejected"].values()) + passed["contradicts"]
    assert found >= 0.9 * wrong, impossible
    if windowed.series >= (3, 0):
        assert wrong == 0, (summary(modes["paused-naive"]), lines[:3])
        return
    assert wrong > 0
    inside = [line for line in named if line["ip"]["window"] == "vm_push_frame"]
    assert len(inside) >= 0.99 * len(named), [line["ip"] for line in named if line not in inside]
    for line in inside:
        assert line["registers"]["rip"] == line["ip"]["address"]
        assert line["ip"]["function"] and line["ip"]["offset"] >= 0
        assert line["ip"]["inlined"][0]["line"] > 0
        assert line["ip"]["inlined"][-1]["function"] in line["ip"]["function"]


@pytest.mark.any_ruby
def test_progress(ruby, rbdump, tmp_path):
    """By the target's own count, and by its CPU time."""
    with Graph(ruby, "churn", tmp_path) as graph:
        counted, modes, _ = experiment(
            rbdump, graph, "-m", "paused", "-r", 1000, "-n", 500, "--progress", tmp_path / "progress"
        )
        timed, _, _ = experiment(rbdump, graph, "-m", "paused", "-r", 1000, "-n", 500)
    assert (counted["progress_unit"], timed["progress_unit"]) == ("count", "cpu_time")
    assert 0.2 < modes["paused"]["progress_share"] < 2


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_stopped_target_is_never_rejected(ruby, rbdump, tmp_path, variant):
    """Stopped from outside at moments of no one's choosing: what stands still is read as it is, every time.

    Rubies before 3.0 may stand still in the middle of making a frame: then only stepping it out of there is right.
    """
    moments = random.Random(5)
    with Graph(ruby, variant, tmp_path) as graph:
        if not graph.supported:
            assert variant == "ractors" and ruby.series < (3, 0)
            return
        experiment(rbdump, graph, "-m", "paused", "-n", 1, "-r", 1000)
        for _ in range(20 if variant == "blocks" else 5):
            with contextlib.suppress(subprocess.TimeoutExpired):
                graph.process.wait(moments.uniform(0.001, 0.02))
            os.kill(graph.pid, signal.SIGSTOP)
            wait_until(lambda: task_states(graph.pid) == {"T"}, "it is stopped", 10)
            _, modes, lines = experiment(
                rbdump, graph, "-m", "paused-naive,unpaused-double,unpaused,paused", "-n", 6, "-r", 1000, "--on-torn", "step"
            )
            os.kill(graph.pid, signal.SIGCONT)
            torn = ruby.series < (3, 0) and any(line["mode"] == "paused-naive" and line["ip"]["window"] for line in lines)
            for mode in modes.values():
                if torn and mode["mode"] != "paused":
                    continue
                # A thread that has not begun gives none.
                assert mode["samples"] + mode["dropped"] == 6 and mode["samples"] > 0, (summary(mode), mode["dropped"])
                assert mode["accepted"] == mode["samples"], (summary(mode), lines)
                assert mode["impossible"]["count"] == 0, (summary(mode), lines)
        assert is_untouched(graph.pid)


# ---- pinned: gdb stops a thread right where its stack is torn


@with_windows
def test_pinned_in_a_window(windowed, rbdump, tmp_path):
    """2.7: stopped right after the new control frame was published, and before it is filled in."""
    if windowed.series < (2, 5):
        note_not_applicable(f"a thread pinned in vm_push_frame of {windowed.id}: the place is found by 2.7's code")
        return
    if windowed.series >= (3, 0):
        note_not_applicable(f"a thread pinned in vm_push_frame of {windowed.id}: its frame is published last")
        return
    oracle = tmp_path / "oracle.json"
    frames = {
        "<main>": {"calls": {"15": ["Object#outer"]}},
        "Object#outer": {"calls": {"8": ["Object#inner"]}},
        "Object#inner": {"lines": [3, 4]},
    }
    oracle.write_text(json.dumps({"schema_version": 1, "roots": ["<main>"], "frames": frames}))
    with pinned_in_a_window(windowed, tmp_path) as target:
        done = run(rbdump, "-p", target.pid, "--json")
        (thread,) = json.loads(done.stdout)["threads"]
        assert (done.returncode, thread["verdict"]) == (1, "torn")

        def sample(*arguments):
            command = [rbdump, "experiment", "-p", str(target.pid), "-m", "paused", "-n", "1", "--oracle", str(oracle)]
            log = tmp_path / "torn.log"
            run_ = subprocess.run(
                [*command, "--json", "-", "--torn-log", log, *arguments], capture_output=True, text=True, timeout=60, check=True
            )
            (mode,) = json.loads(run_.stdout)["modes"]
            return mode, [json.loads(line) for line in log.read_text().splitlines()]

        mode, (line,) = sample("--on-torn", "report")
        assert mode["rejected"] == {"window": 1}
        assert (line["verdict"], line["reason"], line["ip"]["window"]) == ("torn", "window", "vm_push_frame")
        assert [at["function"] for at in line["ip"]["inlined"]][0] == "vm_push_frame"
        mode, (line,) = sample("--on-torn", "drop")
        assert (mode["rejected"], line["frames"]) == ({"window": 1}, [])
        # It cannot go on: it is still there each time.
        mode, (line,) = sample("--on-torn", "again")
        assert (mode["rejected"], line["frames"], mode["steps"]["samples"]) == ({"window": 1}, [], 0)
        assert mode["tries"]["total"] > 2
        # That is the default: the target survives any kill of rbdump then.
        assert sample()[0]["rejected"] == {"window": 1}
        # Stepped out: the stack that Ruby itself tells below.
        mode, (line,) = sample("--on-torn", "step")
        assert (mode["accepted"], mode["impossible"]["count"]) == (1, 0)
        assert (line["verdict"], line["reason"], line["ip"]["window"]) == ("complete", "stepped", "vm_push_frame")
        assert mode["steps"]["samples"] == 1 and 1 <= mode["steps"]["total"] < 100
        assert (mode["depths"], mode["leaves"]) == ({"3": 1}, {"Object#inner": 1})

        os.kill(target.pid, signal.SIGCONT)
        assert target.stdout.readline() == "inner:4 outer:8 <main>:15\n"
        assert target.wait(30) == 0


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
                os.killpg(running.pid, signal.SIGKILL)
            # A tracer that was killed may take a moment to end.
            wait_until(lambda: is_untouched(graph.pid), "nobody traces it", 10)
        assert graph.process.poll() is None


@pytest.mark.any_ruby
@pytest.mark.parametrize("rate, seconds", [(0.2, 5), (1, 1)], ids=["interrupted", "duration"])
def test_low_rates(ruby, rbdump, tmp_path, rate, seconds):
    """An end comes when it is asked for, however long it is to the next sample."""
    with Graph(ruby, "churn", tmp_path) as graph:
        began = time.monotonic()
        with subprocess.Popen(
            [rbdump, "experiment", "-p", str(graph.pid), "-m", "paused", "-r", str(rate), "-d", str(seconds), "--json", "-"],
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            if rate < 1:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(0.5)
                running.send_signal(signal.SIGINT)
            report = json.loads(running.stdout.read())
        assert running.returncode == 0
        assert time.monotonic() - began < 4
    assert report["ended"] == ("interrupted" if rate < 1 else "duration")


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
        assert mode["accepted"] + mode["dropped"] >= 0.9 * (mode["samples"] + mode["dropped"]), summary(mode)


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
            for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    ran, _, times = map(int, file.read_text().split())
                    switches += times
                    ran_ns += ran
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
def test_progress_line_and_interrupt_key(ruby, rbdump, tmp_path):
    """On a terminal there is a line that tells how far it is; ^C there ends it, with the results so far."""
    with Graph(ruby, "churn", tmp_path) as graph:
        pid, terminal = pty.fork()
        if pid == 0:
            report = str(tmp_path / "report.json")
            os.execv(rbdump, [str(rbdump), "experiment", "-p", str(graph.pid), "-n", "1000000", "--json", report])
        shown = b""
        while shown.count(b" samples, ") < 3:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):  # what a terminal says when its last writer has closed it
            while more := os.read(terminal, 4096):
                shown += more
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert is_untouched(graph.pid)
    assert re.search(rb"rbdump: \d+ s, \d+ samples, \d+ rejected", shown), shown
    assert json.loads((tmp_path / "report.json").read_text())["ended"] == "interrupted"
    assert b"ended by: interrupted" in shown


# ---- bad input


def check_refusal(done, status, *words):
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("rbdump: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"schema_version": 2, "roots": [], "frames": {}}', '{"schema_version": 1, "roots": 3}',
        '{"schema_version": 1, "roots": ["a"], "frames": {"a": 3}}',
        '{"schema_version": 1, "roots": ["a"], "frames": {"a": {"lines": ["x", {}]}}}',
        '{"schema_version": 1, "roots": ["a"], "frames": {"a": {"calls": {"1": "b"}}}}', "[" * 100000,
    ],
)  # fmt: skip
def test_bad_oracle(rbdump, tmp_path, text):
    oracle = tmp_path / "oracle.json"
    oracle.write_text(text)
    check_refusal(run(rbdump, "experiment", "-p", os.getpid(), "--oracle", oracle), FAILED, "oracle.json")


def test_no_oracle_file(rbdump, tmp_path):
    check_refusal(run(rbdump, "experiment", "-p", os.getpid(), "--oracle", tmp_path / "none"), FAILED, "No such file")


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["-p", "1", "--", "true"], ["-p", "x"], ["-p", "1", "-r", "0"], ["-p", "1", "-r", "-5"], ["-p", "1", "-r", "nan"],
        ["-p", "1", "-r", "1e9"], ["-p", "1", "-r", "1e-300"], ["-p", "1", "-n", "0"], ["-p", "1", "-n", "1.5"], ["-p", "1", "-d", "0"],
        ["-p", "1", "-n", "5", "-d", "5"], ["-p", "1", "-m", "none"], ["-p", "1", "-m", ""], ["-p", "1", "--on-torn", "x"],
        ["-p", "1", "--seed", "0"], ["-p", "1", "--budget", "0"], ["-p", "1", "--no-such"], ["-p"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_usage(rbdump, arguments):
    check_refusal(run(rbdump, "experiment", *arguments), USAGE)


def test_outputs_that_cannot_be_written(ruby, rbdump, tmp_path):
    """Where the report is to go is known to be wrong before anything is done; a full torn log costs only itself."""
    report = tmp_path / "report.json"
    with Graph(ruby, "churn", tmp_path) as graph:
        no_folder = tmp_path / "none/report.json"
        check_refusal(run(rbdump, "experiment", "-p", graph.pid, "--json", no_folder), FAILED, "none/report.json")
        done = run(
            rbdump, "experiment", "-p", graph.pid, "-n", 50, "-r", 1000, "-m", "unpaused-naive,paused-naive",
            "--oracle", tmp_path / "oracle.json", "--json", report, "--torn-log", "/dev/full",
        )  # fmt: skip
        assert is_untouched(graph.pid)
    modes = {mode["mode"]: mode for mode in json.loads(report.read_text())["modes"]}
    assert modes["paused-naive"]["samples"] == 50
    assert "paused-naive" in done.stdout
    if any(mode["impossible"]["count"] or mode["rejected"] for mode in modes.values()):
        assert (done.returncode, "torn log" in done.stderr) == (FAILED, True)


def test_no_progress_file(ruby, rbdump, tmp_path):
    with Graph(ruby, "churn", tmp_path) as graph:
        missing = tmp_path / "none"
        check_refusal(run(rbdump, "experiment", "-p", graph.pid, "--progress", missing), FAILED, "none", "No such file")
        assert is_untouched(graph.pid)


def test_no_such_command(rbdump):
    check_refusal(run(rbdump, "experiment", "--", "/no/such/program"), FAILED, "/no/such/program")


def test_no_ruby(rbdump):
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            check_refusal(run(rbdump, "experiment", "-p", sleeper.pid), NOT_RUBY, str(sleeper.pid))
        finally:
            sleeper.kill()


@pytest.mark.any_ruby
def test_rate_that_cannot_be_held(ruby, rbdump, tmp_path):
    with Graph(ruby, "churn", tmp_path) as graph:
        _, modes, _ = experiment(rbdump, graph, "-m", "paused", "-r", 1000000, "-n", 2000)
    assert modes["paused"]["achieved_rate"] < 100000
    assert modes["paused"]["late"] > 1000


# ---- C code that calls a method without a frame of its own


@pytest.mark.since((2, 5), "execution contexts")
def test_method_called_for_an_operator(ruby, rbdump, tmp_path):
    """
    hash[key] calls the key's `hash` right above the Ruby frame, where another receiver's [] was found before: no stack
    there is wrong. It is nearly all that the program does.
    """
    script = tmp_path / "operator.rb"
    script.write_text(
        "class Key\n  def hash; i = 0; i += 1 while i < 20_000; 1; end\n  def eql?(_); true; end\nend\n"
        "def look(place, key); place[key]; end\nkey = Key.new\ntable = { key => 1 }\nlook('abc'.match(/b/), 0)\n"
        "Thread.new { STDIN.read; exit!(0) }\nputs; STDOUT.flush\nloop { look(table, key) }\n"
    )
    with subprocess.Popen(
        [ruby.path, "--disable-gems", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as target:
        assert target.stdout.readline() == "\n"
        done = run(rbdump, "experiment", "-p", target.pid, "-m", "paused,unpaused", "-r", 1000, "-n", 300, "--json", "-")
        target.stdin.close()
        assert target.wait(30) == 0
    for mode in json.loads(done.stdout)["modes"]:
        assert "call-site" not in mode["rejected"], mode["rejected"]
        assert mode["retried"].get("call-site", 0) < 5, mode["retried"]
        at_work = sum(count for name, count in mode["leaves"].items() if "read" not in name)
        assert sum(count for name, count in mode["leaves"].items() if name.endswith("hash")) > 0.8 * at_work > 50, mode


# ---- what rbdump was started with


def test_child_signal_ignored(ruby, rbdump, tmp_path):
    """Daemons ignore SIGCHLD, and who they start inherits that; rbdump needs it, and its target gets it back ignored."""
    busy, report = "x = 0; x += 1 while x < 20_000_000", tmp_path / "report.json"
    # A shell, or Ruby, sets it anew.
    first = "import os, signal, sys; print(signal.getsignal(signal.SIGCHLD), flush=True); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [rbdump, "experiment", "-m", "paused", "-r", "500", "-n", "100", "--json", report]
        + ["--", sys.executable, "-c", first, ruby.path, "--disable-gems", "-e", busy],
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


@pytest.mark.long
@pytest.mark.any_ruby
def test_without_a_higher_priority(ruby, rbdump, tmp_path):
    """Without the right to it, that is said, and what is accepted is no less right."""
    setpriv = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"]
    report = tmp_path / "report.json"
    with Graph(ruby, "churn", tmp_path) as graph:
        done = subprocess.run(
            [*setpriv, rbdump, "experiment", "-p", str(graph.pid), "--oracle", graph.oracle, "--json", report]
            + ["-m", "unpaused,paused", "-r", "2000", "-n", "2000"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "did not run at a real-time priority" in done.stdout
    found = json.loads(report.read_text())
    assert found["realtime"] is False
    for mode in found["modes"]:
        assert mode["impossible"]["count"] == 0, summary(mode)
        assert mode["accepted"] > 0.9 * mode["samples"] > 0, summary(mode)


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
            [rbdump, "experiment", "-m", "paused", "-r", "20000", "-d", "60", "--json", "-"]
            + ["--", ruby.path, "--disable-gems", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["target_status"] == {"exit_status": 7, "signal": None}


@pytest.mark.any_ruby
@pytest.mark.since((2, 0), "RUBY_THREAD_VM_STACK_SIZE")
def test_slow_stop_does_not_use_up_the_budget(ruby, rbdump, tmp_path):
    """However long a stop takes, what was wrong with it is looked at once more: here, that the stack is too deep."""
    script = tmp_path / "deep.rb"
    script.write_text(
        "def down(n)\n  if n > 0\n    down(n - 1)\n  else\n    puts; STDOUT.flush; STDIN.read\n  end\nend\ndown(60_000)\n"
    )
    with subprocess.Popen(
        [ruby.path, "--disable-gems", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"RUBY_THREAD_VM_STACK_SIZE": "67108864"},
    ) as target:  # fmt: skip
        assert target.stdout.readline() == "\n"
        done = run(rbdump, "experiment", "-p", target.pid, "-m", "paused", "--budget", 1, "-n", 5, "-r", 50, "--json", "-")
        target.stdin.close()
        assert target.wait(30) == 0
    (mode,) = json.loads(done.stdout)["modes"]
    assert mode["rejected"] == {"too-deep": 5}
    assert mode["retried"] == {"too-deep": 5}
