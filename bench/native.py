#!/usr/bin/python3
"""How much longer the stop of a sample is with --native: bench/native.py [--ruby ID] [--seconds S]

A program that does nothing but read the clock is recorded by turns for S seconds in the mode paused, with --native, with
--native=whole, and without, at 99 samples a second. It notes each gap in its time of at least 30 us, so most gaps are stops."""

import argparse
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
    modes = (("not recorded", None), ("without", []), ("--native", ["--native"]), ("whole", ["--native=whole"]))
    found = {mode: [] for mode, _ in modes}
    for _ in range(TURNS):
        for mode, arguments in modes:
            found[mode] += gaps_of(ruby, seconds, arguments)
    print(f"{ruby.id}, recorded, {TURNS} turns of {seconds} s: gaps of at least 30 us")
    for mode, gaps in found.items():
        if gaps:
            print(f"  {mode:12} {len(gaps):5}: {percentile(gaps, 0.25):5.1f} us lower quartile, {statistics.median(gaps):5.1f} median, {percentile(gaps, 0.9):5.1f} in nine of ten at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ruby", help="the id of a Ruby; default: the newest and the oldest")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    rubies = find_rubies()
    by_age = sorted(rubies, key=lambda ruby: ruby.series)
    chosen = [ruby for ruby in rubies if ruby.id == options.ruby] if options.ruby else [by_age[0], by_age[-1]]
    for ruby in chosen:
        compare_stops(ruby, options.seconds)


if __name__ == "__main__":
    main()
