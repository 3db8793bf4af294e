"""Runs rbdump experiment on targets of known calls and on rubocop, and writes the results into doc/experiments.md and
doc/experiments/tables.md.

    make experiments                                  the parts that take minutes: churn, variants, cost
    python3 bench/experiments.py --parts rubocop,long those that take half an hour and more; kernel takes a quarter of an hour
    python3 bench/experiments.py --rubies 2.7,3.4 …   only on some
    python3 bench/experiments.py --draw               no run: pages and pictures again, from the reports in the tree

The parts:
    churn     20,000 samples of each mode under tight churn, the worst case there is; with YJIT, too
    variants  10,000 samples of some modes on each other variant of the target (tests/targets/graph/graph.rb); on 3.1
              with YJIT, too
    cost      each mode at 100 and at 1,000 Hz, and how far the target got meanwhile
    rubocop   15,000 samples of each mode at 100 Hz of Debian's rubocop at work on its own sources; with YJIT, too
    long      1,000,000 samples of paused and of unpaused under tight churn
    kernel    1,000,000 samples of kernel under tight churn; on Debian's Ruby and with YJIT, too, except that of 3.1

The reports go to doc/experiments/PART-RUBY.json, the pictures beside them as SVG.
"""

import argparse
import collections
import functools
import json
import subprocess
import sys
import tempfile

import experiment_page
import experiment_pictures
from experiment_reports import FOLDER, TREE, folded

sys.path.insert(0, str(TREE / "tests"))

from harness.rubies import find_rubies  # noqa: E402

GRAPH = TREE / "tests/targets/graph/graph.rb"
RUBOCOP = TREE / "bench/apps/rubocop.rb"
# What it looks at: its own sources, some 700 files.
RUBOCOP_SOURCES = "/usr/share/rubygems-integration/all/gems/rubocop-1.39.0/lib"
PARTS = ["churn", "variants", "cost", "rubocop", "long", "kernel"]
VARIANTS = ["deep", "blocks", "exceptions", "fibers", "tailcalls", "threads", "ractors", "gc"]
TIMEOUT = 3 * 3600
# Names of methods that a report in the tree keeps, the most frequent first.
LEAVES_KEPT = 200


class Unsupported(Exception):
    """This Ruby has no such thing."""


def measure(command, arguments, folder):
    """One experiment on a target that says "ready" and ends with its standard input: its report."""
    target = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = target.stdout.readline()
        if said == "unsupported\n":
            raise Unsupported
        if said != "ready\n":
            sys.exit(f"{command}: the target did not start")
        subprocess.run(
            [TREE / "build/rbdump", "experiment", "-p", str(target.pid), "--on-torn", "step", "--json",
             f"{folder}/report.json", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=TIMEOUT,
        )
        with open(f"{folder}/report.json", encoding="utf-8") as file:
            return json.load(file)
    finally:
        target.stdin.close()
        target.wait(60)


def measure_graph(ruby, flags, variant, arguments):
    with tempfile.TemporaryDirectory() as folder:
        command = [ruby.path, *flags, "--disable-gems", GRAPH, variant, "1", folder]
        known = ["--oracle", f"{folder}/oracle.json"]
        if variant not in ("threads", "ractors"):
            known += ["--progress", f"{folder}/progress"]
        return measure(command, [*known, *arguments], folder)


def measure_rubocop(ruby, flags, arguments):
    with tempfile.TemporaryDirectory() as folder:
        return measure([ruby.path, *flags, "-W0", RUBOCOP, RUBOCOP_SOURCES], arguments, folder)


@functools.cache
def revision():
    """Of the sources that measure: before the first report changes the tree."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=True).stdout.strip()


def keep(name, report, shares=True):
    """Writes a report into the tree, without what only this run had."""
    del report["pid"]
    report["tool"] += f" ({revision()})"
    # Names that were gone when they were read are no matter of where the thread was.
    gone = ("collected", "compacted")
    report["where"] = [place for place in report["where"] if place["mode"] == "paused-naive" or place["reason"] not in gone]
    for place in report["where"]:
        if place["file"]:
            place["file"] = place["file"].rsplit("/", 1)[-1]
    total = collections.Counter()
    for mode in report["modes"]:
        total.update(mode["leaves"])
    # The same ones of every mode: what is cut off must not differ.
    kept = {name for name, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))[:LEAVES_KEPT]}
    for mode in report["modes"]:
        mode["leaves"] = folded(mode["leaves"], kept)
        if not shares:
            del mode["leaves"], mode["depths"]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    print(name, flush=True)


def run(part, ruby):
    series = "{}.{}".format(*ruby.series)
    with_yjit = [("", [])] + ([("-yjit", ["--yjit"])] if ruby.has_yjit else [])
    if part == "churn":
        for suffix, flags in with_yjit:
            keep(f"churn-{series}{suffix}", measure_graph(ruby, flags, "churn", ["-r", "5000", "-n", "20000"]))
    elif part == "variants":
        arguments = ["-m", "unpaused-once,unpaused,paused-naive,paused,kernel", "-r", "5000", "-n", "10000"]
        # Of the JITs, only that of 3.1 publishes frames before they are whole.
        for suffix, flags in with_yjit[: 2 if ruby.series == (3, 1) else 1]:
            for variant in VARIANTS:
                try:
                    report = measure_graph(ruby, flags, variant, arguments)
                    keep(f"variants-{series}{suffix}-{variant}", report, shares=False)
                except Unsupported:
                    continue
    elif part == "cost":
        for rate, samples in ((100, 800), (1000, 8000)):
            keep(f"cost-{rate}-{series}", measure_graph(ruby, [], "churn", ["-r", str(rate), "-n", str(samples)]))
    elif part == "rubocop":
        arguments = ["-m", "unpaused-naive,unpaused,paused-naive,paused,kernel", "-r", "100", "-n", "15000"]
        for suffix, flags in with_yjit:
            keep(f"rubocop-{series}{suffix}", measure_rubocop(ruby, flags, arguments))
    elif part == "kernel":
        arguments = ["-m", "kernel", "-r", "10000", "-n", "1000000"]
        name = series if ruby.has_debug else ruby.id
        for suffix, flags in with_yjit[: 1 if ruby.series == (3, 1) else 2]:
            keep(f"kernel-{name}{suffix}", measure_graph(ruby, flags, "churn", arguments), shares=False)
    else:
        arguments = ["-m", "paused,unpaused", "-r", "20000", "-n", "1000000"]
        keep(f"long-{series}", measure_graph(ruby, [], "churn", arguments))


def choice(allowed):
    def parse(text):
        chosen = text.split(",")
        for word in chosen:
            if allowed and word not in allowed:
                raise argparse.ArgumentTypeError(f"{word} is none of {', '.join(allowed)}")
        return chosen

    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=choice(PARTS), default=["churn", "variants", "cost"])
    parser.add_argument("--rubies", type=choice([]))
    parser.add_argument("--draw", action="store_true")
    arguments = parser.parse_args()
    if not arguments.draw:
        for part in arguments.parts:
            for ruby in find_rubies():
                if (ruby.has_debug or part == "kernel") and (not arguments.rubies or ruby.id in arguments.rubies):
                    run(part, ruby)
    experiment_pictures.draw()
    experiment_page.write()


if __name__ == "__main__":
    main()
