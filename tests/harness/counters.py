"""What the kernel counts of each thread of a process, looked at again and again while it runs."""

import collections
import contextlib
import dataclasses
import itertools
import os
import pathlib
import threading
import time

from harness.process import schedstat, tasks

INTERVAL = 0.05
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Span:
    """A time in which a thread was there and had one name."""

    name: str
    begin: int  # as CLOCK_REALTIME has it
    end: int
    cpu: int  # of these ns, how many it was on a CPU
    waited: int  # and how many it waited for one
    cpu_by_stat: int  # the first again, in clock ticks: utime + stime of /proc/PID/task/TID/stat


@dataclasses.dataclass(frozen=True)
class Look:
    name: str
    before: int
    after: int
    cpu: int
    waited: int
    cpu_by_stat: int


class Counters:
    """
    Looks at `/proc/PID/task/TID/stat` and `schedstat` until told to stop; then has the spans of each thread, by its tid.
    What a thread did after the last look at it is in no span.

    id_of  what the tids are to be called
    """

    def __init__(self, pid, id_of=lambda tid: tid):
        self.folder = pathlib.Path(f"/proc/{pid}/task")
        self.pid, self.id_of = pid, id_of
        self.ids = {}
        self.looks = collections.defaultdict(list)
        self.gap = 0  # the longest time between two of its turns, in seconds
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def _watch(self):
        last = time.monotonic()
        while not self.over.wait(INTERVAL):
            now = time.monotonic()
            self.gap, last = max(self.gap, now - last), now
            for tid in tasks(self.pid):
                # It may end at any time.
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    self._look(tid)

    def _look(self, tid):
        if tid not in self.ids:
            self.ids[tid] = self.id_of(tid)
        before = time.time_ns()
        stat = (self.folder / str(tid) / "stat").read_text(errors="backslashreplace")
        counts = schedstat(self.pid, tid)
        after = time.time_ns()
        name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        by_stat = (int(fields[11]) + int(fields[12])) * TICK_NS
        self.looks[self.ids[tid]].append(Look(name, before, after, counts.ran, counts.waited, by_stat))

    def spans(self):
        """{id: spans, in order of time}."""
        return {tid: list(self._spans(looks)) for tid, looks in self.looks.items()}

    @staticmethod
    def _spans(looks):
        for name, group in itertools.groupby(looks, key=lambda look: look.name):
            group = list(group)
            first, last = group[0], group[-1]
            # At any time within a look it may have become another thread (Rubies keep native threads for later ones).
            if len(group) > 1 and first.after < last.before:
                yield Span(
                    name, first.after, last.before, last.cpu - first.cpu, last.waited - first.waited,
                    last.cpu_by_stat - first.cpu_by_stat,
                )  # fmt: skip
