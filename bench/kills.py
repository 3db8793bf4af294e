#!/usr/bin/env python3
"""
Kills processes of rbdump at random moments while their target takes signals, and sees what that does to the target.

    bench/kills.py [--rbdump build/rbdump] [--ruby ruby] [--kills 10000] [--seed 1] [--limit SECONDS]

Each kill: rbdump is started on the target (a dump, `record` or `experiment`, by chance), and after a random time one of
its processes gets SIGKILL (the one that was started, the one that traces, or the guard). The target has two threads that
count a sum, and takes one SIGUSR1 after the other, each of which it has to answer. At the end it is one line of JSON: how
many of each were killed, how many signals were sent and seen, and whether the sums are right. Any that is lost, any
thread that stays stopped for 20 s, and any wrong sum ends it with an error.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time
import types

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from harness.survival import Survivor, check_sums, kill_many  # noqa: E402  the path is set above


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rbdump", default="build/rbdump")
    parser.add_argument("--ruby", default="/usr/bin/ruby")
    parser.add_argument("--kills", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3600)
    options = parser.parse_args()
    began = time.monotonic()
    done, blocks = {}, 0
    with tempfile.TemporaryDirectory() as folder, Survivor(types.SimpleNamespace(path=options.ruby), folder) as survivor:

        def still():
            assert survivor.lost is None, f"signal {survivor.lost} was lost after {done}"

        while sum(done.values()) < options.kills and time.monotonic() - began < options.limit:
            block = min(50, options.kills - sum(done.values()))
            seed = options.seed * 1_000_000 + blocks
            for whom, count in kill_many(options.rbdump, survivor.pid, folder, block, seed, still).items():
                done[whom] = done.get(whom, 0) + count
            blocks += 1
            print(f"{time.monotonic() - began:.0f} s {done} {survivor.sent} signals", file=sys.stderr, flush=True)
        sent = survivor.sent
        sums = survivor.finish()
        check_sums(sums)
    result = {
        "kills": done,
        "signals_sent_and_seen_once": sent,
        "rounds": [count for _, count in sums],
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
