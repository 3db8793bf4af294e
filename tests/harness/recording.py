"""Running rbdump record, and reading what rbdump report makes of a recording."""

import collections
import dataclasses
import datetime
import json
import os
import re
import selectors
import subprocess
import time

from harness.dump import run
from harness.process import Bound, wait_until
from harness.target import TARGETS

SECOND = 1_000_000_000
MOST = 120  # seconds to wait for what has only failed if it never comes, on a machine that is busy
CUT = 1  # the exit status of report: shown, but not all of it
STATES = ("cpu", "gc", "gvl", "blocked", "sleeping", "starting", "stopped", "paging", "runnable")


class Running:
    """A program of tests/targets/ that prints "ready" once it is, and ends when standard input does."""

    def __init__(self, ruby, script, *arguments, flags=(), environment=None, below=()):
        """below: a command that starts another, which is given behind it."""
        self.environment = {**os.environ, **(environment or {})}
        command = [*below, ruby.path, "--disable-gems", *flags, TARGETS / script, *arguments]
        self.command = [str(word) for word in command]

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.pid = self.process.pid
        self.first_line = self.line()
        return self

    def __exit__(self, *_):
        # First by the end of standard input: then it ends its own children, too.
        self.process.stdin.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait(MOST)
        self.process.stdout.close()

    def line(self, seconds=MOST):
        """The next line of standard output, waited for; what there is if that ends."""
        bound, line = Bound(seconds), b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                assert selector.select(bound.left()), f"{self.command}: said nothing in {seconds} s"
                byte = os.read(self.process.stdout.fileno(), 1)
                if not byte:
                    break
                line += byte
        return line.decode().rstrip("\n")

    def finish(self):
        """Lets it end, and gives what it then says."""
        self.process.stdin.close()
        answer = self.process.stdout.read().decode()
        assert self.process.wait(MOST) == 0
        return answer


class Recording:
    """
    `rbdump record` with these arguments, while it runs; below a command that starts another, if there is one. Ends it,
    if need be, however it stands. Without a mode in the arguments, it is `paused`: the default depends on what is allowed.
    """

    def __init__(self, rbdump, *arguments, file=None, below=(), **options):
        self.rbdump = rbdump
        self.file = file
        output = [] if file is None else ["-o", file]
        mode = [] if "--mode" in arguments else ["--mode", "paused"]
        self.command = [str(word) for word in [*below, rbdump, "record", *output, *mode, *arguments]]
        self.options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options

    def __enter__(self):
        self.process = subprocess.Popen(self.command, text=True, **self.options)
        self.pid = self.process.pid
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(MOST)
        for stream in (self.process.stdout, self.process.stderr):
            if stream and not stream.closed:
                stream.close()

    def so_far(self):
        """What is in the file by now: a Profile, or None if nothing is that can be read."""
        if not self.file.exists() or self.file.stat().st_size == 0:
            return None
        done = run(self.rbdump, "report", self.file, "-f", "json", "--idle")
        return Profile(json.loads(done.stdout)) if done.returncode == CUT else None

    def wait_until(self, condition, what, seconds=MOST):
        """
        Waits until the profile that is in the file by then meets the condition. The file is read again only once there is more in
        it, and not more than half of the time: who reads it all the time takes a CPU from what is recorded.
        """
        seen, again = None, 0

        def is_so():
            nonlocal seen, again
            profile, began = None, time.monotonic()
            now = (self.file, self.file.stat().st_size if self.file.exists() else 0)
            if now != seen and began >= again:
                profile, seen = self.so_far(), now
                again = 2 * time.monotonic() - began
            if profile and condition(profile):
                return profile
            assert self.process.poll() is None, f"it has ended: {self.process.stderr.read()}"
            return None

        return wait_until(is_so, what, seconds)

    def wait_for_samples(self):
        return self.wait_until(lambda profile: any(span.verdict == "complete" for span in profile.spans), "it samples")

    def end(self, with_signal=None, seconds=MOST):
        """Its exit status, standard output and standard error; ended by a signal, or by itself."""
        if with_signal is not None:
            self.process.send_signal(with_signal)
        out, errors = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, errors


def record(rbdump, *arguments, file=None, timeout=2 * MOST, **options):
    """`rbdump record` to its end: exit status, standard output, standard error."""
    with Recording(rbdump, *arguments, file=file, **options) as recording:
        return recording.end(seconds=timeout)


def counts_in(errors):
    """
    The line `rbdump: samples 990: 981 complete, 7 torn, 2 truncated; late 3 (missed: 1) of 991 due` of standard error
    as a dictionary.
    """
    end = r"late (\d+)(?: \(missed: (\d+)\))? of (\d+) due$"
    (match,) = re.finditer(rf"^rbdump: samples (\d+): (.*); {end}", errors, re.MULTILINE)
    counts = {"samples": int(match[1]), "late": int(match[3]), "missed": int(match[4] or 0)}
    for part in match[2].split(", "):
        number, verdict = part.split(" ")
        counts[verdict] = int(number)
    return counts


def warnings_in(errors):
    return [line for line in errors.splitlines() if line.startswith("rbdump: warning: ")]


def is_summary(errors):
    """Whether standard error is nothing but the line that tells what came of it all, and warnings about that."""
    return bool(counts_in(errors)) and errors.count("\n") == 1 + len(warnings_in(errors))


@dataclasses.dataclass(frozen=True, eq=False)
class Span:
    process: dict
    thread: dict
    start: int  # ns since the profile's start
    weight: int
    count: int
    state: str
    syscall: str | None
    verdict: str
    frames: tuple  # innermost first, each with kind, name, label, path, first_line and line
    pid: int
    estimated: bool

    @property
    def end(self):
        return self.start + self.weight

    def within(self, begin, end):
        """How much of it lies between two times."""
        return max(0, min(end, self.end) - max(begin, self.start))

    def method(self, *names):
        """The innermost of its frames that has one of these names."""
        return next((frame["name"] for frame in self.frames if frame["name"] in names), None)


class Profile:
    """What `rbdump report -f json` says, its form checked."""

    def __init__(self, answer):
        self.answer = answer
        assert answer["schema_version"] == 1
        self.counts = answer["counts"]
        self.cut = answer["cut"]
        self.duration = answer["duration_ns"]
        self.start = nanoseconds(answer["start"])
        self.processes = answer["processes"]
        self.threads = answer["threads"]
        self.stacks = self._stacks()
        self.spans = [self._span(told) for told in answer["runs"]]

    def _stacks(self):
        frames = [
            self.answer["functions"][frame["function"]] | {"line": frame["line"]} for frame in self.answer["frames"]
        ]
        stacks = []
        for index, stack in enumerate(self.answer["stacks"]):
            above = stack["parent"]
            assert above is None or above < index
            stacks.append((frames[stack["frame"]], *(stacks[above] if above is not None else ())))
        return stacks

    def _span(self, told):
        thread = self.threads[told["thread"]]
        process = self.processes[thread["process"]]
        assert told["state"] in STATES
        assert told["count"] >= 1
        return Span(
            process, thread, told["start_ns"], told["weight_ns"], told["count"], told["state"], told["syscall"],
            told["verdict"], () if told["stack"] is None else self.stacks[told["stack"]], process["pid"],
            told["estimated"],
        )  # fmt: skip

    def of(self, pid=None, name=None, main=None):
        """The spans of a process, and of its main thread or the one of a name."""
        return [
            span
            for span in self.spans
            if pid in (None, span.pid) and name in (None, span.thread["name"]) and main in (None, span.thread["main"])
        ]

    def weight(self):
        return sum(span.weight for span in self.spans)

    def end(self):
        """The end of what is in it, as CLOCK_REALTIME has it."""
        return self.start + max((span.end for span in self.spans), default=0)

    def pids(self):
        return [process["pid"] for process in self.processes]


def nanoseconds(text):
    """A time such as "2026-01-31T12:00:00.123456789Z" as CLOCK_REALTIME has it."""
    assert text.endswith("Z")
    whole, _, fraction = text[:-1].partition(".")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return int(seconds) * SECOND + int(fraction.ljust(9, "0")[:9] or 0)


def report(rbdump, *arguments, status=0):
    """`rbdump report … -f json`; with the status CUT of what was not finished, or is damaged."""
    done = run(rbdump, "report", *arguments, "-f", "json")
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr or done.stdout[:1000]}"
    profile = Profile(json.loads(done.stdout))
    assert profile.cut == (status == CUT)
    return profile


def shares(weights):
    """{key: weight} as {key: share}."""
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()} if total else {}


def shares_of(spans, key):
    """The shares of the weight of spans by what `key` says of each."""
    weights = collections.Counter()
    for one in spans:
        weights[key(one)] += one.weight
    return shares(weights)


def collapsed(text):
    """Lines `outermost;…;innermost WEIGHT`: a list of (frames, weight)."""
    return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in text.splitlines()]


class Timeline:
    """What a thread of a target of targets/shares/ says of itself: from when to when it did what."""

    def __init__(self, told):
        self.spans = [(what, begin, end, cpu, used) for (what, begin, cpu), (_, end, used) in zip(told, told[1:])]

    def clipped(self, begin, end):
        """(what, begin, end, CPU time) of what lies between two times."""
        for what, first, last, cpu, used in self.spans:
            inside = min(end, last) - max(begin, first)
            if inside > 0:
                part = inside / (last - first)
                told = cpu is not None and used is not None
                yield what, max(begin, first), min(end, last), (used - cpu) * part if told else None

    def wall(self, begin, end):
        """Shares of the time between two moments."""
        weights = collections.Counter()
        for what, first, last, _ in self.clipped(begin, end):
            weights[what] += last - first
        return shares(weights)

    def cpu(self, begin, end):
        """Shares of the CPU time."""
        weights = collections.Counter()
        for what, _, _, used in self.clipped(begin, end):
            weights[what] += used
        return shares(weights)

    def agreement(self, profile, spans, key):
        """The share of the weight of spans during which the thread did what `key` says of them."""
        agrees = total = 0
        for one in spans:
            begin, end = profile.start + one.start, profile.start + one.end
            agrees += sum(last - first for what, first, last, _ in self.clipped(begin, end) if what == key(one))
            total += one.weight
        return agrees / total if total else 0


def timelines(answer):
    return {name: Timeline(told) for name, told in json.loads(answer).items()}
