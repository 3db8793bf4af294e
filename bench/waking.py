#!/usr/bin/python3
"""What recording at the default rate takes of one CPU that many threads wake on, and what it leaves to the program.

bench/waking.py [RUBY]: 400 threads that wake up to 500 times a second each, all of them on one CPU, by turns without
rbdump and with it: on the same CPU, and on whatever the kernel chooses. Speed is wakes per second of the program, which
differs from turn to turn: the medians are compared. CPU time is the kernel's, of all of rbdump, from its start."""

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
TURNS, SECONDS = 12, 4
PLACES = {"on the same CPU": ["taskset", "--cpu-list"], "on any CPU": []}


def wakes(program):
    program.stdin.write(b"\n")
    return int(program.stdout.readline())


def speed(program):
    begin, before = time.monotonic(), wakes(program)
    time.sleep(SECONDS)
    return (wakes(program) - before) / (time.monotonic() - begin)


def cpu_time():
    """Of children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def recorded(program, place, output):
    """Its speed beside rbdump, what that took of a CPU, and what it said."""
    before, begin = cpu_time(), time.monotonic()
    record = subprocess.Popen(
        [*place, RBDUMP, "record", "-p", str(program.pid), "-o", output], stderr=subprocess.PIPE, text=True
    )
    time.sleep(2)
    beside = speed(program)
    record.send_signal(signal.SIGINT)
    said = record.stderr.read()
    record.wait()
    return beside, (cpu_time() - before) / (time.monotonic() - begin), said


def main():
    ruby = sys.argv[1] if len(sys.argv) > 1 else "ruby"
    cpu = str(max(os.sched_getaffinity(0)))
    waking = [ruby, "--disable-gems", ROOT / "tests/targets/shares/waking.rb", "400", "500"]
    with tempfile.TemporaryDirectory() as folder:
        program = subprocess.Popen(
            ["taskset", "--cpu-list", cpu, *waking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert program.stdout.readline() == b"ready\n"
        time.sleep(2)
        alone, beside = [], {place: [] for place in PLACES}
        for _ in range(TURNS):
            alone.append(speed(program))
            for name, place in PLACES.items():
                beside[name].append(recorded(program, [*place, cpu] if place else [], f"{folder}/r"))
        program.kill()
        program.wait()
    print(f"alone: {statistics.median(alone):,.0f} wakes a second, from {min(alone):,.0f} to {max(alone):,.0f}")
    for name, turns in beside.items():
        speeds = [turn[0] for turn in turns]
        print(
            f"rbdump {name}: {100 * statistics.median(speeds) / statistics.median(alone):.1f} % of that,"
            f" from {min(speeds):,.0f} to {max(speeds):,.0f};"
            f" it took {100 * statistics.mean(turn[1] for turn in turns):.1f} % of a CPU"
        )
        print(turns[-1][2], end="")


main()
