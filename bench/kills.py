#!/usr/bin/env python3
"""
Kills processes of rbdump at random moments while their target takes signals, and sees what that does to the target.

    bench/kills.py [--rbdump build/rbdump] [--ruby ruby] [--kills 10000] [--seed 1] [--limit SECONDS]

Each kill: rbdump is started on the target (a dump, `record` or `experiment`, by chance), and after a random time one of
its processes gets SIGKILL (by turns the one that was started, the one that traces, and the guard). One target has two
threads that count a sum, and takes one SIGUSR1 after the other, each of which it has to answer; the other one, on which each
second block of 50 kills falls, becomes itself anew by exec, again and again, and hands its sum on. At the end it is one line
of JSON: how many of each process were killed, how many signals were sent and seen, how often exec was called; the sums were
right. Any signal that is lost, any thread that stays stopped for 20 s, any exec that does not arrive within 20 s, and any
wrong sum ends it with an error.
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

from harness.survival import Changer, Survivor, check_sums, kill_many  # noqa: E402  the path is set above


BLOCK = 50
EXECS = 400  # of one process: about as many as there are in the time of a block


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rbdump", default="build/rbdump")
    parser.add_argument("--ruby", default="/usr/bin/ruby")
    parser.add_argument("--kills", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3600)
    options = parser.parse_args()
    ruby = types.SimpleNamespace(path=options.ruby)
    began = time.monotonic()
    done, blocks, execs = {}, 0, 0
    with tempfile.TemporaryDirectory() as folder, Survivor(ruby, folder) as survivor:

        def survives():
            assert survivor.lost is None, f"signal {survivor.lost} was lost after {done}"
            return True

        def kill(pid, still):
            block = min(BLOCK, options.kills - sum(done.values()))
            seed = options.seed * 1_000_000 + blocks
            for whom, count in kill_many(options.rbdump, pid, folder, block, seed, still).items():
                done[whom] = done.get(whom, 0) + count

        while sum(done.values()) < options.kills and time.monotonic() - began < options.limit:
            if blocks % 2 == 0:
                kill(survivor.pid, survives)
            else:
                with Changer(ruby, folder, EXECS) as changer:
                    kill(changer.pid, lambda changer=changer: survives() and not changer.has_ended())
                    while not changer.has_ended():
                        changer.wait_for_exec()
                    changer.finish()
                execs += EXECS
            blocks += 1
            print(f"{time.monotonic() - began:.0f} s {done} {survivor.sent} signals, {execs} execs", file=sys.stderr, flush=True)
        sent = survivor.sent
        sums = survivor.finish()
        check_sums(sums)
    result = {
        "kills": done,
        "signals_sent_and_seen_once": sent,
        "execs": execs,
        "rounds": [count for _, count in sums],
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
