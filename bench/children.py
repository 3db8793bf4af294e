#!/usr/bin/python3
"""What 300 children that are no Rubies cost record --children, and how soon one that becomes a Ruby is recorded.

bench/children.py [RUBY]: CPU time is the kernel's, of all processes of rbdump that there are or were, with 300 such children
and with none, by turns: the Ruby that has started them is sampled in both."""

import datetime
import json
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
TICK = os.sysconf("SC_CLK_TCK")
CHILDREN, TURNS, SETTLED, SECONDS = 300, 3, 10, 20


def fields(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def of_rbdump(parent):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int(fields(entry.name)[1]) == parent:
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def cpu_seconds(pids, reaped_by):
    """Of those that run, and of those that have ended and were waited for."""
    total = sum(sum(int(word) for word in fields(pid)[11:13]) for pid in pids)
    return (total + sum(int(word) for word in fields(reaped_by)[13:15])) / TICK


def recorded_after(report, pid, told_ns):
    """How long after it was told to exec a process was recorded first, in seconds."""
    start = datetime.datetime.fromisoformat(report["start"].replace("Z", "+00:00")).timestamp()
    index = next(index for index, process in enumerate(report["processes"]) if process["pid"] == pid)
    spans = [span for span in report["runs"] if report["threads"][span["thread"]]["process"] == index]
    return start + min(span["start_ns"] for span in spans if span["state"] != "starting") / 1e9 - told_ns / 1e9


def measure(ruby, count, folder):
    """The share of a CPU, how many processes rbdump had, and how soon two that became Rubies were recorded."""
    crowd = subprocess.Popen(
        [ruby, "--disable-gems", ROOT / "tests/targets/shares/not_rubies.rb", str(count), ruby, "--disable-gems", "-e", "sleep 100"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    assert crowd.stdout.readline() == b"ready\n"
    record = subprocess.Popen([RBDUMP, "record", "-p", str(crowd.pid), "--children", "--mode", "paused", "-o", f"{folder}/r"])
    time.sleep(SETTLED)
    begin, used = time.monotonic(), cpu_seconds([record.pid, *of_rbdump(record.pid)], record.pid)
    time.sleep(SECONDS)
    processes = [record.pid, *of_rbdump(record.pid)]
    share = (cpu_seconds(processes, record.pid) - used) / (time.monotonic() - begin)
    became = {}
    for _ in range(2):
        crowd.stdin.write(b"\n")
        became[int(crowd.stdout.readline())] = time.time_ns()
        time.sleep(3)
    record.send_signal(signal.SIGINT)
    record.wait()
    crowd.stdin.close()
    crowd.wait()
    shown = subprocess.run([RBDUMP, "report", "-f", "json", "--idle", f"{folder}/r"], stdout=subprocess.PIPE, check=True)
    report = json.loads(shown.stdout)
    return share, len(processes), [recorded_after(report, pid, told_ns) for pid, told_ns in became.items()]


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
    ruby = sys.argv[1] if len(sys.argv) > 1 else "ruby"
    with tempfile.TemporaryDirectory() as folder:
        turns = {count: [] for count in (0, CHILDREN)}
        for _ in range(TURNS):
            for count, found in turns.items():
                found.append(measure(ruby, count, folder))
    for count, found in turns.items():
        shares = [100 * turn[0] for turn in found]
        delays = sorted(delay for turn in found for delay in turn[2])
        print(
            f"{count} children: {statistics.median(shares):.2f} % of a CPU, from {min(shares):.2f} to {max(shares):.2f};"
            f" {max(turn[1] for turn in found)} processes of rbdump; one that became a Ruby was recorded"
            f" {delays[0]:.3f} to {delays[-1]:.3f} s after it was told to"
        )


main()
