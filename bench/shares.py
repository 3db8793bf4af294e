#!/usr/bin/env python3
"""
Whether what rbdump records is where an application spends its CPU time, by the word of other profilers.

    bench/shares.py [--apps rails,rubocop] [--modes paused,unpaused,kernel] [--seconds 20]
                    [--seconds-of-rates 60] [--json FILE]

- Methods: stackprof samples the application in the process (Debian's ruby-stackprof) while rbdump records it. For each method,
  the share of the samples that it was in is compared: of the CPU time, at 500 Hz, methods of more than 2 %.
- Functions: perf and rbdump (--native) record bench/apps/functions.rb together. For each function, the share of the samples
  of which it is the innermost one is compared. Its Ruby must have symbols, for perf ($RBDUMP_BENCH_RUBY, or the newest one
  that the tests have built).
- Modes and rates: rbdump records the application in each mode at 99 and 1,000 Hz, and in the mode kernel at 1,000 Hz at the
  same time. The shares of the methods in both are compared. With n samples, a share of 0.5 has a standard error of 0.5 / √n.

Exit status 1 if a share differs by more than 3 points.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from applications import APPLICATIONS, WARM, Rbdump, neighbours, running
from measure import BENCH, TREE, Failed

RATE, LEAST, MOST = 500, 0.02, 0.03
TIMEOUT = 60


def wait_for(path):
    deadline = time.monotonic() + TIMEOUT
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise Failed(f"{path} did not come")
        time.sleep(0.02)


def exported(options, recording, *more):
    command = [options.rbdump, "report", "-f", "json", *more, recording]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def frames_of(profile):
    """For each run of CPU time: its weight, and its functions, the innermost first."""
    stacks, frames, functions = profile["stacks"], profile["frames"], profile["functions"]
    for run in profile["runs"]:
        if run["state"] not in ("cpu", "gc") or run["stack"] is None:
            continue
        found, at = [], run["stack"]
        while at is not None:
            found.append(functions[frames[stacks[at]["frame"]]["function"]])
            at = stacks[at]["parent"]
        yield run["weight_ns"], run["state"], found


def method_of(function):
    """A block is part of its method, as for stackprof."""
    return re.sub(r"^((block( \(\d+ levels\))?|rescue|ensure) in )+(?!<)", "", function["name"])


def shares_of_methods(profile):
    """The share of the CPU time, without that of the garbage collector, in which each method was on the stack."""
    counts, total = collections.Counter(), 0
    for weight, state, functions in frames_of(profile):
        if state == "gc":
            continue
        total += weight
        for name in {method_of(function) for function in functions}:
            counts[name] += weight
    return {name: count / total for name, count in counts.items()}


def of_stackprof(path):
    found = json.loads(pathlib.Path(path).read_text())
    total = found["samples"] - found["gc"]
    return {name: counts[0] / total for name, counts in found["methods"].items() if not name.startswith("(")}


def differences(ours, theirs):
    """[(difference, name, our share, their share)] of each name that has more than LEAST in one of them."""
    names = {name for shares in (ours, theirs) for name, share in shares.items() if share > LEAST}
    return sorted(
        ((abs(ours.get(name, 0) - theirs.get(name, 0)), name, ours.get(name, 0), theirs.get(name, 0)) for name in names), reverse=True
    )


class Row:
    def __init__(self, title, compared):
        self.title, self.compared = title, compared
        self.worst = compared[0][0] if compared else 1.0

    def show(self):
        names = ", ".join(f"{name} {ours:.3f} / {theirs:.3f}" for _, name, ours, theirs in self.compared[:3])
        print(f"| {self.title} | {len(self.compared)} | {self.worst * 100:.2f} | {names} |", flush=True)


def recording_of(options, folder, app, rate, mode, seconds):
    """Records an application, and says what it did: see shares_of_methods()."""
    profiler = Rbdump(options, app, rate, mode, seconds)
    with running(profiler):
        profiler.end()
    return exported(options, profiler.file)


def methods(options, folder, name, mode):
    """What stackprof and rbdump find at the same time."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        path = os.path.join(own, "stackprof")
        os.environ |= {"STACKPROF": path, "RUBYOPT": f"-r{BENCH}/apps/stackprof.rb"}
        try:
            with APPLICATIONS[name](own, 0) as app:
                time.sleep(WARM)
                pathlib.Path(path + ".begin").touch()
                found = recording_of(options, own, app, RATE, mode, options.seconds)
                pathlib.Path(path + ".end").touch()
                wait_for(path)
        finally:
            del os.environ["STACKPROF"], os.environ["RUBYOPT"]
        return Row(f"{name}, {mode}: methods, beside stackprof", differences(shares_of_methods(found), of_stackprof(path)))


def rates(options, folder, name):
    """What rbdump finds in each mode at two rates, beside what it finds in the kernel at the same time."""
    with tempfile.TemporaryDirectory(dir=folder) as own, APPLICATIONS[name](own, 0) as app:
        time.sleep(WARM)
        for mode in options.modes:
            for rate in (99, 1000):
                with running(Rbdump(options, app, 1000, "kernel", options.seconds_of_rates, "reference")) as other:
                    found = shares_of_methods(recording_of(options, own, app, rate, mode, options.seconds_of_rates))
                    other.end()
                yield Row(f"{name}: {mode} {rate} Hz, beside kernel 1,000 Hz", differences(found, shares_of_methods(exported(options, other.file))))


def newest_ruby():
    given = os.environ.get("RBDUMP_BENCH_RUBY")
    built = pathlib.Path.home() / ".cache/rbdump/rubies/3.4/bin/ruby"
    if not given and not built.exists():
        raise Failed("no Ruby with symbols: set RBDUMP_BENCH_RUBY")
    return given or str(built)


def of_perf(data):
    """The share of each function as the innermost one. perf names user functions without their file."""
    text = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"], check=True, capture_output=True, text=True).stdout
    counts = collections.Counter(re.sub(r"(\+0x[0-9a-f]+|@@?GLIBC.*)$", "", line.split(maxsplit=1)[1]) for line in text.splitlines() if len(line.split()) > 1)
    return {name: count / counts.total() for name, count in counts.items() if name != "[unknown]"}


def functions(options, folder):
    data, recording = os.path.join(folder, "perf"), os.path.join(folder, "native")
    ruby = [newest_ruby(), "--disable-gems", BENCH / "apps/functions.rb"]
    with subprocess.Popen([str(word) for word in ruby], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        try:
            if target.stdout.readline() != "ready\n":
                raise Failed("functions.rb did not get ready")
            perf = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", RATE, "-p", target.pid, "-o", data, "--", "sleep", options.seconds]
            ours = [options.rbdump, "record", "-p", target.pid, "-r", RATE, "--mode", "kernel", "--native", "-d", options.seconds]
            environment = dict(os.environ, RBDUMP_OFFSETS_D=str(TREE / "offsets.d"), DEBUGINFOD_URLS="")
            with subprocess.Popen([str(word) for word in perf], stderr=subprocess.DEVNULL) as other:
                subprocess.run([str(word) for word in [*ours, "-o", recording]], env=environment, check=True, capture_output=True)
                other.wait(TIMEOUT)
        finally:
            target.kill()
    counts, total = collections.Counter(), 0
    for weight, _, found in frames_of(exported(options, recording)):
        total += weight
        # Where only Ruby code is shown, the interpreter runs it. Of a method in C that is just called, no function is shown.
        counts[found[0]["name"] if found[0]["kind"] != "ruby" else "vm_exec_core"] += weight
    ours, theirs = {name: count / total for name, count in counts.items()}, of_perf(data)
    # perf also finds names in debug files.
    both = ours.keys() & theirs.keys()
    return Row("functions.rb, kernel: functions, beside perf", differences(*({name: shares[name] for name in both} for shares in (ours, theirs))))


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--rbdump", default=str(TREE / "build/rbdump"))
    parser.add_argument("--apps", type=lambda text: text.split(","), default=["rails", "rubocop"])
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(Rbdump.MODES))
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--seconds-of-rates", type=int, default=60)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = []
    print("| compared | names | most, points | these differ most: rbdump / other |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="rbdump-shares-") as folder, neighbours(0):
        for name in options.apps:
            for mode in options.modes:
                rows.append(methods(options, folder, name, mode))
                rows[-1].show()
            for row in rates(options, folder, name):
                rows.append(row)
                row.show()
        rows.append(functions(options, folder))
        rows[-1].show()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps([{"title": row.title, "compared": row.compared} for row in rows], indent=1) + "\n")
    return any(row.worst > MOST for row in rows)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as problem:
        sys.exit(f"{sys.argv[0]}: {problem}")
