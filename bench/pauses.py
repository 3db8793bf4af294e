#!/usr/bin/python3
"""How much longer the pauses of a dump are with --native and with --locals: bench/pauses.py [--ruby ID] [--runs N] [--baseline RBDUMP]

Dumps a program by turns: without options, the same again, with --native=all, with --locals --self, and, if there is one,
by another rbdump. One thread of the program runs, the others sleep; all of them are called through blocks, to several depths.
All pauses of a dump count. A pause contains the time that rbdump or the thread waits for a CPU: on a busy machine, the
difference between the same two dumps tells how far the ratios can be trusted.

The exit status is 1 if the median of the pauses grows by more than its limit, beyond this noise: --native 1.5, --locals 2,
the other rbdump 1."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness.rubies import find_rubies  # noqa: E402
from measure import percentile  # noqa: E402

RBDUMP = os.environ.get("RBDUMP", ROOT / "build/rbdump")
CASES = ((1, 1), (1, 100), (20, 1), (20, 100))  # threads that sleep, depth
MODES = {"without": [], "again": [], "--native": ["--native=all"], "--locals": ["--locals", "--self"]}
LIMITS = {"--native": 1.5, "--locals": 2, "baseline": 1}
TARGET = """
def deep(depth, &block)
  words = "words"
  numbers = [depth, words]
  depth == 0 ? block.call : numbers.first(1).each { deep(depth - 1, &block) }
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


def measure(ruby, sleepers, depth, runs, baseline):
    """The pauses of each dump in microseconds, by mode; and how many dumps had more than one."""
    commands = {mode: [RBDUMP, arguments] for mode, arguments in MODES.items()}
    if baseline:
        commands["baseline"] = [baseline, []]
    program = subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", TARGET, str(sleepers), str(depth)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with program:
        assert program.stdout.readline() == "ready\n"
        pauses, several = {mode: [] for mode in commands}, dict.fromkeys(commands, 0)
        for _ in range(runs):
            for mode, (rbdump, arguments) in commands.items():
                done = subprocess.run(
                    [rbdump, "-p", str(program.pid), "--json", *arguments], capture_output=True, text=True, check=False
                )
                answer = json.loads(done.stdout)
                pauses[mode].append(answer["pause_us"])
                several[mode] += answer["pauses"] > 1
    return pauses, several


def show(pauses, several):
    """Prints a line for each mode. Gives the modes that are above their limits."""
    medians = {mode: statistics.median(values) for mode, values in pauses.items()}
    noise = max(medians["again"] / medians["without"], medians["without"] / medians["again"])
    above = []
    for mode, values in pauses.items():
        # The older program is the measure of the newer one.
        ratio = medians["without"] / medians[mode] if mode == "baseline" else medians[mode] / medians["without"]
        is_above = mode in LIMITS and ratio > LIMITS[mode] * noise
        above += [mode] * is_above
        print(
            f"  {mode:9} {min(values):6.0f} us least, {percentile(values, 0.25):6.0f} lower quartile, {medians[mode]:6.0f} median;"
            f" {several[mode]:3} of {len(values)} with several pauses; ratio {ratio:5.2f}{' ABOVE ITS LIMIT' if is_above else ''}"
        )
    return above


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ruby", help="the id of a Ruby; default: the newest and the oldest")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--baseline", help="another rbdump, whose dumps without options are compared")
    options = parser.parse_args()
    rubies = find_rubies()
    by_age = sorted(rubies, key=lambda ruby: ruby.series)
    chosen = [ruby for ruby in rubies if ruby.id == options.ruby] if options.ruby else [by_age[0], by_age[-1]]
    above = []
    for ruby in chosen:
        for sleepers, depth in CASES:
            print(f"{ruby.id}, {sleepers} sleeping, depth {depth}", flush=True)
            above += show(*measure(ruby, sleepers, depth, options.runs, options.baseline))
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
