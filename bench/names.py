#!/usr/bin/env python3
"""
Records a program that redefines its methods all the time, and holds each name against what was there at that moment.

    bench/names.py [--rbdump build/rbdump] [--rubies 2.7,3.4] [--modes paused,unpaused] [--samples 10000000] [--rate 10000]
                   [--seconds 30] [--limit SECONDS]

Some eighty times a second the program (tests/targets/shares/redefining.rb) defines methods, drops them, exchanges them, gives
them aliases, refines them, makes them of blocks, and names their class; garbage is collected by turns in all ways. Each
method is called from a line of its own, and has its generation's number in the name of its file. So a name is wrong if it is
of another kind than the line that calls it, of another generation than the frames beside it, or not of the time of the
sample. Each Ruby that the tests find is recorded in each mode, in turn, until there are so many samples together.

Ends with the status 1 if a name is wrong, or if more than 0.1 % of the samples have none. Up to Ruby 3.0, as many may be
wrong in unpaused mode as stacks are torn there unseen (doc/experiments.md).
"""

import argparse
import collections
import itertools
import pathlib
import signal
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "tests"))

from harness.recording import Running, record, report  # noqa: E402  the path is set above
from harness.redefined import SCRIPT, Judge, torn_most  # noqa: E402
from harness.rubies import find_rubies  # noqa: E402

UNNAMED = 0.001


def record_once(ruby, options, mode, file):
    with Running(ruby, SCRIPT) as target:
        if target.first_line != "ready":
            sys.exit(f"names: {SCRIPT} on {ruby.id} says {target.first_line!r}")
        status, _, errors = record(
            options.rbdump, "-p", target.pid, "-r", options.rate, "-d", options.seconds, "--mode", mode, file=file,
            timeout=options.seconds + 60,
        )  # fmt: skip
        if status != 0:
            sys.exit(f"names: rbdump record: {errors}")
        told = target.finish()
    return report(options.rbdump, file, "--idle"), [tuple(map(int, line.split())) for line in told.splitlines()]


def row(ruby, mode, judge):
    unnamed = 100 * (judge.samples - judge.named) / max(1, judge.samples)
    marks = ", ".join(f"{count:,} {mark}" for mark, count in judge.marks.most_common()) or "none"
    cells = [ruby, mode, f"{judge.samples:,}", f"{judge.of_generations:,}", f"{judge.wrong.total():,}", f"{unnamed:.3f} %", marks]
    return "| " + " | ".join(cells) + " |"


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
    parser = argparse.ArgumentParser()
    parser.add_argument("--rbdump", default=TREE / "build/rbdump")
    parser.add_argument("--rubies", help="ids, as in the tests")
    parser.add_argument("--modes", default="paused,unpaused")
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=30, help="of one recording")
    parser.add_argument("--limit", type=float, default=7200, help="no recording begins after so many seconds")
    options = parser.parse_args()
    rubies = [ruby for ruby in find_rubies() if not options.rubies or ruby.id in options.rubies.split(",")]
    each = [(ruby, mode) for ruby in rubies for mode in options.modes.split(",")]
    judges, everything, began = collections.defaultdict(Judge), Judge(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rbdump-names-") as folder:
        for count, (ruby, mode) in enumerate(itertools.cycle(each)):
            enough = count >= len(each) and everything.samples >= options.samples
            if enough or time.monotonic() - began > options.limit:
                break
            recorded = record_once(ruby, options, mode, pathlib.Path(folder) / "recording")
            for judge in (judges[ruby.id, mode], everything):
                judge.judge(*recorded)
            print(row(ruby.id, mode, judges[ruby.id, mode]), file=sys.stderr, flush=True)
    print("| Ruby | Mode | Samples | In methods of a generation | Wrong | Without a name | Marks |")
    print("|---|---|---|---|---|---|---|")
    for (ruby, mode), judge in judges.items():
        print(row(ruby, mode, judge))
    print(row("all", "", everything))
    for why, count in everything.wrong.most_common():
        print(f"wrong: {count:,} times {why}")
    many = everything.samples - everything.named > UNNAMED * everything.samples
    by_id = {ruby.id: ruby for ruby in rubies}
    wrong = any(
        judge.wrong.total() > torn_most(by_id[ruby], mode, judge.of_generations) for (ruby, mode), judge in judges.items()
    )
    return 1 if wrong or many else 0


sys.exit(main())
