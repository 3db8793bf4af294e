"""A recording of targets/shares/pool.rb, and what is to be said of it: by its calls, its clocks, and the kernel's counters."""

import collections
import json
import os
import re
import signal

from harness.counters import TICK_NS, Counters
from harness.places import Inhabitant
from harness.process import children_of, is_untouched
from harness.recording import Recording, Running, report, shares
from harness.target import TARGETS

SCRIPT = "shares/pool.rb"
KINDS = ("compute", "rest", "receive", "burn")
METHODS = {f"Pool#{kind}": kind for kind in KINDS}
# What a thread of a kind does that waits neither for the GVL nor for a CPU.
WAITING = {"rest": "sleeping", "receive": "blocked"}
ON_CPU = ("cpu", "gc")
# A native thread that goes on with another Ruby thread has its old name until that has set its own, which is after it has begun.
NAMED_LATE = 50_000_000
# So long a gap between two looks at the threads, due every 0.05 s, is a machine that stood still.
STOOD_STILL = 0.2


class Calls:
    """Which calls there can be: a line calls what it names, and belongs to one method."""

    def __init__(self):
        self.lines = (TARGETS / SCRIPT).read_text().splitlines()
        self.methods = {}
        begun = None
        for number, line in enumerate(self.lines, 1):
            if line.startswith("  def "):
                begun = (re.match(r"  def (\w+)", line)[1], number)
            elif line == "  end" and begun:
                self.methods[f"Pool#{begun[0]}"] = range(begun[1], number + 1)
                begun = None

    def judge(self, frames):
        """What is impossible in the frames of a stack, innermost first; None if nothing is."""
        for index, frame in enumerate(frames):
            name = frame["name"].removeprefix("block in ")
            if name in self.methods and frame["line"] not in self.methods[name]:
                return f"{frame['name']} at line {frame['line']}"
            if index > 0 and name in self.methods and not self._calls(frame["line"], frames[index - 1]["name"]):
                return f"{frame['name']} at line {frame['line']} calls {frames[index - 1]['name']}"
        return None

    def _calls(self, number, callee):
        line = self.lines[number - 1]
        if callee.startswith("block "):
            return "{" in line
        name = re.split(r"[#.]", callee)[-1].rstrip("=")
        name = "new" if name == "initialize" else name
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line) is not None


class Verdict:
    """What is to be said of recordings of the pool."""

    def __init__(self):
        self.samples = self.complete = 0
        self.marks = collections.Counter()  # of samples that are not complete
        self.impossible = collections.Counter()  # of those that are
        self.states = {kind: collections.Counter() for kind in (*KINDS, None)}  # by methods: weights
        self.counted = {kind: collections.Counter() for kind in KINDS}  # by the kernel
        self.told = {kind: collections.Counter() for kind in KINDS}  # by the threads' own clocks

    def judge(self, profile, told, spans):
        """
        Adds one.

        told   by the target: {kind: [seconds that its threads were there, seconds that they waited]}
        spans  by the kernel: of each tid
        """
        for kind, (there, waits) in told.items():
            self.told[kind].update({"there": there, "waits": waits})
        self._judge_stacks(profile)
        self._count(profile, spans)

    def add(self, other):
        self.samples += other.samples
        self.complete += other.complete
        self.marks += other.marks
        self.impossible += other.impossible
        for mine, others in ((self.states, other.states), (self.counted, other.counted), (self.told, other.told)):
            for kind, counter in others.items():
                mine[kind].update(counter)

    def _judge_stacks(self, profile):
        calls, seen = Calls(), {}
        for one in profile.spans:
            self.samples += one.count
            self.states[METHODS.get(one.method(*METHODS))][one.state] += one.weight
            if one.verdict != "complete":
                marks = [frame["name"] for frame in one.frames if frame["kind"] == "mark"]
                self.marks[marks[0] if marks else one.verdict] += one.count
                continue
            if any(frame["kind"] == "ruby" and frame["line"] is None for frame in one.frames):
                self.marks["line not known"] += one.count
                continue
            self.complete += one.count
            if id(one.frames) not in seen:
                seen[id(one.frames)] = calls.judge(one.frames)
            if seen[id(one.frames)]:
                self.impossible[seen[id(one.frames)]] += one.count

    def _count(self, profile, spans):
        """Compares what was seen of each thread while it had a name with what the kernel counted of it meanwhile."""
        by_tid = collections.defaultdict(list)
        for one in profile.spans:
            by_tid[one.thread["tid"]].append(one)
        for tid, seen in by_tid.items():
            for span in spans.get(tid, ()):
                if span.name in KINDS:
                    self._count_span(span, span.begin - profile.start, span.end - profile.start, seen)

    def _count_span(self, span, begin, end, seen):
        counted = self.counted[span.name]
        counted.update({"cpu": span.cpu, "waited": span.waited, "by stat": span.cpu_by_stat, "spans": 1})
        for one in seen:
            inside = one.within(begin, end)
            if inside == 0:
                continue
            counted["seen"] += inside
            counted["seen on CPU"] += inside if one.state in ON_CPU else 0
            # A thread that is taken for another one is seen to do what that does.
            kind = METHODS.get(one.method(*METHODS))
            if one.verdict == "complete" and kind not in (span.name, None) and one.start >= begin and one.end <= end - NAMED_LATE:
                self.impossible[f"{kind} is seen of a thread that does {span.name}"] += one.count

    def on_cpu(self, kind):
        """Shares of the time for which threads of a kind were seen: on a CPU as seen, as counted, and waiting for one."""
        counted = self.counted[kind]
        return tuple(counted[what] / max(1, counted["seen"]) for what in ("seen on CPU", "cpu", "waited"))

    def stat_agrees(self):
        """Whether utime + stime of /proc/PID/task/TID/stat are what schedstat has, each to a clock tick a thread."""
        return all(
            abs(counted["cpu"] - counted["by stat"]) <= counted["spans"] * 2 * TICK_NS for counted in self.counted.values()
        )

    def differences(self):
        """
        {what: by how much it is off}, in shares of a kind's time.

        By the kernel: `cpu` is what it counted, and at most what its threads waited for a CPU. By the threads' own clocks:
        `sleeping` and `blocked` are what they waited for; all else is `cpu` or `gvl`. Who has been woken, and waits for a
        CPU to queue for the GVL, is not seen to do so, nor who waits for that to let go of the queue: so much is open.
        """
        found = {}
        for kind in KINDS:
            seen, counted, waited = self.on_cpu(kind)
            there, waits = self.told[kind]["there"], self.told[kind]["waits"]
            states = shares(self.states[kind])
            found[f"{kind}: cpu"] = max(0, counted - seen, seen - counted - waited)
            if kind in WAITING:
                off = states.get(WAITING[kind], 0) - waits / there
                found[f"{kind}: {WAITING[kind]}"] = max(0, abs(off) - 2 * waited)
            else:
                off = states.get("gvl", 0) - (1 - counted)
                found[f"{kind}: gvl"] = max(0, off, -off - 2 * waited)
        return found


def record_pool(*arguments, **options):
    """
    Records the pool while it grows and shrinks so many times: the profile, standard error, and a Verdict. Recorded again if the
    machine stood still, twice at most: the last recording is judged as any other.
    """
    for _ in range(3):
        *recorded, gap = record_pool_once(*arguments, **options)
        if gap < STOOD_STILL:
            break
    return recorded


def record_pool_once(ruby, rbdump, file, place, mode="paused", rate=1000, turns=3):
    """The same, once; and the longest time for which what looks at its threads got no CPU, in seconds."""
    with Running(ruby, SCRIPT, below=place.below) as target:
        assert target.first_line == "ready"
        there = Inhabitant(place, target.pid)
        options = ["-p", there.pid_there, "-r", rate, "--mode", mode]
        with Recording(rbdump, *options, file=file, below=there.enter) as recording:
            recording.wait_for_samples()
            with Counters(there.pid, there.id_there) as counters:
                target.process.stdin.write(f"{turns}\n".encode())
                assert target.line(30 + 10 * turns) == "done"
            os.kill(children_of(recording.pid)[0] if there.enter else recording.pid, signal.SIGINT)
            ended, _, errors = recording.end()
        assert ended == 0, errors
        assert is_untouched(there.pid)
        told = json.loads(target.finish())
    verdict, profile = Verdict(), report(rbdump, file, "--idle")
    verdict.judge(profile, told, counters.spans())
    return profile, errors, verdict, counters.gap
