"""A recording of targets/shares/redefining.rb: whether each name is that of a method that was there at that moment."""

import collections
import re

from harness.bounds import poisson_most
from harness.target import TARGETS

SCRIPT = "shares/redefining.rb"
PATH = re.compile(r"g(\d+)_(\w+)\.rb")
# A sample has the time at which it began. So a method may have been made just after that.
LATER_NS = 1_000_000


def calling_lines():
    """Which kind of method each line calls."""
    lines = (TARGETS / SCRIPT).read_text().splitlines()
    first = lines.index("  def work(until_then)")
    calls = {}
    for number, line in enumerate(lines[first:], first + 1):
        call = re.fullmatch(r"      n = (?:@\w+\.)?(\w+)\(n\)", line)
        if call:
            calls[number] = call[1]
    return calls


def torn_most(ruby, mode, samples):
    """How many torn stacks there may be: 1.44 of a thousand, as measured (doc/experiments.md), and what chance adds to that."""
    return poisson_most(samples * 1.44 / 1000 if mode == "unpaused" and ruby.series < (3, 0) else 0)


class Judge:
    """Counts samples, and what is wrong with those that have a name."""

    def __init__(self):
        self.calls = calling_lines()
        self.samples = self.named = self.of_generations = 0
        self.marks = collections.Counter()  # of samples without names
        self.wrong = collections.Counter()

    def judge(self, profile, generations, apart=0):
        """
        Adds a recording. generations: what the target told at its end, [(number, ended)], in ns of CLOCK_REALTIME. apart: how long
        a stack may stand for the time after it was copied, in ns. An estimated stack is of another moment, and says so.
        """
        self.ended = dict(generations)
        self.apart = apart
        stacks = {}
        for one in profile.of(main=True):
            if one.state == "starting":
                continue
            self.samples += one.count
            if one.verdict != "complete":
                mark = next((frame["name"] for frame in one.frames if frame["kind"] == "mark"), one.verdict)
                self.marks[mark] += one.count
                continue
            self.named += one.count
            if id(one.frames) not in stacks:
                stacks[id(one.frames)] = self.of_stack(one.frames)
            number, why = stacks[id(one.frames)]
            if number is None:
                continue
            self.of_generations += one.count
            why = why or (None if one.estimated else self._of_time(profile, one, number))
            if why:
                self.wrong[why] += one.count

    def of_stack(self, frames):
        """The generation of a stack, and what is wrong with it; None if nothing is."""
        # A C function has the place of its caller.
        made = [i for i, frame in enumerate(frames) if frame["kind"] == "ruby" and PATH.fullmatch(frame["path"] or "")]
        if not made:
            return None, None
        told = {PATH.fullmatch(frames[index]["path"]).groups() for index in made}
        number, kind = told.pop()
        if told:
            return int(number), f"{kind} and {', '.join(sorted(other for _, other in told))} in one stack"
        for index in made:
            why = self._of_frame(frames[index], number, kind)
            if why:
                return int(number), why
        caller = frames[made[-1] + 1] if made[-1] + 1 < len(frames) else {"name": None}
        if caller["name"] == "Redefining#work" and self.calls.get(caller["line"]) != kind:
            return int(number), f"{kind} called from line {caller['line']}"
        return int(number), None

    @staticmethod
    def _of_frame(frame, number, kind):
        name = re.split(r"[#.]", re.sub(r"^(block|rescue|ensure)( \(\d+ levels\))? in ", "", frame["name"]))[-1]
        own = f"original_{number}" if kind == "aliased" else kind
        renamed = re.search(r"Renamed_(\d+)", frame["name"])
        if renamed and renamed[1] != number:
            return "a class of another generation"
        if name in (own, f"through_{kind}"):
            # Up to 3.0 a frame that has not begun has the line 0, which a recording does not show.
            lines = (5, 6) if name.startswith("through_") else (2, 3)
            return None if (frame["line"] or 0) in (0, *lines) else f"{kind}: {name} at line {frame['line']}"
        # The code that defines it.
        return None if name in (f"make_{kind}", "make_exchanged") else f"{kind}: {frame['name']}"

    def _of_time(self, profile, one, number):
        last = profile.start + one.end
        if number not in self.ended:
            return None
        if last > self.ended[number] + self.apart:
            return "seen after its time"
        if number - 1 in self.ended and last < self.ended[number - 1] - LATER_NS:
            return "seen before its time"
        return None
