#!/usr/bin/env python3
"""
Stops processes of rbdump for a second each, at random moments, and measures for how long that holds their target up.

    bench/stops.py [--rbdump build/rbdump] [--ruby ruby] [--stops 600] [--seed 1] [--limit SECONDS]

Each time rbdump is started on the target (a dump, `record` or `experiment`, by chance), and after a random time one of its
processes gets SIGSTOP (by turns the one that was started, the one that traces, the guard, and, for comparison, none), and
SIGCONT a second later. The target has two threads that count a sum, and takes one SIGUSR1 after the other, as in bench/kills.py:
each must have been seen once at the end, and the sums be right. Prints for each process the longest standstills, in ms.
"""

import argparse
import itertools
import pathlib
import random
import statistics
import sys
import tempfile
import time
import types

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from harness.survival import PROCESSES, VERBS, Survivor, check_sums, stop_one  # noqa: E402  the path is set above


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rbdump", default="build/rbdump")
    parser.add_argument("--ruby", default="/usr/bin/ruby")
    parser.add_argument("--stops", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3600)
    options = parser.parse_args()
    moments, turns = random.Random(options.seed), itertools.cycle((*PROCESSES, None))
    began = time.monotonic()
    standstills = {whom: [] for whom in (*PROCESSES, None)}
    with tempfile.TemporaryDirectory() as folder, Survivor(types.SimpleNamespace(path=options.ruby), folder) as survivor:
        while sum(map(len, standstills.values())) < options.stops and time.monotonic() - began < options.limit:
            verb, whom = moments.choice(tuple(VERBS)), next(turns)
            standstill = stop_one(options.rbdump, verb, whom, survivor, folder, moments, 1)
            if standstill is not None:
                standstills[whom].append(1000 * standstill)
            assert survivor.lost is None, f"signal {survivor.lost} was lost"
        check_sums(survivor.finish())
    print(f"{survivor.sent} signals, each seen once; the sums are right")
    for whom, found in filter(lambda entry: entry[1], standstills.items()):
        over = sum(standstill > 100 for standstill in found)
        print(
            f"{whom or 'nobody'}: {len(found)} times; longest standstill in ms: median {statistics.median(found):.1f},"
            f" most {max(found):.1f}; {over} over 100 ms"
        )


if __name__ == "__main__":
    main()
