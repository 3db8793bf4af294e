"""Profiles as the probe `flamegraph` takes them, and what must come of them: counted here once more, by hand."""

import dataclasses
import json
import subprocess

from harness.symbolize import BUILD

PROBE = BUILD / "tests" / "probes" / "flamegraph"
RUBY, C, MARK = 0, 1, 2
MS = 1_000_000


def frame(name, path=None, first_line=0, line=0, kind=RUBY):
    return [name, path, first_line, line, kind]


# The shop: what most tests look at.
MAIN = frame("<main>", "shop.rb", 1, 60)
TOTAL = frame("Order#total", "lib/order.rb", 8, 10)
SUM = frame("Array#sum", kind=C, line=10)
OPEN = frame("Order#open", "lib/order.rb", 20, 21)
READ = frame("IO#read", kind=C, line=21)
RUN = frame("Worker#run", "lib/worker.rb", 3, 4)
POP = frame("Thread::Queue#pop", kind=C, line=4)
TORN = frame("(torn: window)", kind=MARK)

SPANS = [
    (0, "cpu", 300, 3, MAIN, TOTAL, SUM),
    (0, "gc", 100, 1, MAIN, TOTAL),
    (0, "blocked", 180, 2, MAIN, OPEN, READ),
    (0, "cpu", 20, 1, MAIN, OPEN, TORN),
    (1, "sleeping", 280, 3, MAIN, RUN, POP),
    (1, "cpu", 120, 1, MAIN, RUN, TOTAL, TOTAL),
]
THREADS = ((0, None), (0, "worker"))


def profile(spans, threads=((0, None),), processes=("ruby",), **more):
    """A profile of (thread, state, milliseconds, samples, outermost frame, …)."""
    return {
        "processes": list(processes),
        "threads": [list(thread) for thread in threads],
        "counts": [9, 4, 3, 2, 1],
        "duration_ns": 2500 * MS,
        "rate": 99.5,
        "cut": False,
        "spans": [[thread, state, ms * MS, *rest] for thread, state, ms, *rest in spans],
        **more,
    }


def write_page(probe, path, after, before=None, **options):
    description = {"by": "wall", "title": "shop", "threads": False, "lines": False, **options}
    text = json.dumps({**description, "after": after, "before": before})
    done = subprocess.run([probe], input=text.encode(), stdout=subprocess.PIPE, check=True)
    path.write_bytes(done.stdout)
    return path


@dataclasses.dataclass
class Rectangle:
    """Where a frame must be, as parts of the width."""

    name: str
    depth: int
    left: float
    width: float


def milliseconds(spans, test):
    return sum(span[2] for span in spans if test(span))


def rectangles(spans, states=None, path=()):
    """Of all frames below `path` (names), the root being depth 0: siblings by weight of all states, the largest first,
    else as they come."""
    total = milliseconds(spans, lambda span: under(span, path) and counts(span, states))
    found = []

    def place(at, left):
        names = dict.fromkeys(span[4 + len(at)][0] for span in spans if under(span, at) and len(span) - 4 > len(at))
        order = sorted(names, key=lambda name: -milliseconds(spans, lambda span: under(span, (*at, name))))
        for name in order:
            inner = (*at, name)
            width = milliseconds(spans, lambda span, inner=inner: under(span, inner) and counts(span, states)) / total
            if width > 0:
                found.append(Rectangle(name, len(inner), left, width))
                place(inner, left)
                left += width

    place(tuple(path), 0.0)
    return found


def under(span, path):
    return tuple(frame[0] for frame in span[4 : 4 + len(path)]) == tuple(path)


def counts(span, states):
    return states is None or span[1] in states
