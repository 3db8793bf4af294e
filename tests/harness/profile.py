"""A profile that never was: what tests/probes/formats.c is told, and what who reads it must then find."""

import collections
import dataclasses
import json
import random
import subprocess

from harness.symbolize import SECONDS, probe_path

STATES = ["cpu", "gc", "gvl", "blocked", "sleeping", "starting"]
SYSCALLS = {0: "read", 232: "epoll_wait", 12345: "syscall 12345", -1: None}
NO_STACK = "(no stack)"

# What a program can call its methods, threads and files, if it means harm, or is just strange.
HOSTILE = [
    'say "hi" \\ \\n \\u0041',
    "two\nlines\r\n",
    "</script><script>alert(1)</script>",
    "Foo#bar (in baz) (1)",
    "(1) one",
    "fn=(2) two",
    "calls=1 2\n3 4 5",
    "100 200 300",
    "🦀 naïve café \u2028\u2029\u0085 \ufeff",
    "tab\there\x01\x1f\x7f",
    "   ",
    "  spaces  ",
    "%s%n%p $(id) `id` ';--",
    '{"json": [1]}',
    "long" * 5000,
]


@dataclasses.dataclass(frozen=True)
class Function:
    kind: str
    name: str
    label: str
    path: str | None
    first_line: int


@dataclasses.dataclass(frozen=True)
class Span:
    thread: int
    start_ns: int
    weight_ns: int
    count: int
    state: str
    syscall: int
    stack: tuple  # (function's index, line), the outermost first

    @property
    def end_ns(self):
        return self.start_ns + self.weight_ns


FUNCTIONS = [
    Function("ruby", "Shop#open", "open", "shop.rb", 50),
    Function("ruby", "Order#total", "total", "/app/order.rb", 8),
    Function("ruby", "Tree#walk", "walk", "/app/tree.rb", 3),
    Function("ruby", "block in Tree#walk", "block in walk", "/app/tree.rb", 4),
    # Two blocks of one method have one name.
    Function("ruby", "block in Order#total", "block in total", "/app/order.rb", 10),
    Function("ruby", "block in Order#total", "block in total", "/app/order.rb", 20),
    Function("cfunc", "Array#each", "each", None, 0),
    Function("cfunc", "Kernel#sleep", "sleep", None, 0),
    Function("ruby", "eval'd", "eval'd", "(eval at shop.rb:1)", 1),
    Function("mark", "(torn: call)", "(torn: call)", None, 0),
    Function("mark", "(truncated)", "(truncated)", None, 0),
    *[Function("ruby", name, f"of {name}", f"/hostile/{name}", 7) for name in HOSTILE],
    Function("cfunc", 'C"s\n', 'C"s\n', None, 0),
]
INDEX = {function.name: i for i, function in enumerate(FUNCTIONS)}
NO_FUNCTION = Function("mark", NO_STACK, NO_STACK, None, 0)


def stacks(rng):
    """Stacks: the plain, the recursive, the deep, and those of strange names."""
    walk, block, each = (INDEX[name] for name in ["Tree#walk", "block in Tree#walk", "Array#each"])
    top = (INDEX["Shop#open"], 52)
    level = [(walk, 5), (each, 5), (block, 4)]
    made = [
        (top,),
        (top, (INDEX["Order#total"], 9)),
        (top, (INDEX["Order#total"], 10), (INDEX["Order#total"], 9)),
        (top, (4, 11), (5, 21), (4, 12)),
        (top, *level),
        (top, *level, (walk, 6)),
        (top, *level * 3),
        (top, *level * 2, (INDEX["Kernel#sleep"], 4)),
        (top, *level * 400, (INDEX["(truncated)"], 0)),
        ((walk, 5), top, (walk, 0)),
        ((INDEX["(torn: call)"], 0),),
        (top, (INDEX["eval'd"], 1)),
        (),
    ]
    strange = [INDEX[name] for name in HOSTILE] + [INDEX['C"s\n']]
    made += [((function, 8), (rng.choice(strange), 9), (function, 8)) for function in strange]
    return made


class Profile:
    """Two processes, and threads of which some are alike in name; always the same."""

    start_s, start_ns = 1700000000, 123456789
    rate, mode, tool, title = 100, "unpaused", "rbdump 9.9.9", 'shop "1" </script>'
    processes = [("ruby", 100, False), ('evil "\n</script>', 200, True)]
    threads = [  # process, number, name, main
        (0, 100, None, True),
        (0, 101, 'worker "1"\n</script>', False),
        (0, 0, None, False),
        (1, 200, None, True),
        (1, 201, "worker (2) 🦀", False),
        (1, 202, "worker (2) 🦀", False),
        (1, 203, "never seen", False),
    ]
    by = "wall"

    def __init__(self, seed=1, spans_a_thread=150):
        self.spans = []
        rng = random.Random(seed)
        pool = stacks(rng)
        for thread in range(len(self.threads) - 1):
            now = rng.randrange(10_000_000)
            for _ in range(spans_a_thread):
                stack = rng.choice(pool[:13] if rng.random() < 0.6 else pool)
                state = rng.choice(STATES)
                syscall = rng.choice(list(SYSCALLS)) if state == "blocked" else -1
                span = Span(thread, now, rng.randrange(1, 5_000_000), rng.randrange(1, 6), state, syscall, stack)
                self.spans.append(span)
                now = span.end_ns + rng.choice([0, 0, 0, 0, 0, 0, 1, rng.randrange(1_000_000)])
        self.spans.sort(key=lambda span: span.start_ns)
        self.duration_ns = max(span.end_ns for span in self.spans) + 5

    def write(self, path, form, *options):
        """Has it written in a format by rbdump's own code."""
        told = {
            "title": self.title,
            "start_s": self.start_s,
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "rate": self.rate,
            "mode": self.mode,
            "tool": self.tool,
            "cut": True,
            "processes": [
                {"command": command, "pid": pid, "begin_ns": 0, "end_ns": self.duration_ns, "ended": ended}
                for command, pid, ended in self.processes
            ],
            "threads": [
                {"process": process, "tid": tid, "name": name, "main": main}
                for process, tid, name, main in self.threads
            ],
            "functions": [dataclasses.asdict(function) for function in FUNCTIONS],
            "spans": [dataclasses.asdict(span) for span in self.spans],
        }
        with open(path, "wb") as stream:
            command = [probe_path("formats"), form, self.by, *options]
            subprocess.run(command, input=json.dumps(told).encode(), stdout=stream, timeout=SECONDS, check=True)
        return path

    def thread_name(self, index):
        _, tid, name, main = self.threads[index]
        return name or ("main" if main else f"thread {tid}" if tid else "thread")

    def of_thread(self, index):
        return [span for span in self.spans if span.thread == index]

    def seen_threads(self):
        return sorted({span.thread for span in self.spans})

    def weights(self, spans, key):
        """What frames weigh themselves, and with what they call: {key(function, line): [self, total]}."""
        found = collections.defaultdict(lambda: [0, 0])
        for span in spans:
            frames = [key(FUNCTIONS[function], line) for function, line in span.stack] or [key(NO_FUNCTION, 0)]
            found[frames[-1]][0] += span.weight_ns
            for frame in set(frames):
                found[frame][1] += span.weight_ns
        return dict(found)
