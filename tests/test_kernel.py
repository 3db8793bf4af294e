"""Samples that are taken in the kernel (dumper/kernel/): against a target whose every legal call is known, and where it is not allowed."""

import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import note_not_applicable
from harness import kernel
from harness.dump import run
from harness.experiment import GRAPH, Graph, experiment, summary
from harness.layouts import generate_layout, without_digest
from harness.places import PLACES, Inhabitant
from harness.process import children_of, is_untouched, name_of, schedstat, tasks, wait_until
from harness.recorded import check_counts, check_well_formed
from harness.recording import SECOND, Recording, Running, collapsed, report, shares_of
from harness.swap import swap, swap_out, swapped_out
from harness.symbolize import probe_path

FAILED, NO_PERMISSION = 2, 4
RATE = 1000
TICK_NS = 10_000_000  # of the kernel's clock, at most
# A program of so many calls, one in the other, that runs for ever once it is there.
DEEP = 'def down(n) = n.zero? ? (puts "ready"; $stdout.flush; loop { n += 1 }) : down(n - 1)\ndown(ARGV[0].to_i)\n'


@pytest.fixture(scope="module", autouse=True)
def it_works():
    reason = kernel.why_not()
    if reason:
        note_not_applicable(f"sampling in the kernel: {reason}")
        pytest.skip(reason)


def check(mode, lines, least):
    """
    All that is accepted is legal. What is not was in a torn window, by its registers; or a collection began before its objects were
    read. The thread goes on before that, so now and then an environment on the heap is another one by then.
    """
    assert mode["impossible"]["count"] == 0, (summary(mode), lines[:3])
    others = sum(mode["rejected"][reason] for reason in mode["rejected"].keys() - {"window", "collected", "compacted"})
    assert others <= 0.01 * mode["samples"], (summary(mode), lines[:3])
    assert mode["accepted"] + sum(mode["rejected"].values()) == mode["samples"]
    assert mode["accepted"] >= least, summary(mode)
    for line in lines:
        assert line["reason"] != "window" or line["ip"]["window"], line


@pytest.mark.three_rubies
def test_kernel_is_right(ruby, rbdump, tmp_path):
    """10,000 stacks under tight churn: not one accepted that cannot be. Without a higher priority, and nobody waits."""
    with Graph(ruby, "churn", tmp_path) as graph:
        answer, modes, lines = experiment(rbdump, graph, "-m", "kernel", "-r", 10000, "-n", 10000)
        assert is_untouched(graph.pid)
    assert answer["no_kernel"] is None
    # The target gets less than a whole CPU beside other tests, and is sampled only on one.
    check(modes["kernel"], lines, 1000)
    assert modes["kernel"]["late"] == 0 and modes["kernel"]["pause_us"] is None
    windows = modes["kernel"]["rejected"].get("window", 0)
    assert windows == 0 or answer["windows_known"]
    assert windows < 0.3 * modes["kernel"]["samples"], summary(modes["kernel"])


@pytest.mark.outer_rubies
@pytest.mark.parametrize("variant", kernel.VARIANTS)
def test_every_variant(ruby, rbdump, tmp_path, variant):
    with Graph(ruby, variant, tmp_path) as graph:
        if not graph.supported:
            assert variant == "ractors" and ruby.series < (3, 0)
            return
        _, modes, lines = experiment(rbdump, graph, "-m", "kernel", "-r", 1000, "-n", 1000)
    check(modes["kernel"], lines, 1 if variant == "gc" else 100)


@pytest.mark.long
def test_with_yjit(ruby, rbdump, tmp_path):
    """3.1's YJIT publishes a frame before it is filled in, and no window tells where: left out here."""
    if not ruby.has_yjit or ruby.series < (3, 2):
        note_not_applicable(f"sampling YJIT in the kernel, on {ruby.id}: not built in, or that of 3.1")
        return
    with Graph(ruby, "blocks", tmp_path, flags=["--yjit"]) as graph:
        _, modes, lines = experiment(rbdump, graph, "-m", "kernel", "-r", 1000, "-n", 1000)
    check(modes["kernel"], lines, 100)


@contextlib.contextmanager
def running(command, **options):
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.any_ruby
@pytest.mark.parametrize("depth", [5000])
def test_deep(ruby, rbdump, tmp_path, depth):
    """All frames of a deep stack are in the copy."""
    script, report = tmp_path / "deep.rb", tmp_path / "report.json"
    script.write_text(DEEP)
    with running([ruby.path, "--disable-gems", script, depth]) as target:
        done = run(rbdump, "experiment", "-p", target.pid, "-m", "kernel", "-r", 500, "-n", 200, "--json", report)
        assert (done.returncode, done.stderr) == (0, "")
    mode = json.loads(report.read_text())["modes"][0]
    assert mode["accepted"] == mode["samples"] > 0, summary(mode)
    assert all(int(frames) > depth for frames in mode["depths"]), mode["depths"]


@pytest.mark.alone
@pytest.mark.outer_rubies
def test_time_lines(ruby, rbdump, file):
    """
    The time of each thread is in the recording without a gap; what of it the thread was on a CPU, and waited for one, is what the
    kernel's own counters say.
    """
    with Running(ruby, "shares/time_lines.rb") as target:
        assert target.first_line == "ready"
        with Recording(rbdump, "-p", target.pid, "-r", 99, "--mode", "kernel", file=file) as recording:
            recording.wait_for_samples()
            began, before = time.time_ns(), {tid: schedstat(target.pid, tid) for tid in tasks(target.pid)}
            recording.wait_until(lambda profile: profile.end() > began + 4 * SECOND, "it was recorded for a while")
            ended, after = time.time_ns(), {tid: schedstat(target.pid, tid) for tid in tasks(target.pid)}
            recording.wait_until(lambda profile: profile.end() > ended, "all of that was recorded")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        target.finish()
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    check_counts(profile, errors)
    begin, end = began - profile.start, ended - profile.start
    found, longest = collections.defaultdict(collections.Counter), collections.Counter()
    for one in profile.spans:
        found[one.thread["tid"]][one.state] += one.within(begin, end)
        if one.state == "runnable":
            longest[one.thread["tid"]] = max(longest[one.thread["tid"]], one.weight)
    # The two that compute, the one that sleeps, and the one that reads and the one that writes; and the main thread.
    assert found.keys() <= before.keys() & after.keys() and len(found) == 6, (found, before)
    for tid, states in found.items():
        # The kernel counts what a thread runs at the ticks of its clock, and what it waits for a CPU when it is given one.
        open_ns = 0.01 * (end - begin) + 2 * (TICK_NS + longest[tid])
        assert abs(states.total() - (end - begin)) <= 10_000, (tid, states, end - begin)
        ran, waited = after[tid].ran - before[tid].ran, after[tid].waited - before[tid].waited
        assert abs(states["cpu"] + states["gc"] - ran) <= open_ns, (tid, states, ran)
        assert abs(states["runnable"] - waited) <= open_ns, (tid, states, waited)


def marks(span):
    """What is said in the place of frames."""
    return {frame["name"] for frame in span.frames if frame["kind"] == "mark"}


@pytest.mark.alone
@pytest.mark.any_ruby
def test_full_ring(ruby, rbdump, file, tmp_path):
    """If rbdump takes no records for a while, the recording says of which thread they were lost, of what time, and how many."""
    script = tmp_path / "deep.rb"
    script.write_text(f'Thread.new {{ Thread.current.name = "other"; sleep }}\n{DEEP}')
    with running([ruby.path, "--disable-gems", script, 1500]) as target:
        with Recording(rbdump, "-p", target.pid, "-r", RATE, "--mode", "kernel", file=file) as recording:
            recording.wait_for_samples()
            captures = children_of(recording.pid)
            before = time.monotonic_ns()
            for pid in captures:
                os.kill(pid, signal.SIGSTOP)
            stopped = schedstat(target.pid, target.pid).ran
            wait_until(lambda: schedstat(target.pid, target.pid).ran > stopped + SECOND // 2, "the target ran for a while")
            for pid in captures:
                os.kill(pid, signal.SIGCONT)
            wall = time.monotonic_ns() - before
            resumed = time.time_ns()
            recording.wait_until(lambda profile: profile.end() > resumed + SECOND, "it goes on")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    check_counts(profile, errors)
    assert not any("(unreadable: lost)" in marks(one) for one in profile.of(name="other"))
    lost = sum(one.weight for one in profile.of(main=True) if "(unreadable: lost)" in marks(one))
    # The ring has room for the stacks of a few hundredths of a second. On a busy machine, the target waits for a CPU, too.
    assert 0.6 * SECOND // 2 < lost < wall + SECOND // 10, (lost, wall)
    # Each stack that was lost is counted, and stands for a period of the clock.
    missed = profile.counts["missed"] * SECOND // RATE
    assert 0.6 * SECOND // 2 < missed < 1.05 * lost + SECOND // 100, (missed, lost)


@pytest.mark.alone
@pytest.mark.any_ruby
def test_page_that_is_swapped_out(ruby, rbdump, file, tmp_path):
    """A stack of which a page is not in memory is marked, and stays out: the kernel does not read it in for rbdump."""
    script = tmp_path / "deep.rb"
    script.write_text(DEEP)
    with swap(tmp_path) as reason:
        if reason:
            note_not_applicable(f"pages that are swapped out: {reason}")
            pytest.skip(reason)
        with running([ruby.path, "--disable-gems", script, 5000]) as target:
            with Recording(rbdump, "-p", target.pid, "-r", RATE, "--mode", "kernel", file=file) as recording:
                recording.wait_for_samples()
                began = time.time_ns()
                swap_out(target.pid)
                swapped = swapped_out(target.pid)
                recording.wait_until(lambda profile: profile.end() > began + 2 * SECOND, "it was recorded for a while")
                still = swapped_out(target.pid)
                status, _, errors = recording.end(signal.SIGINT)
            assert status == 0, errors
            assert is_untouched(target.pid)
    # The program has read some pages in again, before or after it was looked at first.
    assert swapped >= still > swapped // 2 > 0, (swapped, still)
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    check_counts(profile, errors)
    after = [one for one in profile.of(main=True) if profile.start + one.start > began + SECOND]
    share = shares_of(after, lambda one: "(unreadable: not-resident)" in marks(one))
    assert share[True] > 0.95, share


@pytest.mark.any_ruby
@pytest.mark.parametrize("place", ["pid-namespace", "inside-it", "nested", "inside-the-outer"])
def test_in_a_pid_namespace(ruby, rbdump, tmp_path, place):
    """Which threads to sample is told by the ids of rbdump's own pid namespace, whatever namespace the target is in."""
    report = tmp_path / "report.json"
    command = [*PLACES[place].below, ruby.path, "--disable-gems", GRAPH, "churn", "1", tmp_path]
    with running(command) as started:
        inhabitant = Inhabitant(PLACES[place], started.pid)
        done = run(
            *inhabitant.enter, rbdump, "experiment", "-p", inhabitant.pid_there, "-m", "kernel", "-r", 1000, "-n", 500,
            "--oracle", tmp_path / "oracle.json", "--json", report,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        os.kill(inhabitant.pid, signal.SIGKILL)
    mode = json.loads(report.read_text())["modes"][0]
    assert mode["samples"] > 50 and mode["impossible"]["count"] == 0, summary(mode)


def test_form_for_older_kernels():
    """The kernel accepts the form of the programs for kernels before 6.16, too."""
    done = subprocess.run([probe_path("kernel_form")], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\n", "")


@pytest.mark.alone
@pytest.mark.any_ruby
@pytest.mark.parametrize("verb", ["experiment", "record"])
def test_kill_leaves_nothing(ruby, rbdump, tmp_path, verb):
    """Whenever rbdump is killed, the kernel removes the program, its tables and its rings."""
    before = kernel.programs(), kernel.maps()
    how = ["-m", "kernel"] if verb == "experiment" else ["--mode", "kernel", "-o", tmp_path / "recording"]
    with Graph(ruby, "churn", tmp_path) as graph:
        for _ in range(3):
            command = [rbdump, verb, "-p", graph.pid, *how, "-d", 600, "-r", 1000]
            with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, start_new_session=True) as process:
                wait_until(lambda: kernel.programs() - before[0], "the program is loaded")
                os.killpg(process.pid, signal.SIGKILL)
            wait_until(lambda: not kernel.programs() - before[0] and not kernel.maps().keys() - before[1].keys(), "all of it is gone")
        assert is_untouched(graph.pid)


def new_tables(before, name):
    return [table for table, called in kernel.maps().items() if called == name and table not in before]


def first_chance_below_1(table):
    chances = [both % 2**32 for both in kernel.entries(table).values()]
    return next((chance for chance in chances if chance < 2**32 - 1), None)


@pytest.mark.any_ruby
@pytest.mark.alone
def test_many_waits(ruby, rbdump, file):
    """Of very many waits, only some stacks are copied. Each place gets the share of the time that was waited there all the same."""
    before, rate = kernel.maps(), 250
    with Running(ruby, "shares/many_waits.rb") as target:
        with Recording(rbdump, "-p", target.pid, "-r", rate, "--mode", "kernel", file=file) as recording:
            recording.wait_for_samples()
            [table] = new_tables(before, "chances")
            # The second one is that of being copied when preempted.
            chance = wait_until(lambda: first_chance_below_1(table), "not each wait is copied")
            begin = time.time_ns()
            recording.wait_until(lambda profile: profile.end() > begin + 4 * SECOND, "it was recorded for a while")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        short, long = (int(word) for word in target.finish().split())
    assert 0 < chance < 0.5 * (2**32 - 1)
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    check_counts(profile, errors)
    waited = collections.Counter()
    for one in profile.of(name="waits"):
        waited[one.method("Waits#wait_short", "Waits#wait_long")] += one.within(begin - profile.start, one.end)
    total = waited["Waits#wait_short"] + waited["Waits#wait_long"]
    assert total > 0.97 * waited.total(), waited
    # Which waits are copied is by chance, some 250 a second: five standard deviations.
    share, copied = short / (short + long), rate * total / SECOND
    assert abs(waited["Waits#wait_short"] / total - share) < 5 * (share * (1 - share) / copied) ** 0.5, (waited, short, long)


@pytest.mark.outer_rubies
@pytest.mark.alone
def test_short_threads(ruby, rbdump, file):
    """Threads that live for some ms are known as soon as they run: their waits have stacks, and last as long as they say."""
    with Running(ruby, "shares/short_threads.rb") as target:
        done = run(rbdump, "record", "-p", target.pid, "-r", 99, "--mode", "kernel", "--max-cpu", 50, "-d", 3, "-o", file)
        count, slept = (int(word) for word in target.finish().split())
    assert done.returncode == 0, done.stderr
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    waits = [one for one in profile.spans if one.state == "sleeping" and not one.thread["main"]]
    slept_there = [one for one in waits if one.method("Short#rest")]
    # The thread that reads is blocked. Those that began while nobody looked are not in there.
    assert len(slept_there) > 0.98 * len(waits) > 100, (len(slept_there), len(waits), count)
    # A wait is cut where a part of the recording was sent; and in waking up, a thread may wait for a moment again.
    of_one = sum(one.weight for one in slept_there) / sum(one.weight > SECOND // 1000 for one in slept_there)
    assert 0.0027 * SECOND <= of_one <= 1.1 * slept / count + TICK_NS / 10, (of_one, slept / count)
    # A thread that no interrupt has met may have no stack of its time on a CPU.
    lived = [one for one in profile.spans if not one.thread["main"]]
    assert sum(one.weight for one in lived if marks(one)) < 0.1 * sum(one.weight for one in lived), done.stderr


@pytest.mark.outer_rubies
@pytest.mark.alone
@pytest.mark.parametrize("place", ["here", "inside-it"])
def test_brief_threads(ruby, rbdump, file, place):
    """Threads that hardly ever leave their CPU before they end: their CPU time is in the recording, and ends with them."""
    if ruby.series < (3, 0):
        note_not_applicable(f"brief threads on {ruby.id}: its native threads are used again, and say nothing of a thread that has ended")
        return
    script = pathlib.Path(__file__).parent / "targets/shares/brief_threads.rb"
    with running([*PLACES[place].below, ruby.path, "--disable-gems", script]) as started:
        inhabitant = Inhabitant(PLACES[place], started.pid)
        command = [rbdump, "record", "-p", inhabitant.pid_there, "-r", 99, "--mode", "kernel", "--max-cpu", 50, "-d", 3, "-o", file]
        done = run(*inhabitant.enter, *command)
        started.stdin.close()
        took = int(started.stdout.readline())
    assert done.returncode == 0, done.stderr
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    ran = sum(one.weight for one in profile.spans if one.state in ("cpu", "gc") and not one.thread["main"])
    # What a thread runs before and after its block is in there, too.
    assert 0.7 * took <= ran * SECOND / profile.duration <= 1.5 * took, (ran, took, profile.duration)


ENDING = """
Thread.current.name = "chief"
Thread.new { begin; sleep; ensure; sleep 0.3; end }
ObjectSpace.define_finalizer(Object.new, proc { began = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < began + 0.4 })
$stdout.puts "ready"
$stdout.flush
$stdin.read
"""


@pytest.mark.outer_rubies
def test_process_that_ends(ruby, rbdump, file):
    """The main thread waits for the others and runs finalizers after it has ended by its status: it is recorded up to its end."""
    with subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", ENDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as target:
        assert target.stdout.readline() == "ready\n"
        with Recording(rbdump, "-p", target.pid, "-r", 99, "--mode", "kernel", file=file) as recording:
            recording.wait_for_samples()
            target.stdin.close()
            status, _, errors = recording.end(None)
    assert status == 0, errors
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    [main] = [thread for thread in profile.threads if thread["tid"] == target.pid]
    assert (main["name"], main["main"]) == ("chief", True)
    ran = sum(one.weight for one in profile.spans if one.state in ("cpu", "gc") and one.thread["main"])
    waited = sum(one.weight for one in profile.spans if one.state != "cpu" and one.thread["main"])
    # No time is left out, not that without a stack either.
    lines = collapsed(run(rbdump, "report", file, "--idle", "-f", "collapsed").stdout)
    assert abs(sum(weight for _, weight in lines) * 1000 - profile.weight()) < SECOND // 1000
    assert ran > 0.3 * SECOND and waited > 0.25 * SECOND, (ran, waited)


@pytest.mark.any_ruby
@pytest.mark.alone
def test_limit_of_cpu_time(ruby, rbdump, file):
    """With a limit that is too low for the rate, stacks are left out. That is told; the times are still all there."""
    with Running(ruby, "shares/time_lines.rb") as target:
        options = ["-p", target.pid, "-r", 10000, "--mode", "kernel", "--max-cpu", 0.5]
        with Recording(rbdump, *options, file=file) as recording:
            recording.wait_until(lambda profile: profile.counts["skipped"] > 0, "some are left out")
            begin = time.time_ns()
            recording.wait_until(lambda profile: profile.end() > begin + 2 * SECOND, "it was recorded for a while")
            end = begin + 2 * SECOND
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        target.finish()
    assert "times per second instead of 10000, to take at most 0.5 % of a CPU (--max-cpu)" in errors
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    begin, end = begin - profile.start, end - profile.start
    for thread in {one.thread["tid"] for one in profile.spans}:
        covered = sum(one.within(begin, end) for one in profile.spans if one.thread["tid"] == thread)
        assert abs(covered - (end - begin)) <= 10_000, thread


@pytest.mark.any_ruby
@pytest.mark.alone
def test_one_program_for_all(ruby, rbdump, file):
    """However many processes are recorded, one program samples all. One whose capture was killed is sampled no more."""
    before = kernel.programs(), kernel.maps()
    with Running(ruby, "shares/time_lines.rb") as first, Running(ruby, "shares/time_lines.rb") as second:
        pids = {first.pid, second.pid}
        with Recording(rbdump, "-p", first.pid, "-p", second.pid, "--mode", "kernel", file=file) as recording:
            recording.wait_until(lambda profile: set(profile.pids()) == pids, "both are recorded")
            assert len(kernel.programs() - before[0]) == 1
            [table] = new_tables(before[1], "processes")
            wait_until(lambda: kernel.entries(table).keys() == pids, "both are sampled")
            captures = [pid for pid in children_of(recording.pid) if name_of(pid) == "rbdump"]
            assert len(captures) == 2
            os.kill(min(captures), signal.SIGKILL)
            wait_until(lambda: kernel.entries(table).keys() == {second.pid}, "one is not sampled any more")
            end = time.time_ns()
            recording.wait_until(lambda profile: profile.end() > end, "the other is recorded on")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == FAILED, errors
        assert f"process {first.pid} is no longer recorded" in errors
        first.finish()
        second.finish()
    assert set(report(rbdump, file, "--idle").pids()) == pids


# The kernel makes a thread of the process that polls for requests all the time.
POLLED = """
require "fiddle"
params = [0, 0, 2, 0, 3_600_000].pack("L5").ljust(120, "\\0")  # IORING_SETUP_SQPOLL
types = [Fiddle::TYPE_LONG, Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP]
setup = Fiddle::Function.new(Fiddle.dlopen(nil)["syscall"], types, Fiddle::TYPE_LONG)
told = setup.call(425, 4, params)
puts "ready", told
$stdout.flush
loop { (1..100_000).sum { |n| n * 2 }; sleep 0.001 }
"""


@pytest.mark.any_ruby
def test_thread_of_io_uring(ruby, rbdump, file):
    """A thread that the kernel has made for io_uring has the thread pointer of a Ruby thread, but is none."""
    with running([ruby.path, "--disable-gems", "-e", POLLED]) as target:
        told = int(target.stdout.readline())
        if told < 0:
            note_not_applicable("a thread of io_uring: the kernel refuses to make one")
            pytest.skip("no io_uring")
        wait_until(lambda: len(tasks(target.pid)) == 2, "the kernel has made its thread")
        done = run(rbdump, "record", "-p", target.pid, "--mode", "kernel", "-r", RATE, "-d", 2, "-o", file)
        assert done.returncode == 0, done.stderr
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    assert {one.thread["tid"] for one in profile.spans} == {target.pid}


# A thread that a timer wakes, which wakes one, which wakes another; and one that another process wakes. Each waits in one place only: a
# wait may be shown with the stack of another one of the same thread.
WAKES = """
first, second = 2.times.map { (defined?(Thread::Queue) ? Thread::Queue : Queue).new }
reader, writer = IO.pipe
child = fork { reader.close; loop { writer.write("x"); sleep 0.002 } }
writer.close
Thread.new { Thread.current.name = "timer"; loop { sleep 0.002; first << 1 } }
Thread.new { Thread.current.name = "one"; loop { first.pop; second << 1 } }
Thread.new { Thread.current.name = "other"; loop { second.pop } }
Thread.new { Thread.current.name = "reader"; loop { reader.read(1) } }
puts child
puts "ready"
$stdout.flush
$stdin.read
Process.kill(:KILL, child)
"""


@pytest.mark.outer_rubies
def test_who_woke_whom(ruby, rbdump, file):
    """A thread's wait has the thread that has ended it; one that a timer has ended has none. Shares are of the time."""
    with subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", WAKES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as target:
        child = int(target.stdout.readline())
        assert target.stdout.readline() == "ready\n"
        done = run(rbdump, "record", "-p", target.pid, "--mode", "kernel", "-d", 2, "-o", file)
        target.stdin.close()
    assert done.returncode == 0, done.stderr
    profile = report(rbdump, file, "--idle")
    wakers, names = profile.answer["wakers"], {thread["tid"]: thread["name"] for thread in profile.threads}
    found = collections.defaultdict(collections.Counter)
    for one in profile.answer["runs"]:
        if one["state"] in ("sleeping", "blocked"):
            waker = None if one["waker"] is None else wakers[one["waker"]]
            name = profile.threads[one["thread"]]["name"]
            leaf = profile.stacks[one["stack"]][0]["name"] if one["stack"] is not None else None
            found[name, leaf][waker and (waker["pid"], names.get(waker["tid"]), waker["command"])] += one["weight_ns"]
        elif one["state"] != "gvl":
            assert one["waker"] is None, one

    def share(name, method, waker):
        waits = collections.Counter()
        for (of, leaf), counts in found.items():
            if of == name and leaf is not None and leaf.endswith(method):
                waits += counts
        assert waits.total() >= 0.1 * SECOND, (name, method, found)
        return waits[waker] / waits.total()

    # Another thread may have to give it the GVL.
    assert share("one", "#pop", (target.pid, "timer", "ruby")) >= 0.6, found
    assert share("other", "#pop", (target.pid, "one", "ruby")) >= 0.6, found
    assert share("timer", "#sleep", None) >= 0.9, found
    assert share("reader", "#read", (child, None, "ruby")) >= 0.9, found
    # The summary says the same.
    text = run(rbdump, "report", "--idle", file).stdout
    # A wait that is cut did not end there.
    woken = next(one for one in profile.answer["runs"] if one["waker"] is not None and one["start_ns"] > SECOND // 2)
    middle = (woken["start_ns"] + woken["weight_ns"] // 2) / SECOND
    cut = [one for one in report(rbdump, file, "--idle", "--to", middle).answer["runs"] if one["start_ns"] == woken["start_ns"]]
    assert woken["start_ns"] in {one["start_ns"] for one in cut} and not any(one["waker"] for one in cut), (woken, cut)
    assert re.search(rf"^ +[0-9.]+ s +\d+  ruby {target.pid}: reader \(\d+\) <- ruby {child}$", text, re.M), text
    assert re.search(rf"^ +[0-9.]+ s +\d+  .*: other \(\d+\) <- ruby {target.pid}: one \(\d+\)$", text, re.M), text


WITHOUT_BPF = ["setpriv", "--bounding-set=-bpf,-sys_admin", "--inh-caps=-bpf,-sys_admin"]


@pytest.mark.any_ruby
def test_auto(ruby, rbdump, file):
    """If no mode is given, the kernel samples where it may; elsewhere threads are stopped, and one sentence says why."""
    with running([ruby.path, "--disable-gems", "-e", 'puts "ready"; $stdout.flush; loop { rand.to_s }']) as target:
        for before, mode in ((), "kernel"), (WITHOUT_BPF, "paused"):
            for words in ([], ["--mode", "auto"]):
                done = run(*before, rbdump, "record", *words, "-p", target.pid, "-d", 0.5, "-o", file)
                assert done.returncode == 0, done.stderr
                profile = report(rbdump, file)
                assert profile.answer["mode"] == mode and [one["mode"] for one in profile.processes] == [mode]
                assert profile.counts["complete"] > 0
                why = [line for line in done.stderr.splitlines() if "because" in line]
                if mode == "kernel":
                    assert not why, done.stderr
                else:
                    assert len(why) == 1 and why[0].startswith("rbdump: using mode paused, because ") and "CAP_BPF" in why[0], why
        done = run(*WITHOUT_BPF, rbdump, "record", "--native", "-p", target.pid, "-d", 0.5, "-o", file)
        assert done.returncode == 0, done.stderr
        profile = report(rbdump, file)
        assert profile.answer["mode"] == "paused"
        assert any(frame["kind"] == "native" for span in profile.spans for frame in span.frames)
        # What only the kernel can give is not left out in silence.
        done = run(*WITHOUT_BPF, rbdump, "record", "--kernel-frames", "-p", target.pid, "-d", 0.5, "-o", file)
        assert done.returncode == NO_PERMISSION and "CAP_BPF" in done.stderr, done.stderr


@pytest.mark.any_ruby
def test_auto_for_each_process(ruby, rbdump, file):
    """A process that cannot be sampled in the kernel is stopped for it, and the recording says so."""
    layout = generate_layout(ruby, rbdump, file.with_suffix(".layout"))
    text, left_out = re.subn(r"^member rb_objspace\.(profile\.)?count .*\n", "", without_digest(layout.read_text()), flags=re.M)
    assert left_out == 1
    layout.write_text(re.sub(r"^end (\d+)$", lambda end: f"end {int(end[1]) - 1}", text, flags=re.M))
    with running([ruby.path, "--disable-gems", "-e", 'puts "ready"; $stdout.flush; loop { rand.to_s }']) as target:
        words = [rbdump, "record", "-p", target.pid, "-d", 0.5, "--offsets", layout, "-o", file]
        refused = run(*words, "--mode", "kernel")
        assert refused.returncode == FAILED and "when the process collects garbage" in refused.stderr, refused.stderr
        done = run(*words)
    assert done.returncode == 0, done.stderr
    profile = report(rbdump, file)
    assert profile.answer["mode"] == "kernel" and [one["mode"] for one in profile.processes] == ["paused"]
    assert profile.counts["complete"] > 0
    assert ", kernel (1 process in mode paused), 1 process" in run(rbdump, "report", file).stdout


@pytest.mark.any_ruby
def test_where_it_is_not_allowed(ruby, rbdump, tmp_path):
    """One sentence says why. If it was not asked for by name, the other modes are compared, and the report says so."""
    with Graph(ruby, "churn", tmp_path) as graph:
        for words in (["experiment", "-m", "kernel", "-n", 10], ["record", "--mode", "kernel", "-d", 1, "-o", tmp_path / "none"]):
            refused = run(*WITHOUT_BPF, rbdump, *words, "-p", graph.pid)
            assert (refused.returncode, refused.stdout) == (NO_PERMISSION, "")
            assert refused.stderr.startswith("rbdump: ") and refused.stderr.count("\n") == 1, refused.stderr
            assert "CAP_BPF" in refused.stderr
        report = tmp_path / "report.json"
        done = run(*WITHOUT_BPF, rbdump, "experiment", "-p", graph.pid, "-r", 1000, "-n", 10, "--json", report)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the mode `kernel` is left out: the kernel does not let rbdump" in done.stdout
    found = json.loads(report.read_text())
    assert "CAP_BPF" in found["no_kernel"]
    assert {mode["mode"] for mode in found["modes"]} == {
        "unpaused-naive", "unpaused-once", "unpaused-double", "unpaused", "paused-naive", "paused",
    }  # fmt: skip
