"""What targets/graph/graph.rb says of itself is true: dumps of it, judged here by the oracle's rule written anew."""

import json
import pathlib
import random
import subprocess

import pytest
from conftest import note_not_applicable
from harness.bounds import poisson_most
from harness.dump import run
from harness.process import is_untouched

GRAPH = pathlib.Path(__file__).parent / "targets/graph/graph.rb"
VARIANTS = ["churn", "deep", "blocks", "exceptions", "fibers", "tailcalls", "threads", "ractors", "gc"]
DUMPS, DUMPS_OF_SOAK = 10, 20
# On the oldest Ruby, experiments have all of them (test_experiment_verdicts.py), with many more stacks of each.
each_variant = pytest.mark.parametrize(
    "variant", ["churn", "deep", *(pytest.param(variant, marks=pytest.mark.newest_ruby) for variant in VARIANTS[2:])]
)


def judge(oracle, frames):
    """None if a stack (innermost frame first) is legal, else why it is not."""
    known = oracle["frames"]
    if not frames:
        return None if "" in oracle["roots"] else "no frame"
    unknown = [frame["name"] for frame in frames if frame["name"] not in known]
    if unknown:
        return f"unknown: {unknown}"
    if frames[-1]["name"] not in oracle["roots"]:
        return f"root: {frames[-1]['name']}"
    for callee, caller in zip(frames, frames[1:]):
        calls = known[caller["name"]].get("calls", {})
        anywhere = caller["kind"] != "ruby" or caller["line"] is None
        legal = [names for line, names in calls.items() if anywhere or line in ("*", str(caller["line"]))]
        if not any(callee["name"] in names for names in legal):
            return f"edge: {caller['name']}:{caller['line']} -> {callee['name']}"
    inner = frames[0]
    lines = known[inner["name"]].get("lines")
    if inner["kind"] == "ruby" and inner["line"] is not None and lines is not None and inner["line"] not in lines:
        return f"line: {inner['name']}:{inner['line']}"
    return None


def is_watcher(frame):
    return frame["path"] == str(GRAPH) and frame["label"].startswith("block")


def dumps(ruby, rbdump, folder, variant, count, *arguments):
    """The oracle, and the complete stacks of so many dumps; (None, None) where this Ruby does not have the variant."""
    if ruby.series < (2, 6):
        note_not_applicable(f"graph.rb on {ruby.id}: needs Ruby 2.6")
        return None, None
    with subprocess.Popen(
        [ruby.path, "--disable-gems", GRAPH, variant, "1", folder],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as target:  # fmt: skip
        try:
            if target.stdout.readline() != "ready\n":
                return None, None
            oracle = json.loads((folder / "oracle.json").read_text())
            stacks = []
            for _ in range(count):
                done = run(rbdump, "-p", target.pid, "--json", *arguments)
                assert done.returncode in (0, 1), done.stderr
                # The thread that waits for standard input to end is not in the graph.
                stacks += [
                    thread["frames"]
                    for thread in json.loads(done.stdout)["threads"]
                    if thread["verdict"] == "complete" and not any(is_watcher(frame) for frame in thread["frames"])
                ]
            assert is_untouched(target.pid)
            return oracle, stacks
        finally:
            target.kill()


@pytest.mark.outer_rubies
@each_variant
def test_dumps_are_legal(ruby, rbdump, tmp_path, variant, times):
    count = times(DUMPS, DUMPS_OF_SOAK)
    oracle, stacks = dumps(ruby, rbdump, tmp_path, variant, count)
    if oracle is None:
        assert ruby.series < (2, 6) or (variant == "ractors" and ruby.series < (3, 0))
        return
    assert len(stacks) >= count / 2
    wrong = [why for why in (judge(oracle, stack) for stack in stacks) if why]
    assert not wrong, wrong
    inside = [stack for stack in stacks if any(frame["name"].startswith("Graph#m") for frame in stack)]
    if variant == "gc":  # mostly compacting, which is no place in the graph
        return
    assert len(inside) >= count / 2
    # Put together from two moments, most are seen to be wrong.
    odds = random.Random(1)
    seen = tried = 0
    for _ in range(200):
        below, above = odds.choice(inside), odds.choice(inside)
        cut = odds.randrange(1, min(len(below), len(above)))
        mixed = above[:-cut] + below[-cut:]
        if mixed not in stacks:
            tried += 1
            seen += judge(oracle, mixed) is not None
    assert seen >= 0.4 * tried > 0, (seen, tried)


@pytest.mark.outer_rubies
@each_variant
def test_unpaused_dumps_are_legal(ruby, rbdump, tmp_path, variant, times):
    """Without a stop: right, or marked. Not all are marked, but of targets that never stand still for as long as a look takes."""
    oracle, stacks = dumps(ruby, rbdump, tmp_path, variant, times(DUMPS, DUMPS_OF_SOAK), "--no-stop")
    if oracle is None:
        assert ruby.series < (2, 6) or (variant == "ractors" and ruby.series < (3, 0))
        return
    wrong = [why for why in (judge(oracle, stack) for stack in stacks) if why]
    # Before 2.7 what a caller calls is not read (call_site.h): a stack can be that of the call before. On 2.7, call sites do not
    # decide about all methods: of those with tail calls, at most 0.144 % of the stacks were wrong (doc/experiments.md: the
    # upper end of the interval).
    most = poisson_most(1.44e-3 * len(stacks)) if ruby.series < (3, 0) else 0
    assert len(wrong) <= most, wrong
    assert stacks or variant not in ("churn", "threads")
