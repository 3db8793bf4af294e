"""What a sample costs in system calls: one more at most than doc/benchmarks.calls.json says, by bench/sampling.py."""

import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time
import types

import pytest
from harness.process import Bound, schedstat, tracers_of, wait_until
from harness.recording import SECOND, Recording, Running, counts_in
from harness.synthetic import ROOT
from harness.target import TARGETS

sys.path.insert(0, str(ROOT / "bench"))

from sampling import CALLS, READS, Loop, calls_a_sample  # noqa: E402

pytestmark = [pytest.mark.any_ruby, pytest.mark.alone]

# A stack that is not known, a round that is not quiet, more of them where the machine is busy. That only adds calls: so
# what is too much is measured again, some times.
SLACK = 1
TIMES = 3
WATCHED = 9  # windows of a second, of which the first are those in which stacks become known
LOOKS, BETWEEN_LOOKS = 20, 0.2
# A thread that waits for its CPU, which others have, stops late: rbdump then sleeps until it does, looks at the time and
# at who its parent is, and asks again.
CALLS_OF_A_LATE_STOP = 4
# Reads of files a sample while a thread waits for its CPU, and each time that it has got the CPU. And all calls while it
# waits: what is done so many times a second then is divided by fewer samples.
READS_WHILE_IT_WAITS = 1.5
READS_OF_A_SLICE = 2
CALLS_WHILE_IT_WAITS = 2


def reads_of_files(pid):
    text = pathlib.Path(f"/proc/{pid}/io").read_text()
    return int(re.search(r"syscr: (\d+)", text)[1])


class OnCpu:
    """The share of the time since then that a thread had its CPU."""

    def __init__(self, pid):
        self.pid = pid
        self.began, self.before = time.monotonic_ns(), schedstat(pid)

    def share(self):
        return min(1, (schedstat(self.pid).ran - self.before.ran) / (time.monotonic_ns() - self.began))


def reads_of(calls):
    return sum(calls.get(name, 0) for name in READS)


@pytest.mark.parametrize("mode", ["paused", "unpaused"])
@pytest.mark.parametrize("frames", [25, 1000])
def test_system_calls_of_a_sample(ruby, rbdump, tmp_path, mode, frames):
    setting = types.SimpleNamespace(folder=str(tmp_path), rbdump=rbdump, environment=dict(os.environ))
    allowed = json.loads(CALLS.read_text())[f"{mode} {frames}"]
    found = []
    with Loop(ruby, frames, 0) as loop:
        for _ in range(TIMES):
            on_cpu = OnCpu(loop.pid)
            each = calls_a_sample(setting, loop.pid, mode)
            waits = 1 - on_cpu.share()
            assert each["process_vm_readv"] >= 0.5, each
            late_stops = each.get("rt_sigtimedwait", 0)
            all_allowed = sum(allowed.values()) + SLACK + CALLS_OF_A_LATE_STOP * late_stops + CALLS_WHILE_IT_WAITS * waits
            reads_allowed = min(4, reads_of(allowed) + SLACK) + READS_WHILE_IT_WAITS * waits
            if sum(each.values()) <= all_allowed and reads_of(each) <= reads_allowed:
                return
            found.append((all_allowed, reads_allowed, waits, each))
    pytest.fail(f"the calls and reads that are allowed, the share of the time that it waited for a CPU, the calls: {found}")


def test_collections_do_not_send_it_to_the_threads_cpu(ruby, rbdump, tmp_path):
    """Unpaused, what is looked at from the thread's CPU begins with where that is; after a collection it need not be."""
    log = tmp_path / "strace.log"
    shares = []
    with Loop(ruby, program=TARGETS / "shares/collecting.rb") as loop:
        record = [rbdump, "record", "-p", str(loop.pid), "-r", "1000", "--mode", "unpaused", "-d", "3"]
        strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-e", "trace=pread64", "-e", "signal=none", "-o", log]
        while len(shares) < TIMES and (not shares or shares[-1] >= 0.4):
            looks, samples, bound = 0, 0, Bound(120)
            while samples <= 1000:  # under strace, and where others want the CPUs, they are not many a second
                assert bound.left() > 0, samples
                done = subprocess.run(
                    [*strace, *record, "-o", tmp_path / "it.rbdump"], check=True, capture_output=True, text=True, timeout=60
                )
                samples += int(re.search(r"samples (\d+)", done.stderr)[1])
                looks += len(re.findall(r"/stat>", log.read_text()))
            shares.append(looks / samples)
    assert shares[-1] < 0.4, shares


def test_a_thread_that_runs_on_is_not_asked_for(ruby, rbdump, tmp_path):
    """
    Once stacks are known, and the kernel tells whether it still runs, nothing is read but its stack: in most samples of
    the time that it has its CPU. Where others want that, too, it is asked for whenever it has got it, and while it waits.
    So of most windows: of those that are due in one, how many reads there are, and how many may be.
    """
    windows = []
    with Loop(ruby, 25, 0) as loop:
        rate = ["-r", 1000, "--mode", "unpaused"]
        with Recording(rbdump, "-p", loop.pid, *rate, file=tmp_path / "it.rbdump") as recording:
            recording.wait_for_samples()
            (capture,) = tracers_of(recording.pid)
            for _ in range(WATCHED):
                before, switches, on_cpu = reads_of_files(capture), schedstat(loop.pid).switches, OnCpu(loop.pid)
                time.sleep(1)  # is what is measured: to look meanwhile whether it is over would disturb it
                due = 1000 * (time.monotonic_ns() - on_cpu.began) / SECOND
                on, slices = on_cpu.share(), (schedstat(loop.pid).switches - switches) / due
                allowed = 0.5 * on + READS_WHILE_IT_WAITS * (1 - on) + READS_OF_A_SLICE * slices
                windows.append(((reads_of_files(capture) - before) / due, allowed))
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
    counts = counts_in(errors)
    taken = counts["samples"] / (counts["samples"] + counts["late"])  # of those that were due, by which it was divided
    assert taken > 0.3, counts
    assert statistics.median(reads / taken - allowed for reads, allowed in windows) < 0, (windows, counts)


def nr_watched(pid):
    """Of how many threads the kernel tells a process that they have got a CPU."""
    found = 0
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += os.readlink(entry) == "anon_inode:[perf_event]"
    return found


@pytest.mark.parametrize("rate, wanted", [(1, range(80, 102)), (30, range(4))], ids=["few-wake", "many-wake"])
def test_the_kernel_tells_only_if_few_threads_wake_up(ruby, rbdump, tmp_path, rate, wanted):
    """Each time that it does costs the target something."""
    with Running(ruby, "shares/waking.rb", "100", str(rate)) as target:
        with Recording(rbdump, "-p", target.pid, file=tmp_path / "it.rbdump") as recording:
            recording.wait_for_samples()
            (capture,) = tracers_of(recording.pid)
            wait_until(lambda: nr_watched(capture) in wanted, "so many are watched", 60)
            seen = []
            for _ in range(LOOKS):
                time.sleep(BETWEEN_LOOKS)  # within some rounds it may come to be otherwise
                seen.append(nr_watched(capture))
            # While the machine stands still, no thread wakes up, and some begin to be watched.
            assert statistics.median_low(seen) in wanted, seen
            status, _, errors = recording.end(signal.SIGINT)
    assert status == 0, errors


def test_a_recording_never_steps_its_target(ruby, rbdump, tmp_path):
    """A tracer that dies in the middle of a step takes its target with it; and steps take long."""
    log = tmp_path / "strace.log"
    with Loop(ruby, 25, 0) as loop:
        record = [rbdump, "record", "-p", str(loop.pid), "-r", "1000", "--mode", "paused", "-d", "3", "-o", tmp_path / "it.rbdump"]
        strace = ["strace", "-f", "-qq", "-e", "trace=ptrace", "-e", "signal=none", "-o", log]
        subprocess.run([*strace, *record], check=True, capture_output=True, timeout=60)
    requests = re.findall(r"ptrace\((PTRACE_\w+)", log.read_text())
    assert requests.count("PTRACE_INTERRUPT") > 100
    assert set(requests) <= {"PTRACE_SEIZE", "PTRACE_INTERRUPT", "PTRACE_GETREGS", "PTRACE_DETACH"}


def test_nothing_but_copying_while_it_stands_still(ruby, rbdump, tmp_path):
    """And what is copied has been read just before, so that it is not the target that pays for a cold read."""
    with Loop(ruby, 25, 0) as loop:
        record = [rbdump, "record", "-p", str(loop.pid), "-r", "200", "--mode", "paused", "-d", "3", "-o", tmp_path / "it.rbdump"]
        strace = ["strace", "-ff", "-qq", "-s0", "-e", "abbrev=none", "-e", "signal=none", "-o", tmp_path / "strace"]
        subprocess.run([*strace, *record], check=True, capture_output=True, timeout=60)
    logs = [path.read_text(errors="replace") for path in tmp_path.glob("strace.*")]
    log = max(logs, key=lambda log: log.count("PTRACE_INTERRUPT"))
    stop = r"^(.*)\nptrace\(PTRACE_SEIZE.*\nptrace\(PTRACE_INTERRUPT.*\n"
    pauses = re.findall(stop + r"((?:.*\n)*?)ptrace\(PTRACE_DETACH", log, re.M)
    assert len(pauses) > 100
    warm = 0
    for before, pause in pauses:
        called = {line.partition("(")[0] for line in pause.splitlines()}
        assert called <= {"waitid", "rt_sigtimedwait", "process_vm_readv", "ptrace"}, pause
        assert pause.count("ptrace(") == pause.count("PTRACE_GETREGS") == 1, pause
        reads = re.findall(r"^process_vm_readv\(.*\], 1, (\[.*\]), \d+, 0\)", pause, re.M)
        assert 1 <= len(reads) <= 3, pause
        warm += before.startswith("process_vm_readv(") and reads[0] in before
    # One that is stopped again a moment later, out of a torn window, needs no other read.
    assert warm > 0.7 * len(pauses), (warm, len(pauses))
