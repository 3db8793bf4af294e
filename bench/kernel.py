#!/usr/bin/env python3
"""
What sampling in the kernel costs: the kernel, the program that is sampled, and rbdump.

    bench/kernel.py [--ruby ID] [--frames 100,1000] [--rates 100,1000,10000] [--turns 8] [--seconds 3] [--native]

A program (bench/loop.rb) calls a method again and again, so many control frames deep. By turns it is not recorded, or
recorded with `rbdump record --mode kernel`, or another Ruby that waits is recorded so. In the last case, rbdump's program in the kernel
runs as often, but finds that the interrupted thread is none of its threads: that is what an empty program costs. Prints for
each depth and rate how fast the program was in both cases, compared with not being recorded (median of the turns, and the
quartiles); how long the program in the kernel runs on average at an interrupt of the clock, by the kernel's own statistics,
which are switched on for one more turn; and how much CPU time rbdump took per sample, from when all stacks were known.
Needs root, and bpftool.
"""

import argparse
import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "tests"))

from harness.kernel import bpftool  # noqa: E402  the path is set above
from harness.process import children_of  # noqa: E402
from harness.rubies import find_rubies  # noqa: E402

RBDUMP = TREE / "build/rbdump"
STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
SETTLED = 1  # seconds, from when rbdump samples


class Loop:
    """A bench/loop.rb that runs. It says now and then how many calls it has made."""

    def __init__(self, ruby, frames):
        command = [ruby.path, "--disable-gems", TREE / "bench/loop.rb", str(frames), "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"RUBY_THREAD_VM_STACK_SIZE": "8388608"})
        assert self.process.stdout.readline() == "ready\n"
        self.last = None
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.process.stdout:
            began, calls = line.split()
            self.last = float(began), int(calls)

    def speed(self, seconds):
        """Calls per second."""
        while self.last is None:
            time.sleep(0.01)
        first = self.last
        time.sleep(seconds)
        last = self.last
        return (last[1] - first[1]) / (last[0] - first[0])

    def end(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def recorded(pid, rate, folder, more=()):
    """Records a process. Yields a function that gives the CPU time of all of rbdump so far, in seconds."""
    rbdump = subprocess.Popen(
        [RBDUMP, "record", "-p", str(pid), "-r", str(rate), "--mode", "kernel", "--max-cpu", "100", "-o", folder / "raw", *more],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not runs():
        assert rbdump.poll() is None, rbdump.stderr.read()
        time.sleep(0.02)
    try:
        yield lambda: sum(cpu_s(one) for one in [rbdump.pid, *children_of(rbdump.pid)])
    finally:
        rbdump.terminate()
        errors = rbdump.communicate(timeout=60)[1]
        assert rbdump.returncode == 0, errors


def cpu_s(pid):
    return sum(
        int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
    ) / 1e9  # fmt: skip


def programs():
    """What the kernel counts of rbdump's programs, by their name."""
    done = subprocess.run([bpftool(), "--json", "prog", "show"], capture_output=True, text=True, check=True)
    return {one["name"]: one for one in json.loads(done.stdout) if one.get("name", "").startswith("on_")}


def runs():
    """Whether a program of rbdump's is attached to the clock."""
    # It fails if a link goes away meanwhile.
    found = subprocess.run([bpftool(), "--json", "link", "show"], capture_output=True, text=True, check=False)
    return "perf_event" in found.stdout


@contextlib.contextmanager
def statistics_on():
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


def run_times(seconds):
    """The mean run time of each program, in µs, and how often it ran."""
    before = programs()
    time.sleep(seconds)
    after = programs()
    found = {}
    for name in after.keys() & before.keys():
        count = after[name].get("run_cnt", 0) - before[name].get("run_cnt", 0)
        if count:
            found[name] = (after[name]["run_time_ns"] - before[name]["run_time_ns"]) / count / 1e3, count
    return found


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.4f} ({low:.4f} to {high:.4f})"


def measure(ruby, frames, rate, options, folder):
    loop = Loop(ruby, frames)
    other = subprocess.Popen([ruby.path, "--disable-gems", "-e", "$stdout.sync = true; puts :ready; sleep"], stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"ready\n"
    ratios, costs = {"empty": [], "recorded": []}, []
    more = ["--native"] if options.native else []
    try:
        for _ in range(options.turns):
            alone = loop.speed(options.seconds)
            for name, pid in (("empty", other.pid), ("recorded", loop.process.pid)):
                with recorded(pid, rate, folder, more) as used:
                    time.sleep(SETTLED)
                    before = used()
                    speed = loop.speed(options.seconds)
                    if name == "recorded":
                        costs.append((used() - before) / options.seconds / rate * 1e6)
                # Half of it is of before, and half of after: a machine's speed drifts.
                after = loop.speed(options.seconds)
                ratios[name].append(speed / ((alone + after) / 2))
                alone = after
        with statistics_on(), recorded(loop.process.pid, rate, folder, more):
            time.sleep(SETTLED)
            times = run_times(options.seconds)
    finally:
        loop.end()
        other.kill()
        other.wait()
    ran = "; ".join(f"{name} {mean:.2f} µs, {count} times" for name, (mean, count) in sorted(times.items()))
    print(
        f"{ruby.id}, {frames} frames, {rate} Hz: speed with an empty program {quartiles(ratios['empty'])}, recorded "
        f"{quartiles(ratios['recorded'])}; rbdump took {statistics.median(costs):.1f} µs of CPU a sample; {ran}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ruby", default="3.4")
    parser.add_argument("--frames", default="100,1000")
    parser.add_argument("--rates", default="100,1000,10000")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--native", action="store_true", help="also record native frames")
    options = parser.parse_args()
    rubies = [ruby for ruby in find_rubies() if re.fullmatch(options.ruby, ruby.id)]
    if not rubies:
        sys.exit(f"no Ruby is called {options.ruby}")
    with tempfile.TemporaryDirectory(prefix="rbdump-kernel-") as folder:
        for ruby in rubies:
            for frames in map(int, options.frames.split(",")):
                for rate in map(int, options.rates.split(",")):
                    measure(ruby, frames, rate, options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
