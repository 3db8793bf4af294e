#!/usr/bin/python3
"""What it costs to record all Rubies of a machine, and how soon each of them is recorded and named.

bench/many.py [--count 100] [--namespaces 20] [--rate 99] [--mode kernel] [--seconds 20]: so many Rubies, in so many pid
namespaces, each namespace in a cgroup that is called as docker calls it, are started while `rbdump record --all` runs. Each
works for about a millisecond, twenty times a second. The Rubies that the tests find take turns. Prints the CPU time of all
processes of rbdump, as a share of one CPU; how many of the Rubies were recorded, with their container's name; and how long
after the start of each process its first stack with names was taken. Needs root, and cgroups that can be made."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "tests"))

from harness.process import children_of, wait_until  # noqa: E402  the path is set above
from harness.recording import Profile  # noqa: E402
from harness.rubies import find_rubies  # noqa: E402

RBDUMP = TREE / "build/rbdump"
CGROUPS = [pathlib.Path("/sys/fs/cgroup/systemd"), pathlib.Path("/sys/fs/cgroup")]
WORK = "def work() = 3000.times { |i| i * i }\ndef pause() = sleep(0.05)\nloop { work; pause }"
WORK_BEFORE_3 = WORK.replace("work() = ", "work; ").replace("pause() = ", "pause; ").replace("\ndef", "; end\ndef").replace("\nloop", "; end\nloop")
SETTLED, APART = 5, 0.5  # seconds; the Rubies themselves take a while to start
TICKS = os.sysconf("SC_CLK_TCK")


def started(pid):
    """When a process was started, in seconds of CLOCK_REALTIME: as exactly as the kernel tells (a hundredth of a second)."""
    ticks = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / TICKS


def cpu_s(pid):
    """Of the threads of a process that there are."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def reaped_cpu_s(pid):
    """Of the children that have ended, and that it has waited for."""
    return sum(int(word) for word in pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]) / TICKS


def of_rbdump(recorder):
    used = {0: reaped_cpu_s(recorder)}
    for pid in [recorder, *children_of(recorder)]:
        # One that only looks at a process may end meanwhile; what it took is counted as above.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            used[pid] = cpu_s(pid)
    return used


def container(number):
    return f"{number:012x}" + "0" * 52


def start_namespace(top, number, rubies, count):
    """Starts `count` Rubies in a pid namespace and a cgroup of its own. Returns the outer process, and the pids of the Rubies."""
    cgroup = top / f"docker-{container(number)}.scope"
    cgroup.mkdir()
    commands = []
    for index in range(count):
        ruby = rubies[(number * count + index) % len(rubies)]
        commands.append(f"{ruby.path} --disable-gems -e '{WORK if ruby.series >= (3, 0) else WORK_BEFORE_3}' &")
    script = f"echo $$ > {cgroup}/cgroup.procs; exec unshare --pid --fork --kill-child --mount-proc sh -c \"$1\""
    outer = subprocess.Popen(["sh", "-c", script, "sh", "\n".join(commands) + "\nwait"])
    shell = wait_until(lambda: children_of(outer.pid), "there is a namespace")[0]
    return outer, wait_until(lambda: pids if len(pids := children_of(shell)) == count else None, "its Rubies were started")


def first_named(profile, pid):
    """When the first stack of a process with names was taken, in seconds of CLOCK_REALTIME; None if there is none."""
    times = [profile.start + span.start for span in profile.of(pid=pid) if span.verdict == "complete" and span.frames]
    return min(times) / 1e9 if times else None


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--namespaces", type=int, default=20)
    parser.add_argument("--rate", type=float, default=99)
    parser.add_argument("--mode", default="kernel")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    rubies = find_rubies()
    mounted = next(folder for folder in CGROUPS if (folder / "cgroup.procs").exists())
    top = mounted / f"rbdump-many-{os.getpid()}"
    top.mkdir()
    begun, outers = {}, []
    with tempfile.TemporaryDirectory(prefix="rbdump-many-") as folder:
        file = pathlib.Path(folder) / "recording"
        recorder = subprocess.Popen(
            [RBDUMP, "record", "--all", "--cgroup", f"/{top.name}", "--mode", options.mode, "-r", str(options.rate), "-o", file],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            for number in range(options.namespaces):
                outer, pids = start_namespace(top, number, rubies, options.count // options.namespaces)
                outers.append(outer)
                begun |= {pid: started(pid) for pid in pids}
                time.sleep(APART)
            time.sleep(SETTLED)
            before, began = of_rbdump(recorder.pid), time.monotonic()
            time.sleep(options.seconds)
            after, ended = of_rbdump(recorder.pid), time.monotonic()
            recorder.terminate()
            errors = recorder.communicate(timeout=120)[1]
            assert recorder.returncode == 0, errors
            profile = Profile(json.loads(subprocess.check_output([RBDUMP, "report", "-f", "json", "--idle", file])))
        finally:
            recorder.kill()
            for outer in outers:
                outer.kill()
                outer.wait()
            for cgroup in top.iterdir():
                if cgroup.is_dir():
                    wait_until(lambda cgroup=cgroup: not (cgroup / "cgroup.procs").read_text(), "it is empty")
                    cgroup.rmdir()
            top.rmdir()
    names = {container(number)[:12] for number in range(options.namespaces)}
    labelled = {process["pid"] for process in profile.processes if process["container"] in names}
    delays = sorted(first - begun[pid] for pid in begun if (first := first_named(profile, pid)) is not None)
    used = (sum(after.values()) - sum(before.values())) / (ended - began)
    print(
        f"{len(begun)} Rubies of {len(rubies)} builds in {options.namespaces} pid namespaces, {options.mode}, {options.rate:g} Hz: "
        f"rbdump took {100 * used:.2f} % of a CPU in {len(after) - 1} processes; {len(labelled & begun.keys())} have their container's "
        f"name, {len(delays)} have names of frames; the first stack with names was taken {statistics.median(delays):.2f} s (median), "
        f"{delays[-1]:.2f} s (at most) after the start of the process\n{errors.strip()}"
    )


main()
