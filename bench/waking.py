#!/usr/bin/python3
"""What recording at the default rate takes of one CPU that many threads wake on, and what it leaves to the program.

bench/waking.py [RUBY]: 400 threads that wake up to 500 times a second each, all of them on one CPU, by turns without
rbdump and with it: on the same CPU, and on whatever the kernel chooses. Speed is wakes per second of the program, which
differs from turn to turn: the medians are compared. It is measured from SETTLED seconds after rbdump was started on: to
begin, rbdump may take three seconds' share at once. CPU time is the kernel's, of all of rbdump, meanwhile."""

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RBDUMP = os.environ.get("RBDUMP", ROOT / "build/rbdump")
TURNS, SECONDS, SETTLED = 8, 6, 8
PLACES = {"on the same CPU": ["taskset", "--cpu-list"], "on any CPU": []}


def wakes(program):
    program.stdin.write(b"\n")
    return int(program.stdout.readline())


def speed(program):
    begin, before = time.monotonic(), wakes(program)
    time.sleep(SECONDS)
    return (wakes(program) - before) / (time.monotonic() - begin)


def family(pid):
    """A process and all that it has started."""
    children = (pathlib.Path(f"/proc/{pid}/task") / str(pid) / "children").read_text().split()
    return [pid, *(member for child in children for member in family(int(child)))]


def cpu_time(pid):
    """In seconds, of such a family."""
    fields = [pathlib.Path(f"/proc/{member}/stat").read_text().rsplit(")", 1)[1].split() for member in family(pid)]
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


def recorded(program, place, output):
    """Its speed beside rbdump, what that took of a CPU, and what it said."""
    record = subprocess.Popen(
        [*place, RBDUMP, "record", "-p", str(program.pid), "--mode", "paused", "-o", output], stderr=subprocess.PIPE, text=True
    )
    time.sleep(SETTLED)
    before, begin = cpu_time(record.pid), time.monotonic()
    beside = speed(program)
    used = (cpu_time(record.pid) - before) / (time.monotonic() - begin)
    record.send_signal(signal.SIGINT)
    said = record.stderr.read()
    record.wait()
    return beside, used, said


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
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
