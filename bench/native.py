#!/usr/bin/python3
"""How much longer the pause of a dump is with --native, and the stop of a sample: bench/native.py [--ruby ID] [--runs N] [--seconds S]

Dumps a program by turns with --native=all and without. One thread of the program runs, the others sleep; all of them are
called through blocks, to several depths. Only dumps with one pause count. A pause contains the time that rbdump or the thread
waits for a CPU, so on a busy machine only the short pauses can be compared.

Then a program that does nothing but read the clock is recorded by turns for S seconds in the mode paused, with --native and
without, at 99 samples a second. It notes each gap in its time of at least 30 us, so most gaps are stops."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness.rubies import find_rubies  # noqa: E402
from measure import percentile  # noqa: E402

RBDUMP = os.environ.get("RBDUMP", ROOT / "build/rbdump")
CASES = ((1, 1), (1, 100), (20, 1), (20, 100))  # threads that sleep, depth
MODES = {"without": [], "--native": ["--native=all"]}
TARGET = """
def deep(depth, &block)
  depth == 0 ? block.call : [1].each { deep(depth - 1, &block) }
end
sleepers, depth = ARGV.map { |argument| Integer(argument) }
began = Queue.new
sleepers.times { Thread.new { deep(depth) { began << true; sleep } } }
Thread.new { deep(depth) { began << true; i = 0; while true; i += 1; end } }
(sleepers + 1).times { began.pop }
puts "ready"
$stdout.flush
$stdin.read
exit!
"""


GAPS = """
gaps, least = [], 30_000
puts "ready"
$stdout.flush
last = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
Thread.new { $stdin.read; puts gaps.join(" "); $stdout.flush; exit! }
while true
  now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  gaps << now - last if now - last >= least
  last = now
end
"""
TURNS = 5


def measure(ruby, sleepers, depth, runs):
    """The pauses in microseconds, by mode."""
    program = subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", TARGET, str(sleepers), str(depth)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with program:
        assert program.stdout.readline() == "ready\n"
        pauses = {mode: [] for mode in MODES}
        for _ in range(runs):
            for mode, arguments in MODES.items():
                done = subprocess.run(
                    [RBDUMP, str(program.pid), "--json", *arguments], capture_output=True, text=True, check=False
                )
                answer = json.loads(done.stdout)
                if answer["pauses"] == 1:
                    pauses[mode].append(answer["pause_us"])
    return pauses


def gaps_of(ruby, seconds, arguments):
    """The gaps of the program that reads the clock, in microseconds, while it is recorded so; not recorded if None."""
    program = subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", GAPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with program:
        assert program.stdout.readline() == "ready\n"
        if arguments is None:
            time.sleep(seconds)
        else:
            command = [RBDUMP, "record", "-p", str(program.pid), "-d", str(seconds), "--mode", "paused", "-o", os.devnull]
            subprocess.run([*command, *arguments], capture_output=True, check=True)
        program.stdin.close()
        return [int(gap) / 1000 for gap in program.stdout.read().split()]


def compare_stops(ruby, seconds):
    found = {"not recorded": [], "without": [], "--native": []}
    for _ in range(TURNS):
        for mode, arguments in (("not recorded", None), ("without", []), ("--native", ["--native"])):
            found[mode] += gaps_of(ruby, seconds, arguments)
    print(f"{ruby.id}, recorded, {TURNS} turns of {seconds} s: gaps of at least 30 us")
    for mode, gaps in found.items():
        if gaps:
            print(f"  {mode:12} {len(gaps):5}: {percentile(gaps, 0.25):5.1f} us lower quartile, {statistics.median(gaps):5.1f} median, {percentile(gaps, 0.9):5.1f} in nine of ten at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ruby", help="the id of a Ruby; default: the newest and the oldest")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    rubies = find_rubies()
    by_age = sorted(rubies, key=lambda ruby: ruby.series)
    chosen = [ruby for ruby in rubies if ruby.id == options.ruby] if options.ruby else [by_age[0], by_age[-1]]
    for ruby in chosen:
        for sleepers, depth in CASES:
            print(f"{ruby.id}, {sleepers} sleeping, depth {depth}")
            for mode, pauses in measure(ruby, sleepers, depth, options.runs).items():
                quartile, median = percentile(pauses, 0.25), statistics.median(pauses)
                print(f"  {mode:9} {len(pauses):4} pauses: {min(pauses):6.0f} us least, {quartile:6.0f} lower quartile, {median:6.0f} median")
        compare_stops(ruby, options.seconds)


if __name__ == "__main__":
    main()
