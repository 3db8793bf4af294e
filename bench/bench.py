"""Measures rbdump against its peers: one table, with the limits. Exit status 1 if one is exceeded. doc/benchmarks.md"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import selectors
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent
TREE = BENCH.parent
sys.path.insert(0, str(TREE / "tests"))

from harness.rubies import find_rubies  # noqa: E402

TIMEOUT = 120  # seconds that one child may take
STRUCT = "ptype /o struct rb_control_frame_struct"
TRACED = 40  # dumps of a busy target that are run under strace, to count their pauses


class Failed(Exception):
    """A measurement could not be made; the message says why."""


# ---- one run of a program


class Run:
    """What a program took: `wall` and `cpu` in seconds; and its `output`, errors included."""

    def __init__(self, command, environment, stdin=None, allowed=(0,)):
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
            if stdin:
                given.write(stdin)
                given.seek(0)
            signal.alarm(TIMEOUT)
            began = time.perf_counter()
            process = subprocess.Popen(command, stdin=given, stdout=output, stderr=output, env=environment)
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except Failed:  # of the alarm
                process.kill()
                process.wait()
                raise
            self.wall = time.perf_counter() - began
            signal.alarm(0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            self.output = output.read().decode(errors="replace")
        self.cpu = usage.ru_utime + usage.ru_stime
        if process.returncode not in allowed:
            raise Failed(f"{command[0]} gave {process.returncode}: {self.output.strip()[-300:]}")


def out_of_time(_signal, _frame):
    raise Failed(f"a program took more than {TIMEOUT} s")


def peak_memory(command, environment, folder):
    """
    In bytes, by time(1): what wait4() says here is at least what this Python has, since a child begins as its copy.
    """
    file = os.path.join(folder, "time")
    Run(["time", "-f", "%M", "-o", file, *command], environment)
    return int(pathlib.Path(file).read_text()) * 1024


def interleave(commands, times, environment):
    """Runs each of {name: command} once by turns, `times` times, after a round that does not count."""
    runs = {name: [] for name in commands}
    for i in range(times + 1):
        for name, command in commands.items():
            run = Run(command, environment)
            if i > 0:
                runs[name].append(run)
    return runs


# ---- targets


@contextlib.contextmanager
def target(ruby, mode, frames, threads=1):
    """The pid of a bench/target.rb that is ready; it is ended by its pid."""
    environment = dict(os.environ, RUBY_THREAD_VM_STACK_SIZE="8388608")
    process = subprocess.Popen(
        [ruby, "--disable-gems", str(BENCH / "target.rb"), mode, str(frames), str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(TIMEOUT) or process.stdout.readline() != b"ready\n":
                raise Failed(f"the target ({mode}, {frames} frames, {threads} threads) did not get ready")
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


# ---- what rbdump asks of the kernel


class Calls:
    """The system calls of one dump, by kind, of all of it and of its last pause; and the memory copied in that."""

    def __init__(self, command, environment, folder):
        log = os.path.join(folder, "strace.log")
        strace = ["strace", "-f", "-qq", "-s0", "-e", "abbrev=none", "-e", "signal=none", "-o", log]
        Run(strace + command, environment, allowed=(0, 1))
        lines = []
        with open(log, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = re.match(r"\d+ +(\w+)\(", line)
                if match:
                    lines.append((match[1], line))
        seizes = [i for i, (_, line) in enumerate(lines) if "PTRACE_SEIZE" in line]
        detaches = [i for i, (_, line) in enumerate(lines) if "PTRACE_DETACH" in line]
        if not seizes or not detaches:
            raise Failed("strace shows no pause")
        pairs = list(zip(seizes, seizes[1:]))
        self.pauses = 1 + sum(any(seize < detach < later for detach in detaches) for seize, later in pairs)
        last = detaches[-1]
        earlier = [i for i in detaches if i < seizes[-1]]
        first = min(i for i in seizes if not earlier or i > earlier[-1])
        self.all = self.count(lines)
        self.pause = self.count(lines[first : last + 1])
        self.pieces = []
        for name, line in lines[first : last + 1]:
            if name == "process_vm_readv":
                remote = line.partition("], 1, [")[2]
                self.pieces += re.findall(r"iov_base=(0x[0-9a-f]+), iov_len=(\d+)", remote)
        self.bytes = sum(int(length) for _, length in self.pieces)

    @staticmethod
    def count(lines):
        counts = {}
        for name, _ in lines:
            counts[name] = counts.get(name, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


# ---- the table


def percentile(values, share):
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


class Table:
    """Rows as they are measured. Only rows with a limit have a verdict."""

    WIDTHS = (50, 12, 12, 12, 9, 8)
    UNITS = {"us": "{:,.0f} us", "ms": "{:,.1f} ms", "MB": "{:,.0f} MB", "ratio": "{:.3f}", "": "{:,}"}

    def __init__(self):
        self.rows = []

    def section(self, title):
        print(f"\n{title}")
        self._print("", "measured", "p90", "max", "limit", "verdict")

    def add(self, what, measured, unit, limit=None, p90=None, largest=None):
        verdict = None if limit is None else "ok" if measured <= limit else "EXCEEDED"
        self.rows.append(
            {"what": what, "measured": measured, "unit": unit, "p90": p90, "max": largest, "limit": limit}
            | ({"verdict": verdict} if verdict else {})
        )
        numbers = [self._number(value, unit) for value in (measured, p90, largest, limit)]
        self._print("  " + what, *numbers, verdict or "")

    def add_spread(self, what, values, unit, limit=None):
        """The median, judged; p90 and the largest beside it."""
        self.add(what, statistics.median(values), unit, limit, percentile(values, 0.9), max(values))

    def note(self, what):
        self.rows.append({"what": what})
        print("  " + what)

    @property
    def exceeded(self):
        return [row["what"] for row in self.rows if row.get("verdict") == "EXCEEDED"]

    def _number(self, value, unit):
        return "" if value is None else self.UNITS[unit].format(value)

    def _print(self, what, *cells):
        print(
            f"{what:<{self.WIDTHS[0]}}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, self.WIDTHS[1:])), flush=True
        )


# ---- the measurements


class Bench:
    def __init__(self, options, ruby, rbdump, folder):
        self.options, self.ruby, self.rbdump, self.folder = options, ruby, rbdump, folder
        self.table = Table()
        self.bare = os.path.join(folder, "bare_cycle")
        compile_it = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-o", self.bare, str(BENCH / "bare_cycle.c")]
        subprocess.run(compile_it, check=True, timeout=TIMEOUT)
        # The layout at hand is one that rbdump makes now, for this build; nothing of the user's is used or changed.
        layouts = os.path.join(folder, "offsets.d")
        os.mkdir(layouts)
        self.environment = dict(
            os.environ, RBDUMP_OFFSETS_D=layouts, XDG_CACHE_HOME=folder, DEBUGINFOD_URLS="", LC_ALL="C.UTF-8"
        )
        self.generate = [rbdump, "--gen-offsets", ruby.elf, "-o", os.path.join(layouts, "bench.layout")]
        Run(self.generate, self.environment)

    def dump(self, pid, *more):
        return [self.rbdump, "-p", str(pid), *more]

    def generation(self):
        mine, peer = "rbdump --gen-offsets", "gdb -batch -ex 'ptype /o …'"
        size = debug_info_size(self.ruby.elf)
        self.table.section(f"Layout from DWARF: Ruby {self.ruby.version}, .debug_info of {size / 1e6:.1f} MB; CPU time")
        self.table.note(f"… is {STRUCT.removeprefix('ptype /o ')}")
        gdb = ["gdb", "-nx", "-batch", "-ex", STRUCT, self.ruby.elf]
        runs = interleave({mine: self.generate, peer: gdb}, self.options.repeat, self.environment)
        for run in runs[peer]:
            if "total size" not in run.output:
                raise Failed(f"gdb did not show the struct: {run.output.strip()[-300:]}")
        cpu = {name: [run.cpu * 1e3 for run in some] for name, some in runs.items()}
        for name, values in cpu.items():
            self.table.add_spread(name, values, "ms")
        ratio = statistics.median(cpu[mine]) / statistics.median(cpu[peer])
        self.table.add("ratio of the medians", ratio, "ratio", 0.3)
        for name, command in ((mine, self.generate), (peer, gdb)):
            peak = max(peak_memory(command, self.environment, self.folder) for _ in range(3)) / 1e6
            self.table.add(f"peak memory, {name}", peak, "MB", 250 if name == mine else None)
        if self.options.instructions:
            run = Run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
                       *self.generate], self.environment)  # fmt: skip
            count = re.search(r"I +refs: +([\d,]+)", run.output)
            if not count:
                raise Failed("valgrind gives no number of instructions")
            self.table.add("instructions, rbdump --gen-offsets", int(count[1].replace(",", "")), "")

    def whole_dump(self):
        self.table.section("A whole dump: 30 frames, layout at hand; wall time")
        with target(self.ruby.path, "sleep", 30) as pid:
            check_frames(Run(self.dump(pid, "--json"), self.environment), (30,))
            script = f"source {TREE / 'gdb-scripts/rb_bt.py'}"
            commands = {
                "rbdump -p PID": self.dump(pid),
                "true (starting an empty program)": ["true"],
                "gdb -batch -p PID, rb-bt": ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", script, "-ex", "rb-bt"],
                "eu-stack -p PID (native frames only)": ["eu-stack", "-p", str(pid)],
                "rbspy dump --pid PID": ["rbspy", "dump", "--pid", str(pid)],
            }
            missing = [name for name, command in commands.items() if not shutil.which(command[0])]
            for name in missing:
                del commands[name]
            # The slow ones are not needed as often as the quick ones.
            slow = {name: commands.pop(name) for name in list(commands) if name.startswith(("gdb", "eu-", "rbspy"))}
            runs = {name: [] for name in commands | slow}
            for _ in range(self.options.repeat):
                for name, some in interleave(commands, 10, self.environment).items():
                    runs[name] += some
                for name, command in slow.items():
                    runs[name].append(Run(command, self.environment))
            for name, some in runs.items():
                limit = 15 if name == "rbdump -p PID" else None
                self.table.add_spread(name, [run.wall * 1e3 for run in some], "ms", limit)
            for name in missing:
                self.table.note(f"{name}: not found")
            calls = Calls(self.dump(pid), self.environment, self.folder)
        self.table.section("System calls of that dump (deterministic but for where the heap lies)")
        self.table.add("in all", sum(calls.all.values()), "")
        self.table.note("  " + ", ".join(f"{n} {name}" for name, n in list(calls.all.items())))
        self.table.add("while the target is stopped", sum(calls.pause.values()), "")
        self.table.note("  " + ", ".join(f"{n} {name}" for name, n in calls.pause.items()))

    def search(self):
        self.table.section("A dump of a Ruby without symbols, 30 frames, layout of its version; wall time")
        stripped = os.path.join(self.folder, "stripped")
        Run(["strip", "--strip-all", "-o", stripped, self.ruby.path], self.environment)
        shipped = dict(self.environment, RBDUMP_OFFSETS_D=str(TREE / "offsets.d"))
        # What it finds cannot be kept in the one, and is kept in the other.
        environments = {
            "its roots are searched for": dict(shipped, XDG_CACHE_HOME="/dev/null"),
            "they are known from before": dict(shipped, XDG_CACHE_HOME=os.path.join(self.folder, "kept")),
        }
        with target(stripped, "sleep", 30) as pid:
            runs = {name: [] for name in environments}
            for i in range(10 * self.options.repeat + 1):
                for name, environment in environments.items():
                    run = Run(self.dump(pid, "--json"), environment)
                    check_frames(run, (30,))
                    if i > 0:
                        runs[name].append(run.wall * 1e3)
            for name, walls in runs.items():
                self.table.add_spread(name, walls, "ms", 50)
                calls = Calls(self.dump(pid), environments[name], self.folder)
                self.table.add("  process_vm_readv", calls.all["process_vm_readv"], "")

    def pauses(self):
        self.table.section("The pause, from pause_us of the JSON, and the bare ptrace cycle with the same copy")
        for mode, frames, threads, dumps, limit in (
            ("sleep", 100, 1, 200, 500),
            ("busy", 100, 1, 200, 500),
            ("sleep", 1000, 1, 50, None),
            ("sleep", 10000, 1, 50, None),
            ("sleep", 10, 100, 50, None),
            ("sleep", 10, 1000, 20, None),
            ("sleep", 10, 4000, 10, None),
        ):
            with target(self.ruby.path, mode, frames, threads) as pid:
                calls = Calls(self.dump(pid), self.environment, self.folder)
                pieces = "".join(f"{address} {length}\n" for address, length in calls.pieces).encode()
                if mode == "busy":
                    traced = [Calls(self.dump(pid), self.environment, self.folder) for _ in range(TRACED)]
                    again = sum(calls.pauses > 1 for calls in traced)
                mine, bare = [], []
                # What is busy is in the last method or has just left it.
                deep = (frames,) if mode == "sleep" else (frames - 1, frames)
                for _ in range(dumps):
                    run = Run(self.dump(pid, "--json"), self.environment, allowed=(0, 1))
                    check_frames(run, deep, threads)
                    mine.append(json.loads(run.output)["pause_us"])
                    cycle = Run([self.bare, str(pid)], self.environment, stdin=pieces)
                    bare.append(float(cycle.output))
            what = f"{frames:,} frames, {threads:,} thread{'s' if threads > 1 else ''}, {mode}"
            self.table.add_spread(f"{what}: rbdump", mine, "us", limit)
            copied = f"{calls.bytes / 1024:,.0f} KiB in {len(calls.pieces)} pieces"
            self.table.add_spread(f"  bare cycle, {copied}", bare, "us")
            if mode == "busy":
                self.table.add(f"  of {TRACED} dumps under strace, those with several pauses", again, "")


def check_frames(run, frames, threads=1):
    """That so many threads have a number of frames that is in `frames`: what is measured is what is said to be."""
    deep = [thread for thread in json.loads(run.output)["threads"] if len(thread["frames"]) in frames]
    if len(deep) != threads:
        raise Failed(f"{len(deep)} threads have {frames[-1]} frames, not {threads}")


def debug_info_size(elf):
    sections = Run(["readelf", "-SW", elf], os.environ).output
    found = re.search(r"\] \.debug_info +\S+ +\S+ \S+ ([0-9a-f]+)", sections)
    if not found:
        raise Failed(f"{elf} has no .debug_info")
    return int(found[1], 16)


def first_line(command):
    return Run(command, os.environ).output.splitlines()[0] if shutil.which(command[0]) else f"{command[0]}: not found"


def conditions(ruby, rbdump):
    """What the figures depend on."""
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": f"{os.cpu_count()} x {cpu[1] if cpu else platform.machine()}",
        "kernel": platform.release(),
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "versions": [
            first_line([rbdump, "--version"]),
            f"Ruby {ruby.version}",
            first_line(["gdb", "--version"]),
            first_line(["gcc", "--version"]),
            first_line(["eu-stack", "--version"]),
            first_line(["rbspy", "--version"]),
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write every row, and what the figures depend on, there as well")
    parser.add_argument("--repeat", type=int, default=9, help="rounds of the slow measurements (default: 9)")
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind too (slow)")
    options = parser.parse_args()

    rubies = [ruby for ruby in find_rubies() if ruby.series == (3, 4) and ruby.has_debug]
    if not rubies:
        sys.exit("bench: there is no Ruby 3.4 with debug info: run tests/rubies/build 3.4")
    rbdump = str(pathlib.Path(os.environ.get("RBDUMP", TREE / "build/rbdump")).resolve())
    if not os.access(rbdump, os.X_OK):
        sys.exit(f"bench: {rbdump} is not there: run make")

    signal.signal(signal.SIGALRM, out_of_time)
    with tempfile.TemporaryDirectory(prefix="rbdump-bench-") as folder:
        try:
            about = conditions(rubies[0], rbdump)
            for name, value in about.items():
                print(f"{name + ':':<10}{'; '.join(value) if isinstance(value, list) else value}")
            bench = Bench(options, rubies[0], rbdump, folder)
            bench.generation()
            bench.whole_dump()
            bench.search()
            bench.pauses()
        except Failed as problem:
            sys.exit(f"bench: {problem}")
    about["load at the end"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
    print(f"\nload at the end: {about['load at the end']}")
    if options.json:
        result = {"conditions": about, "rows": bench.table.rows}
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    if bench.table.exceeded:
        sys.exit("bench: limits exceeded: " + "; ".join(bench.table.exceeded))


if __name__ == "__main__":
    main()
