"""What every measurement of make bench uses: programs that are run, targets, system calls, and the table."""

import contextlib
import json
import os
import pathlib
import re
import selectors
import signal
import statistics
import subprocess
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent
TREE = BENCH.parent
TIMEOUT = 120  # seconds that one child may take


class Failed(Exception):
    """A measurement could not be made; the message says why."""


# ---- one run of a program


class Run:
    """What a program took: `wall` and `cpu` in seconds; and its `output`, errors included."""

    def __init__(self, command, environment, stdin=None, allowed=(0,), timeout=TIMEOUT):
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
            if stdin:
                given.write(stdin)
                given.seek(0)
            signal.alarm(timeout)
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


def counted(command, environment, within=None):
    """
    How many instructions a program and what it forks execute outside of the kernel; within one function alone, with what
    that calls. And what it writes.
    """
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    run = Run(callgrind + ([f"--toggle-collect={within}"] if within else []) + [str(word) for word in command], environment)
    count = sum(int(number) for number in re.findall(r"Collected : (\d+)", run.output))
    if count == 0:
        raise Failed(f"valgrind gives no number of instructions{f' of {within}' if within else ''}")
    return count, run.output


def interleave(commands, times, environment):
    """Runs each of {name: command} once by turns, `times` times, after a round that does not count."""
    runs = {name: [] for name in commands}
    for i in range(times + 1):
        for name, command in commands.items():
            run = Run(command, environment)
            if i > 0:
                runs[name].append(run)
    return runs


# ---- what is measured, and with what


class Setting:
    """Which rbdump looks at which Ruby; a folder for what comes of it; and the table of it all."""

    def __init__(self, options, ruby, rbdump, folder):
        self.options, self.ruby, self.rbdump, self.folder = options, ruby, rbdump, folder
        self.table = Table()
        # The layout at hand is one that rbdump makes now, for this build; nothing of the user's is used or changed.
        layouts = os.path.join(folder, "offsets.d")
        os.mkdir(layouts)
        self.environment = dict(
            os.environ, RBDUMP_OFFSETS_D=layouts, XDG_CACHE_HOME=folder, DEBUGINFOD_URLS="", LC_ALL="C.UTF-8"
        )
        self.generate = [rbdump, "--gen-offsets", ruby.elf]
        Run(self.generate, self.environment)

    def compile(self, name):
        """A program of bench/ in C."""
        program = os.path.join(self.folder, name)
        command = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-o", program, str(BENCH / f"{name}.c")]
        subprocess.run(command, check=True, timeout=TIMEOUT)
        return program


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
    """
    The system calls of one dump, by kind: of all of it, and of its last pause if it has one; and the memory copied in
    that pause. With `only`, strace looks at no others: else a pause of thousands of threads gets too long.
    """

    def __init__(self, command, environment, folder, only=None):
        log = os.path.join(folder, "strace.log")
        strace = ["strace", "-f", "-qq", "-s0", "-e", "abbrev=none", "-e", "signal=none", "-o", log]
        strace += ["--seccomp-bpf", "-e", f"trace={only}"] if only else []
        Run(strace + command, environment, allowed=(0, 1))
        lines = []
        with open(log, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = re.match(r"\d+ +(\w+)\(", line)
                if match:
                    lines.append((match[1], line))
        seizes = [i for i, (_, line) in enumerate(lines) if "PTRACE_SEIZE" in line]
        detaches = [i for i, (_, line) in enumerate(lines) if "PTRACE_DETACH" in line]
        if seizes and not detaches:
            raise Failed("strace shows a thread that was seized, and never let go")
        pairs = list(zip(seizes, seizes[1:]))
        self.pauses = bool(seizes) + sum(any(seize < detach < later for detach in detaches) for seize, later in pairs)
        self.all = self.count(lines)
        paused = []
        if self.pauses > 0:
            earlier = [i for i in detaches if i < seizes[-1]]
            first = min(i for i in seizes if not earlier or i > earlier[-1])
            paused = lines[first : detaches[-1] + 1]
        self.pause = self.count(paused)
        self.pieces = []
        for name, line in paused:
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


def check_frames(run, frames, threads=1):
    """That so many threads have a number of frames that is in `frames`: what is measured is what is said to be."""
    deep = [thread for thread in json.loads(run.output)["threads"] if len(thread["frames"]) in frames]
    if len(deep) != threads:
        raise Failed(f"{len(deep)} threads have {frames[-1]} frames, not {threads}")
