#!/usr/bin/python3
"""What recording at the default rate takes of one CPU that many threads wake on, and what it leaves to the program.

bench/waking.py [RUBY]: 400 threads that wake 500 times a second each, program and rbdump on the same CPU, by turns
without rbdump and with it. Speed is wakes per second of the program; CPU time is the kernel's, of all of rbdump."""

import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RBDUMP = os.environ.get("RBDUMP", ROOT / "build/rbdump")
TURNS, SECONDS = 4, 6


def wakes(program):
    program.stdin.write(b"\n")
    return int(program.stdout.readline())


def speed(program):
    begin, before = time.monotonic(), wakes(program)
    time.sleep(SECONDS)
    return (wakes(program) - before) / (time.monotonic() - begin)


def main():
    ruby = sys.argv[1] if len(sys.argv) > 1 else "ruby"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        program = subprocess.Popen(
            [ruby, "--disable-gems", ROOT / "tests/targets/shares/waking.rb", "400", "500"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        assert program.stdout.readline() == b"ready\n"
        time.sleep(2)
        ratios, shares, said = [], [], ""
        for _ in range(TURNS):
            alone = speed(program)
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            begin = time.monotonic()
            record = subprocess.Popen(
                [RBDUMP, "record", "-p", str(program.pid), "-o", f"{folder}/r"], stderr=subprocess.PIPE, text=True
            )
            time.sleep(1)
            ratios.append(speed(program) / alone)
            record.send_signal(signal.SIGINT)
            said = record.stderr.read()
            record.wait()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
            shares.append(cpu / (time.monotonic() - begin))
        program.kill()
        program.wait()
    print(said, end="")
    print(f"speed with rbdump: {100 * statistics.mean(ratios):.1f} % of that without, turns {[round(r, 3) for r in ratios]}")
    print(f"rbdump took {100 * statistics.mean(shares):.1f} % of a CPU")


main()
