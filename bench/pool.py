#!/usr/bin/env python3
"""
Records threads that begin during a recording, and holds what is recorded against what is known of them.

    bench/pool.py [--rbdump build/rbdump] [--rubies 2.7,debian] [--places here,nested] [--samples 1000000] [--rate 1000]
                  [--turns 2] [--limit SECONDS]

A pool of threads grows from 2 to 50 and shrinks again (tests/targets/shares/pool.rb), on each Ruby that the tests find and in
each place that they know: on the host, in a pid namespace and in a nested one, with rbdump outside and inside. Each is
recorded in turn, in paused mode, once at least and until there are so many samples together, or the time is over. Of each sample that is
complete it is known which calls there can be, and what a thread of its tid does. How long threads were on a CPU is
compared with what the kernel counts of each (/proc/PID/task/TID/schedstat and stat), how long they slept, read, and
waited for the GVL with their own clocks.

Ends with the status 1 if a sample is impossible, fewer than 99.9 % of all are complete, or a state is off by more than 3
points.
"""

import argparse
import collections
import itertools
import os
import pathlib
import signal
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "tests"))

from harness.places import PLACES  # noqa: E402  the path is set above
from harness.pool import KINDS, Verdict, record_pool  # noqa: E402
from harness.rubies import find_rubies  # noqa: E402

COMPLETE, POINTS = 0.999, 0.03


def marks_of(verdict):
    return ", ".join(f"{count} {mark}" for mark, count in verdict.marks.most_common()) or "none"


def worst_of(verdict):
    what, off = max(verdict.differences().items(), key=lambda item: item[1])
    return f"{100 * off:.1f} ({what})"


def is_right(verdict):
    """All but how many samples are complete: that is asked of all recordings together."""
    return not verdict.impossible and verdict.stat_agrees() and max(verdict.differences().values()) <= POINTS


def row(ruby, place, verdict, load):
    share = 100 * verdict.complete / verdict.samples
    impossible = verdict.impossible.total()
    cells = [ruby, place, verdict.samples, impossible, f"{share:.3f} %", marks_of(verdict), worst_of(verdict), f"{load:.1f}"]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def details(verdict):
    """What threads of each kind were seen to do, and what they did."""
    for kind in KINDS:
        states, told = verdict.states[kind], verdict.told[kind]
        seen, counted, waited = (100 * share for share in verdict.on_cpu(kind))
        shares = ", ".join(f"{state} {100 * weight / states.total():.1f} %" for state, weight in states.most_common())
        print(
            f"{kind}: {shares}; the kernel counts {counted:.1f} % on a CPU, and {waited:.1f} % waiting for one (as recorded: "
            f"{seen:.1f} %); by their own clocks they wait for {100 * told['waits'] / told['there']:.1f} %"
        )


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
    parser = argparse.ArgumentParser()
    parser.add_argument("--rbdump", default=TREE / "build/rbdump")
    parser.add_argument("--rubies", help="ids, as in the tests")
    parser.add_argument("--places", default=",".join(PLACES))
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--limit", type=float, default=3600)
    options = parser.parse_args()
    rubies = [ruby for ruby in find_rubies() if not options.rubies or ruby.id in options.rubies.split(",")]
    each = [(ruby, place) for ruby in rubies for place in options.places.split(",")]
    began, everything, verdicts, loads = time.monotonic(), Verdict(), collections.defaultdict(Verdict), {}
    with tempfile.TemporaryDirectory(prefix="rbdump-pool-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for count, (ruby, place) in enumerate(itertools.cycle(each)):
            enough = count >= len(each) and everything.samples >= options.samples
            if enough or time.monotonic() - began > options.limit:
                break
            file = pathlib.Path(folder) / "recording"
            _, _, verdict = record_pool(ruby, options.rbdump, file, PLACES[place], rate=options.rate, turns=options.turns)
            verdicts[ruby.id, place].add(verdict)
            everything.add(verdict)
            loads[ruby.id, place] = max(loads.get((ruby.id, place), 0), os.getloadavg()[0])
            print(row(ruby.id, place, verdict, os.getloadavg()[0]), file=sys.stderr, flush=True)
            for why, count in verdict.impossible.items():
                print(f"  {count} times {why}", file=sys.stderr, flush=True)
    print("| Ruby | Place | Samples | Impossible | Complete | Marks | State that is off most, points | Load |")
    print("|---|---|---|---|---|---|---|---|")
    for key, verdict in verdicts.items():
        print(row(*key, verdict, loads[key]))
    print(row("all", "", everything, max(loads.values())))
    details(everything)
    wrong = [" ".join(key) for key in verdicts if not is_right(verdicts[key])]
    if everything.complete < COMPLETE * everything.samples:
        wrong.append("complete")
    print("outside of what is asked for: " + ", ".join(wrong) if wrong else "all within what is asked for")
    return 1 if wrong else 0


sys.exit(main())
