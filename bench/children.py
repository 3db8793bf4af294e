#!/usr/bin/python3
"""What 300 children that are no Rubies cost record --children, and how soon one that becomes a Ruby is recorded.

bench/children.py [RUBY]: CPU time is the kernel's, of all processes of rbdump that there are or were."""

import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RBDUMP = os.environ.get("RBDUMP", ROOT / "build/rbdump")
TICK = os.sysconf("SC_CLK_TCK")


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


def main():
    ruby = sys.argv[1] if len(sys.argv) > 1 else "ruby"
    with tempfile.TemporaryDirectory() as folder:
        crowd = subprocess.Popen(
            [ruby, "--disable-gems", ROOT / "tests/targets/shares/not_rubies.rb", "300", ruby, "--disable-gems", "-e", "sleep 100"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        assert crowd.stdout.readline() == b"ready\n"
        record = subprocess.Popen(
            [RBDUMP, "record", "-p", str(crowd.pid), "--children", "-o", f"{folder}/r"], stderr=subprocess.PIPE, text=True
        )
        time.sleep(20)
        counts, begin, used = [], time.monotonic(), cpu_seconds([record.pid, *of_rbdump(record.pid)], record.pid)
        while time.monotonic() - begin < 20:
            time.sleep(1)
            counts.append(1 + len(of_rbdump(record.pid)))
        share = (cpu_seconds([record.pid, *of_rbdump(record.pid)], record.pid) - used) / (time.monotonic() - begin)
        became = {}
        for _ in range(2):
            crowd.stdin.write(b"\n")
            became[int(crowd.stdout.readline())] = time.time_ns()
            time.sleep(3)
        record.send_signal(signal.SIGINT)
        print(record.stderr.read(), end="")
        crowd.stdin.close()
        crowd.wait()
        shown = subprocess.run([RBDUMP, "report", "-f", "json", "--idle", f"{folder}/r"], stdout=subprocess.PIPE, check=True)
        report = json.loads(shown.stdout)
        start = datetime.datetime.fromisoformat(report["start"].replace("Z", "+00:00")).timestamp()
        for index, process in enumerate(report["processes"]):
            if process["pid"] in became:
                runs = [run for run in report["runs"] if report["threads"][run["thread"]]["process"] == index]
                first = min(run["start_ns"] for run in runs if run["state"] != "starting")
                print(f"recorded {start + first / 1e9 - became[process['pid']] / 1e9:.3f} s after it was told to exec")
    print(f"{100 * share:.2f} % of a CPU; processes of rbdump: at most {max(counts)}, mostly {sorted(counts)[len(counts) // 2]}")


main()
