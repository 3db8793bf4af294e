#!/usr/bin/python3
"""How much longer the pause of a dump is with --native: bench/native.py [--ruby ID] [--runs N]

Dumps a program by turns with --native=all and without. One thread of the program runs, the others sleep; all of them are
called through blocks, to several depths. Only dumps with one pause count. A pause contains the time that rbdump or the thread
waits for a CPU, so on a busy machine only the short pauses can be compared."""

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ruby", help="the id of a Ruby; default: the newest and the oldest")
    parser.add_argument("--runs", type=int, default=100)
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


if __name__ == "__main__":
    main()
