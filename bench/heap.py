#!/usr/bin/python3
"""What rbdump heap takes: time, the pause with --stop, and memory, as the heap grows; and what Ruby's own dump_all takes.

bench/heap.py [--ruby ID] [--millions N]…: N million objects each (default: 1, 2.5, 10 and 40): eight in ten have an instance
variable, the others are short Strings, long Strings and Hashes. Three runs of each, by turns; the medians are printed.

bench/heap.py --looks N: N looks at a Rails application that answers requests, in blocks of 50; after each block, the same time
without looks. Prints how long the requests took in both; a request that fails ends it.

bench/heap.py --clock N: N looks at a program with a million objects that reads its clock again and again; after each look, as
long looks at another such program, which waits, and as long none. Prints how often the first program did not run for more
than a millisecond in each case, and for how long. The first program is bound to a CPU, and the looks at the other one to the
other CPUs, where rbdump itself goes for the first. So these show what the machine does when its other CPUs have as much to do:
the host of a virtual machine may then give it less time."""

import argparse
import json
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from applications import APPLICATIONS  # noqa: E402
from harness.rubies import find_rubies  # noqa: E402
from measure import percentile  # noqa: E402

RBDUMP = os.environ.get("RBDUMP", ROOT / "build/rbdump")
RUNS = 3
TARGET = """
begin
  require "objspace"
rescue LoadError
end
class Node
  def initialize(number) = @number = number
end
count = Integer(ARGV[0]) / 20
KEPT = Array.new(count) do |i|
  [Node.new(i), Array.new(15) { |j| Node.new(j) }, "short #{i}", "a long string, which is not in its slot: #{i} " * 2, {i => i}]
end
GC.start
$stdout.sync = true
puts "ready"
while $stdin.gets
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  File.open(File::NULL, "w") { |file| ObjectSpace.dump_all(output: file) } if ObjectSpace.respond_to?(:dump_all)
  puts ObjectSpace.respond_to?(:dump_all) ? Process.clock_gettime(Process::CLOCK_MONOTONIC) - began : "-"
end
"""


class Target:
    def __init__(self, ruby, objects):
        self.process = subprocess.Popen(
            [ruby.path, "--disable-gems", "-e", TARGET, str(objects)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def dump_all(self):
        """Seconds; None if this Ruby has no objspace."""
        self.process.stdin.write("dump\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        return None if said == "-" else float(said)


def timed(pid, *arguments, cpus=None):
    """(output, seconds, MB of memory) of one run, which goes to some CPUs once it has begun."""
    began = time.monotonic()
    bind = ["taskset", "-c", ",".join(map(str, cpus))] if cpus else []
    with subprocess.Popen(
        [*bind, RBDUMP, "heap", *arguments, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        out = running.stdout.read()
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode != 0:
        sys.exit(f"heap: rbdump ended with {running.returncode}")
    return out, time.monotonic() - began, used.ru_maxrss / 1024


def heap(pid, *arguments):
    out, seconds, memory = timed(pid, "--json", *arguments)
    return json.loads(out), seconds, memory


def row(ruby, objects):
    unpaused, stopped, pauses, memory, dumps, dominators, more_memory = [], [], [], [], [], [], []
    with Target(ruby, objects) as target:
        for _ in range(RUNS):
            answer, seconds, used = heap(target.process.pid)
            unpaused.append(seconds)
            memory.append(used)
            answer, seconds, used = heap(target.process.pid, "--stop", "--max-pause", "4000")
            stopped.append(seconds)
            pauses.append(answer["pause_ms"])
            dumps.append(target.dump_all())
            seconds, used = timed(target.process.pid, "--dominators")[1:]
            dominators.append(seconds)
            more_memory.append(used)
    size = sum(pool["slots"] * pool["slot_size"] for pool in answer["pools"])
    owned = sum(one["owned_bytes"] for one in answer["classes"])
    own = "–" if dumps[0] is None else f"{statistics.median(dumps):.2f} s"
    return (
        f"| {answer['objects'] / 1e6:.1f} million | {size / 2**20:.0f} + {owned / 2**20:.0f} MiB | "
        f"{statistics.median(unpaused):.2f} s | {statistics.median(stopped):.2f} s | {statistics.median(pauses):.0f} ms | "
        f"{statistics.median(memory):.0f} MiB | {statistics.median(dominators):.1f} s | {statistics.median(more_memory):.0f} MiB | {own} |"
    )


def looks(count, rate=60):
    """Requests beside looks, and without any."""
    times = {"without looks": [], "with looks": []}
    done, doubts = 0, 0
    with tempfile.TemporaryDirectory() as folder, APPLICATIONS["rails"](folder, rate) as app:
        while done < count:
            began = time.monotonic()
            for _ in range(min(50, count - done)):
                doubts += bool(heap(app.pid)[0]["doubts"])
                done += 1
            middle = time.monotonic()
            time.sleep(middle - began)
            times["with looks"] += app.work(began, middle)
            times["without looks"] += app.work(middle, time.monotonic())
    print(f"{done} looks, {doubts} of them with a doubt; no request failed")
    print("| | requests | median | 90 % | 99 % | longest |")
    print("|---|---|---|---|---|---|")
    for name, took in times.items():
        print(f"| {name} | {len(took)} | " + " | ".join(f"{1000 * percentile(took, p):.1f} ms" for p in (0.5, 0.9, 0.99, 1)) + " |")


CLOCK = """
class Node
  def initialize(number) = @number = number
end
KEPT = Array.new(1_000_000) { |i| Node.new(i) }
GC.start
$stdout.sync = true
puts "ready"
$stdin.gets if ARGV[0] == "waits"
Thread.new { $stdin.gets; $stop = true }
gaps = []
last = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
until $stop
  now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  gaps << now << now - last if now - last > 1_000_000
  last = now
end
puts gaps.join(" ")
"""


def clock(ruby, count, arguments):
    """The gaps in a program's own clock, beside looks at it, beside looks at another program, and without any."""
    spans = {"looks at the program": [], "looks at another program": [], "without looks": []}
    first, *others = sorted(os.sched_getaffinity(0))
    command = [ruby.path, "--disable-gems", "-e", CLOCK]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "waits"], **pipes) as other, subprocess.Popen(command, **pipes) as program:
        for one in (other, program):
            assert one.stdout.readline() == "ready\n"
        subprocess.run(["taskset", "-a", "-p", "-c", str(first), str(program.pid)], check=True, stdout=subprocess.DEVNULL)
        for _ in range(count):
            times = [time.monotonic_ns()]
            timed(program.pid, *arguments)
            times.append(time.monotonic_ns())
            while time.monotonic_ns() - times[1] < times[1] - times[0]:
                timed(other.pid, *arguments, cpus=others)
            times.append(time.monotonic_ns())
            time.sleep((times[1] - times[0]) / 1e9)
            times.append(time.monotonic_ns())
            for name, span in zip(spans, zip(times, times[1:])):
                spans[name].append(span)
        numbers = [int(number) for number in program.communicate("stop\n")[0].split()]
        other.communicate("go on\nstop\n")
    gaps = list(zip(numbers[::2], numbers[1::2]))
    print("| | seconds | gaps of more than 1 ms | longest | together |")
    print("|---|---|---|---|---|")
    for name, of_name in spans.items():
        own = [gap / 1e6 for at, gap in gaps if any(begin <= at <= end for begin, end in of_name)]
        seconds = sum(end - begin for begin, end in of_name) / 1e9
        print(f"| {name} | {seconds:.1f} | {len(own)} | {max(own, default=0):.1f} ms | {sum(own):.0f} ms |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ruby", metavar="ID", help="default: the newest")
    parser.add_argument("--millions", type=float, action="append", metavar="N")
    parser.add_argument("--looks", type=int, metavar="N")
    parser.add_argument("--clock", type=int, metavar="N")
    parser.add_argument("--options", default="", help="of rbdump heap, for --clock: for example --options=--dominators")
    arguments = parser.parse_args()
    if arguments.looks:
        return looks(arguments.looks)
    rubies = [ruby for ruby in find_rubies() if arguments.ruby in (None, ruby.id)]
    if not rubies:
        sys.exit("heap: there is no such Ruby")
    ruby = max(rubies, key=lambda one: [int(number) for number in one.version.split(".")])
    if arguments.clock:
        return clock(ruby, arguments.clock, shlex.split(arguments.options))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(f"Ruby {ruby.version} ({ruby.id}); load {os.getloadavg()[0]:.2f}")
    print("| objects | slots + owned | rbdump heap | with --stop | stopped for | memory of rbdump | --dominators | its memory | ObjectSpace.dump_all |")
    print("|---|---|---|---|---|---|---|---|---|")
    for millions in arguments.millions or [1, 2.5, 10, 40]:
        print(row(ruby, int(millions * 1e6)), flush=True)
    return None


if __name__ == "__main__":
    main()
