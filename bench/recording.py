#!/usr/bin/env python3
"""What a recording of fifty threads takes as it goes on: memory, file, CPU. Writes the table of doc/recording.md.

    bench/recording.py [SECONDS]

Each of two programs (bench/threads.rb) is recorded for that long (150) at 99 Hz on the newest Ruby that
tests/rubies/build has built. An hour is extrapolated from the second half, in which what is said once has been said.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "tests"))

from harness.process import children_of
from harness.rubies import find_rubies

RBDUMP = TREE / "build/rbdump"
DOCUMENT = TREE / "doc/recording.md"
RATE = 99
POINTS = 6
BEGIN, END = "<!-- costs -->", "<!-- end costs -->"
TICK = 100


def memory_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def measure(ruby, what, seconds, folder):
    """(seconds, MB of all rbdump's processes, MB of the file) at some points, and what it came to."""
    raw = folder / what
    target = subprocess.Popen(
        [ruby.path, "--disable-gems", TREE / "bench/threads.rb", what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert target.stdout.readline() == "ready\n"
    rbdump = subprocess.Popen(
        [RBDUMP, "record", "-p", str(target.pid), "-r", str(RATE), "-d", str(seconds), "--mode", "paused", "--max-cpu", "100", "-o", raw], stderr=subprocess.PIPE, text=True
    )
    began = time.monotonic()
    points = []
    for i in range(1, POINTS + 1):
        time.sleep(max(0, began + (seconds - 1) * i / POINTS - time.monotonic()))
        own = [rbdump.pid, *children_of(rbdump.pid)]
        points.append((time.monotonic() - began, sum(map(memory_kb, own)) / 1024, raw.stat().st_size / 1e6))
        used = sum(map(cpu_s, own)) / (time.monotonic() - began)
    errors = rbdump.communicate(timeout=60)[1]
    target.stdin.close()
    target.wait(60)
    return points, used, errors.splitlines()[0].removeprefix("rbdump: ")


def per_hour(points):
    """How much the file grows in an hour, and the memory, by the second half."""
    first, last = points[POINTS // 2 - 1], points[-1]
    spent = last[0] - first[0]
    return (last[2] - first[2]) / spent * 3600, (last[1] - first[1]) / spent * 3600


def table(ruby, results):
    lines = [
        f"`bench/recording.py` measured these figures on Ruby {ruby.version}, with 50 threads at {RATE} Hz, on 2 cores, with `--max-cpu",
        "100` (no limit of CPU time). The memory figures include all processes of rbdump.",
        "",
        "| after | usual: memory | file | worst: memory | file |",
        "|---|---|---|---|---|",
    ]
    for usual, worst in zip(results["usual"][0], results["worst"][0]):
        lines.append(f"| {usual[0]:.0f} s | {usual[1]:.1f} MB | {usual[2]:.2f} MB | {worst[1]:.1f} MB | {worst[2]:.2f} MB |")
    hours = [per_hour(results[what][0]) for what in ("usual", "worst")]
    lines.append("| an hour, at this rate of growth | | " + " | | ".join(f"{hour[0]:.0f} MB" for hour in hours) + " |")
    lines += [
        "",
        f"The usual case is a server whose threads mostly wait. In this case, rbdump took {100 * results['usual'][1]:.0f} % of a CPU, and reported",
        f"`{results['usual'][2]}`.",
        "",
        "In the worst case, each thread has a new stack, 26 frames deep, in nearly every sample. In this case, rbdump took",
        f"{100 * results['worst'][1]:.0f} % of a CPU, and reported `{results['worst'][2]}`.",
        "From time to time, rbdump begins new tables of stacks. After that, it uses less memory.",
    ]
    return "\n".join(lines)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    ruby = max((one for one in find_rubies() if one.id[0].isdigit()), key=lambda one: one.series)
    with tempfile.TemporaryDirectory(prefix="rbdump-recording-") as folder:
        results = {what: measure(ruby, what, seconds, pathlib.Path(folder)) for what in ("usual", "worst")}
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table(ruby, results)}\n{END}{rest.split(END)[1]}")
    print(table(ruby, results))


main()
