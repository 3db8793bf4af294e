"""Recordings: servers, commands, how they end, and who is refused."""

import collections
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import TESTS, note_not_applicable
from harness.dump import run
from harness.process import has_ended, is_untouched, tracers_of, wait_until
from harness.recorded import (
    FAILED,
    LOOPS,
    NOT_RUBY,
    NO_PERMISSION,
    STALL,
    USAGE,
    check_counts,
    check_refusal,
    check_well_formed,
    close,
    interval,
    modes,
    unseen,
)
from harness.recording import (
    CUT,
    MOST,
    SECOND,
    Recording,
    Running,
    is_summary,
    report,
    shares_of,
    timelines,
)

# ---- servers, commands, and how they end


@pytest.mark.any_ruby
def test_workers_come_and_go(ruby, rbdump, file):
    """A server of eight workers, three of which are killed and replaced: each is in the profile, under its pid."""
    with Running(ruby, "server-like/prefork.rb", 8) as server:
        workers = [int(line.split()[1]) for line in [server.first_line, *(server.line() for _ in range(7))]]

        def seen(pids):
            def is_so(profile):
                return all(any(one.method("Worker#handle") for one in profile.of(pid)) for pid in pids)

            return is_so

        with Recording(rbdump, "-p", server.pid, "--children", "-r", 200, file=file) as recording:
            # What happens while a worker begins is little of all.
            begun = time.time_ns()
            recording.wait_until(
                lambda profile: seen(workers)(profile) and profile.end() > begun + 2 * SECOND, "all workers are there"
            )
            killed, died = workers[2:5], time.time_ns()
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            replaced = [int(server.line().split()[1]) for _ in killed]
            there = time.time_ns()
            recording.wait_until(
                lambda profile: seen(replaced)(profile) and profile.end() > there + 2 * SECOND,
                "those that took their place are there",
            )
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        alive = [server.pid, *(set(workers) - set(killed)), *replaced]
        assert all(is_untouched(pid) for pid in alive)
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    check_counts(profile, errors)
    assert set(profile.pids()) == {server.pid, *workers, *replaced}
    processes = {process["pid"]: process for process in profile.processes}
    for pid in [*workers, *replaced]:
        assert (processes[pid]["parent"], processes[pid]["ruby_version"]) == (server.pid, ruby.version)
        spans = [one for one in profile.of(pid) if one.verdict == "complete" and one.state != "starting"]
        working = shares_of(spans, lambda one: one.method("Worker#serve"))
        assert working.get("Worker#serve", 0) > 0.8, (pid, working)
        assert {one.thread["tid"] for one in spans} == {pid}
        assert {one.thread["main"] for one in spans} == {True}
    for pid in killed:
        assert processes[pid]["end_ns"] < min(processes[other]["end_ns"] for other in alive)
        # rbdump may notice later that it has ended.
        assert processes[pid]["end_ns"] <= min(processes[new]["begin_ns"] for new in replaced) + STALL
    assert min(processes[pid]["begin_ns"] for pid in replaced) > max(processes[pid]["begin_ns"] for pid in workers)
    # The server waits for its workers, and its other thread in read(2): without --idle only the latter is shown.
    # But for when it has workers to replace.
    begin, end = died - profile.start, there - profile.start
    master = collections.Counter()
    for one in profile.of(server.pid, main=True):
        master[one.method("Process.wait") is not None] += one.weight - one.within(begin, end)
    assert master[True] > 0.9 * master.total(), master
    shown = report(rbdump, file)
    still = {one.state for one in shown.of(server.pid, main=True) if one.method("Process.wait")}
    assert still <= {"cpu", "gvl"}, still  # when a worker was killed, it did something
    # What rbdump's own first look has interrupted goes on by another name.
    waits = ("read", "ppoll", "poll", "restart_syscall")
    assert [one for one in shown.of(server.pid, main=False) if one.syscall in waits], shown.answer["runs"]
    assert "sleeping" not in {one.state for one in shown.spans}
    assert all(any(one.method("Worker#handle") for one in shown.of(pid)) for pid in workers)


@pytest.mark.alone
@pytest.mark.any_ruby
@pytest.mark.parametrize(
    "how, status",
    [("exit 7", 7), ("Process.kill(:KILL, $$); sleep", 137), ("", 0)],
    ids=["exit", "signal", "end"],
)
def test_command(ruby, rbdump, tmp_path, file, how, status):
    """From its first moment on; it has what it is given, and its exit status is passed on."""
    script = tmp_path / "command.rb"
    # Before it works, and before it ends, it waits until that is recorded: rbdump may be late.
    script.write_text(
        "def before; STDIN.gets; end\ndef after; STDIN.read; end\n"
        "def work(clock, t); nil while Process.clock_gettime(clock) < t + 0.5; end\n"
        "STDOUT.sync = true\nputs before\nclock = Process::CLOCK_MONOTONIC\n"
        f"t = Process.clock_gettime(clock)\nwork(clock, t)\nputs Process.clock_gettime(clock) - t\nputs after\n{how}\n"
    )
    with Recording(
        rbdump, "-r", 1000, "--", ruby.path, "--disable-gems", script, file=file, stdin=subprocess.PIPE
    ) as recording:
        for waits, line in [("Object#before", "what it reads\n"), ("Object#after", "and the rest")]:
            recording.wait_until(lambda profile: any(one.method(waits) for one in profile.spans), f"it is in {waits}")
            recording.process.stdin.write(line)
            recording.process.stdin.flush()
        recording.process.stdin.close()
        recording.process.stdin = None
        done, out, errors = recording.end()
    read, worked, rest = out.splitlines()
    assert (done, read, rest) == (status, "what it reads", "and the rest"), errors
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    check_counts(profile, errors)
    (process,) = profile.processes
    signalled = status > 128
    assert (process["exit_status"], process["signal"]) == ((None, 9) if signalled else (status, None))
    assert process["ruby_version"] == ruby.version
    starting = [one for one in profile.spans if one.state == "starting"]
    assert starting and starting[0].start == min(one.start for one in profile.spans)
    assert {frame["name"] for one in starting for frame in one.frames if frame["kind"] == "mark"} == {"(starting)"}
    working = sum(one.weight for one in profile.of(main=True) if one.method("Object#work"))
    main = profile.of(main=True)
    unclear = unseen(profile, main) * sum(one.weight for one in main)
    assert abs(working - float(worked) * SECOND) < 0.1 * SECOND + unclear, (working, worked, unclear)
    # From its first moment to its last nearly all is there.
    assert sum(one.weight for one in main) > 0.8 * (max(one.end for one in main) - process["begin_ns"])


def test_command_that_becomes_ruby(ruby, rbdump, file, tmp_path):
    """A shell that becomes Ruby is one process, of which the beginning is marked."""
    until_seen = "x += 1 until File.exist?(path) || Process.clock_gettime(1) > $end"
    busy = f"def work(path); x = 0; {until_seen}; end; $end = Process.clock_gettime(1) + 60; work(ARGV[0])"
    command = ["sh", "-c", 'exec "$@"', "sh", ruby.path, "--disable-gems", "-e", busy, tmp_path / "seen"]
    with Recording(rbdump, "-r", 500, "--", *command, file=file) as recording:
        recording.wait_until(lambda profile: any(one.method("Object#work") for one in profile.of(main=True)), "it is seen")
        (tmp_path / "seen").touch()
        status, _, errors = recording.end()
    assert status == 0, errors
    profile = report(rbdump, file)
    (process,) = profile.processes
    assert process["ruby_version"] == ruby.version
    assert any(one.method("Object#work") for one in profile.of(main=True))


def test_no_such_command(rbdump, file):
    done = run(rbdump, "record", "-o", file, "--", "/no/such/program")
    check_refusal(done, FAILED, "/no/such/program")


def test_command_that_is_no_ruby(rbdump, file):
    """Its exit status is its own, unless that would say that all is well."""
    done = run(rbdump, "record", "-o", file, "--", "sh", "-c", "exit 5")
    assert done.returncode == 5, done.stderr
    # One that has ended before it is looked at, and one that has not.
    for command in (["true"], ["sleep", "2"]):
        done = run(rbdump, "record", "-o", file, "--", *command)
        check_refusal(done, NOT_RUBY, "nothing was recorded: rbdump could not read the program as a Ruby")


@pytest.mark.any_ruby
def test_recording_that_was_given_no_name(ruby, rbdump, tmp_path):
    """Where it is, is said; and as it is short, nothing is said of what was late."""

    def recorded(*arguments):
        """What is said of a program that ends once it is recorded: with so few samples a second, that is never long."""
        command = [*arguments, "-r", 5, "--", ruby.path, "--disable-gems", "-e", "STDIN.read"]
        with Recording(rbdump, *command, stdin=subprocess.PIPE, cwd=tmp_path) as recording:
            (recording.file,) = wait_until(lambda: list(tmp_path.glob("*")), "there is a file")
            recording.wait_for_samples()
            status, _, errors = recording.end()
        assert status == 0, errors
        return recording.file, errors

    made, errors = recorded()
    assert re.fullmatch(r"rbdump-\d+\.rbdump", made.name)
    assert errors.splitlines()[-1] == f"rbdump: the recording is in {made.name}"
    assert "were late or missed" not in errors
    made.unlink()
    named, errors = recorded("-o", "named")
    assert named.name == "named" and "the recording is in" not in errors


@pytest.mark.any_ruby
def test_young_command_that_cannot_be_read(ruby, rbdump, file):
    """It ends within the time in which others become Rubies, and why it could not be read is told all the same."""
    layout = TESTS.parent / "offsets.d/2.3.1-x86_64.layout"
    assert ruby.series > (2, 3)
    young = int(re.search(r"#define YOUNG_S (\d+)", (TESTS.parent / "dumper/record/capture.c").read_text())[1])
    lives = f"sleep {0.8 * young}"
    done = run(rbdump, "record", "--offsets", layout, "-o", file, "--", ruby.path, "--disable-gems", "-e", lives)
    assert done.returncode == NOT_RUBY
    why, nothing = done.stderr.splitlines()
    assert "does not fit" in why and re.search(r"the layout is for Ruby 2\.3\.\d+ to 2\.3\.\d+, but the target is Ruby " + re.escape(ruby.version), why), why
    assert "nothing was recorded" in nothing


@pytest.mark.alone
@pytest.mark.any_ruby
def test_rbdump_is_not_where_its_target_runs(ruby, rbdump, file):
    """Neither who takes samples nor who decodes them: each would take time from it, or hold up its stops."""
    if len(os.sched_getaffinity(0)) < 2:
        note_not_applicable("off the target's CPU: there is one alone")
        return
    with Running(ruby, "shares/loops.rb") as target:
        with Recording(rbdump, "-p", target.pid, "-r", 1000, file=file) as recording:
            recording.wait_for_samples()
            (capture,) = tracers_of(recording.pid)

            def is_elsewhere():
                stat = pathlib.Path(f"/proc/{target.pid}/stat").read_text()
                cpu = int(stat.rpartition(")")[2].split()[36])
                threads = [int(thread) for thread in os.listdir(f"/proc/{capture}/task")]
                # The third waits for its own time to be up.
                return sum(cpu not in os.sched_getaffinity(thread) for thread in threads) >= 2

            wait_until(is_elsewhere, "two of its threads are elsewhere")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors


@pytest.mark.any_ruby
@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_ended_by_a_signal(ruby, rbdump, file, with_signal):
    with Running(ruby, "shares/loops.rb") as target:
        with Recording(rbdump, "-p", target.pid, "-r", 200, file=file) as recording:
            recording.wait_for_samples()
            sent = time.time_ns()
            status, out, errors = recording.end(with_signal)
        assert (status, out) == (0, "")
        assert is_summary(errors), errors
        assert is_untouched(target.pid)
        target.finish()
    profile = report(rbdump, file, "--idle")
    assert profile.start + profile.duration >= sent - 50_000_000
    check_counts(profile, errors)


@pytest.mark.any_ruby
@pytest.mark.parametrize("ignored", ["", "trap '' PIPE XFSZ TSTP TTOU; "], ids=["none", "some"])
def test_signals_of_a_command(ruby, rbdump, file, ignored):
    """A command ignores the signals that rbdump was started with ignored, and no others."""
    asks = [ruby.path, "--disable-gems", "-e", "puts File.read('/proc/self/status')[/SigIgn.*/]"]

    def ignores(*command):
        words = ["sh", "-c", ignored + 'exec "$@"', "sh", *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout

    assert ignores(rbdump, "record", "-o", file, "--", *asks) == ignores(*asks) != ""


@pytest.mark.long
@pytest.mark.any_ruby
@modes
def test_killed(ruby, rbdump, file, mode):
    """kill -9 loses the last second at most; the target goes on, and what is there is right."""
    with Running(ruby, "shares/loops.rb") as target:
        with Recording(rbdump, "-p", target.pid, "-r", 200, "--mode", mode, file=file) as recording:
            # For longer than the machine may stand still.
            recording.wait_until(lambda profile: profile.end() - profile.start > STALL + SECOND, "some seconds are there")
            killed = time.time_ns()
            recording.process.kill()
            recording.process.wait(MOST)
        wait_until(lambda: is_untouched(target.pid), "nobody traces it")
        truth = timelines(target.finish())["main"]
    profile = report(rbdump, file, "--idle", status=CUT)
    assert profile.end() >= killed - STALL, (killed - profile.end()) / SECOND
    main = profile.of(main=True)
    found = shares_of(main, lambda one: one.method(*LOOPS))
    told = {f"Loops#{key}": share for key, share in truth.wall(*interval(profile, main)).items()}
    assert close(found, told, 0.05 + unseen(profile, main)), (found, told)


@pytest.mark.any_ruby
@modes
def test_killed_at_random_moments(ruby, rbdump, tmp_path, file, mode):
    """The result of the target's sums is what it is when nobody looks."""
    if ruby.series < (2, 6):
        note_not_applicable(f"graph.rb on {ruby.id}: needs Ruby 2.6")
        return
    rounds = 150_000
    (tmp_path / "alone").mkdir()
    with Running(ruby, "graph/graph.rb", "churn", 1, tmp_path / "alone", rounds) as target:
        answer = target.finish()
    moments = random.Random(3)
    with Running(ruby, "graph/graph.rb", "churn", 1, tmp_path, rounds) as target:
        while not has_ended(target.pid):
            with Recording(rbdump, "-p", target.pid, "-r", 5000, "--mode", mode, file=file) as recording:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    recording.process.wait(moments.uniform(0.02, 0.4))
        assert target.finish() == answer


@pytest.mark.long
@pytest.mark.any_ruby
def test_target_that_ends(ruby, rbdump, file):
    """One of two goes on being recorded when the other has ended; with both, the recording ends."""
    with Running(ruby, "shares/loops.rb") as first, Running(ruby, "shares/loops.rb") as second:
        pids = ["-p", first.pid, "-p", second.pid]
        with Recording(rbdump, *pids, "-r", 200, "-d", 600, file=file) as recording:
            recording.wait_until(lambda profile: profile.of(first.pid) and profile.of(second.pid), "both are sampled")
            first.finish()
            ended = time.time_ns()

            def goes_on(profile):
                """For two seconds after rbdump has noticed the end of the first."""
                ends = [process["end_ns"] for process in profile.processes if process["pid"] == first.pid]
                last = max(one.end for one in profile.of(second.pid))
                return ends[0] is not None and last > ends[0] + 2 * SECOND

            recording.wait_until(goes_on, "the other one goes on")
            second.finish()
            status, _, errors = recording.end()
        assert status == 0
        assert is_summary(errors), errors
    profile = report(rbdump, file, "--idle")
    ends = {process["pid"]: process["end_ns"] + profile.start for process in profile.processes}
    assert ends[first.pid] < ended + STALL
    assert ends[first.pid] + 2 * SECOND <= ends[second.pid]


@pytest.mark.outer_rubies
def test_target_that_becomes_another_program(ruby, rbdump, tmp_path, file):
    """After its exec no stack of what it was is shown; the file is whole."""
    (tmp_path / "after.rb").write_text(
        "Thread.new { STDIN.gets; exit!(0) }\nSTDOUT.puts 'after'\nSTDOUT.flush\n"
        "def after; x = 0; x += 1 while true; end\nafter\n"
    )
    script = tmp_path / "before.rb"
    script.write_text(
        "def before; x = 0; x += 1 until $go; end\nThread.new { STDIN.gets; $go = true }\n"
        "STDOUT.puts 'ready'\nSTDOUT.flush\n"
        f"before\nexec({ruby.path!r}, '--disable-gems', {str(tmp_path / 'after.rb')!r})\n"
    )
    with Running(ruby, script) as target:
        with Recording(rbdump, "-p", target.pid, "-r", 500, file=file) as recording:
            recording.wait_until(lambda profile: any(one.method("Object#before") for one in profile.spans), "it samples")
            target.process.stdin.write(b"go\n")
            assert target.line() == "after"
            changed = time.time_ns()

            def is_over():
                profile = recording.so_far()
                seen = profile and any(one.method("Object#after") for one in profile.spans)
                return seen or recording.process.poll() is not None

            wait_until(is_over, "the new program is seen, or the recording has ended", MOST)
            status, _, errors = recording.end(signal.SIGINT if recording.process.poll() is None else None)
        assert status == 0, errors
        assert is_untouched(target.pid)
        target.process.stdin.write(b"end\n")
        assert target.process.wait(MOST) == 0
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    late = [one for one in profile.spans if profile.start + one.start > changed]
    assert not [one for one in late if one.method("Object#before")]
    early = [one for one in profile.spans if one.method("Object#after")]
    assert not [one for one in early if one.method("Object#before")]


# ---- who is refused


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["-p", "1", "--", "true"], ["-p", "x"], ["-p", "-1"], ["-p"], ["-p", "1", "-r", "0"], ["-p", "1", "-r", "-5"],
        ["-p", "1", "-r", "nan"], ["-p", "1", "-r", "x"], ["-p", "1", "-d", "0"], ["-p", "1", "-d", "-1"], ["-p", "1", "-d", "x"],
        ["-p", "1", "-f", "xml"], ["-p", "1", "-f", ""], ["-p", "1", "--mode", "stopped"], ["-p", "1", "--threads", "some"],
        ["-p", "1", "--by", "moon"], ["-p", "1", "--rotate", "0"], ["-p", "1", "--time-limit", "x"], ["-p", "1", "--no-such"],
        ["-p", "1", "more"], ["--"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_usage_of_record(rbdump, tmp_path, arguments):
    check_refusal(run(rbdump, "record", *arguments, cwd=tmp_path), USAGE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["x", "-f", "raw"], ["x", "-f", "xml"], ["x", "--by", "moon"], ["x", "--threads", "some"], ["x", "--state", "asleep"],
        ["x", "--pid", "y"], ["x", "--from", "y"], ["x", "--to", "-1"], ["x", "--from", "2", "--to", "2"], ["x", "--no-such"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_usage_of_report(rbdump, tmp_path, arguments):
    check_refusal(run(rbdump, "report", *arguments, cwd=tmp_path), USAGE)


def test_no_such_process(rbdump, file):
    with subprocess.Popen(["true"]) as ended:
        pass
    check_refusal(run(rbdump, "record", "-p", ended.pid, "-o", file), FAILED, str(ended.pid))
    assert not file.exists()


def test_no_ruby(rbdump, file):
    """Also one that has begun so lately that it might become one."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        check_refusal(run(rbdump, "record", "-p", cat.pid, "-o", file), NOT_RUBY, str(cat.pid))
        assert is_untouched(cat.pid)
        cat.stdin.close()
    check_refusal(run(rbdump, "record", "-p", os.getpid(), "-o", file, "-d", 60), NOT_RUBY, str(os.getpid()))
    assert not file.exists()


@pytest.mark.any_ruby
def test_one_of_two_is_no_ruby(ruby, rbdump, file):
    """The other one is recorded."""
    with Running(ruby, "shares/loops.rb") as target:
        with Recording(rbdump, "-p", target.pid, "-p", os.getpid(), file=file) as recording:
            recording.wait_until(lambda profile: any(one.method(*LOOPS) for one in profile.spans), "it samples")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == NOT_RUBY and str(os.getpid()) in errors.splitlines()[0], (status, errors)
        assert is_untouched(target.pid)
    assert any(one.method(*LOOPS) for one in report(rbdump, file).spans)


@pytest.mark.any_ruby
def test_no_permission(ruby, rbdump, tmp_path):
    """Somebody else's process."""
    if os.getuid() != 0:
        note_not_applicable("a process of another user: needs root")
        return
    with Running(ruby, "shares/loops.rb") as target:
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            + [rbdump, "record", "-p", str(target.pid), "-o", "-", "-f", "json"],
            capture_output=True, text=True, timeout=60, check=False, cwd="/",
        )  # fmt: skip
        check_refusal(done, NO_PERMISSION, str(target.pid))
        assert is_untouched(target.pid)


def test_traced_by_another(ruby, rbdump, file):
    """What is paused must be traced; who is being debugged is left alone."""
    with Running(ruby, "shares/loops.rb") as target:
        tracer = [sys.executable, TESTS / "harness/tracer.py", str(target.pid)]
        with subprocess.Popen(tracer, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracing:
            assert tracing.stdout.readline() == b"traced\n"
            # Who it was is said however short the recording was, and however lately the target has begun.
            check_refusal(run(rbdump, "record", "-p", target.pid, "-o", file, "-d", 1), NO_PERMISSION, str(target.pid))
            tracing.stdin.close()
        wait_until(lambda: is_untouched(target.pid), "nobody traces it")
