"""Flame graphs of a heap: rbdump heap -f collapsed and -f flamegraph, against the counts, the tree of dominators, and the program."""

import collections
import json
import re

import pytest
from conftest import note_not_applicable
from harness.core import gcore_of
from harness.dump import run
from harness.heap import Objects, build, heap, leaking
from harness.page import Page

USAGE = 64


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return build(tmp_path_factory.mktemp("extension"))


def stacks(rbdump, *arguments):
    """Of each stack of frames, the bytes."""
    done = run(rbdump, "heap", "-f", "collapsed", *arguments)
    assert done.returncode == 0, done.stderr
    found = collections.Counter()
    for line in done.stdout.splitlines():
        frames, _, weight = line.rpartition(" ")
        found[tuple(frames.split(";"))] += int(weight)
    return found


def escaped(name):
    return name.replace(";", ":")


@pytest.mark.three_rubies
def test_ages_types_and_classes(ruby, rbdump, extension, tmp_path):
    with Objects(ruby, extension) as truth, gcore_of(truth.pid, tmp_path) as core:
        counts = heap(rbdump, "--core", core)
        found = stacks(rbdump, "--core", core)
    assert {stack[0] for stack in found} <= {"old", "young", "dead"} and any(stack[1:] == ("T_STRING", "String") for stack in found)
    of_types, of_classes, of_ages = (collections.Counter() for _ in range(3))
    for (age, kind, klass), weight in found.items():
        of_types[kind] += weight
        of_classes[(klass, kind)] += weight
        of_ages[age] += weight
    rows = {(escaped(row["class"]), row["type"]): row for row in counts["classes"]}
    assert of_classes == {key: row["slot_bytes"] + row["owned_bytes"] for key, row in rows.items()}
    # Ruby's own sizes, and as many old objects as the counts say.
    sizes = collections.Counter()
    for one in truth.objects:
        sizes[one.type] += one.size
    known = {kind for kind in sizes if not any(row["owned_unknown"] for row in counts["classes"] if row["type"] == kind)}
    if truth.series < (2, 5):
        note_not_applicable("the sizes of internal Arrays on Ruby up to 2.4, which tells how many share them")
        known.remove("T_ARRAY")
    assert len(known) > 8 and {kind: of_types[kind] for kind in known} == {kind: sizes[kind] for kind in known}
    assert (of_ages["old"] > 0) == any(row["old"] for row in counts["classes"])
    assert (of_ages["dead"] > 0) == (counts["dead"] > 0)


@pytest.mark.three_rubies
def test_dominators(ruby, rbdump, extension, tmp_path):
    """The bytes of all stacks that begin with a frame are what its objects retain."""
    with leaking(ruby, extension, rbdump, tmp_path) as (program, _), gcore_of(program.pid, tmp_path) as core:
        found = stacks(rbdump, "--core", core, "--dominators")
        tree = json.loads(run(rbdump, "heap", "--core", core, "--dominators", "--json").stdout)
    assert sum(found.values()) == tree["bytes"]
    leaks = {name: sum(weight for stack, weight in found.items() if name in stack) for name in ("InCache", "InThread", "InClosure")}
    # Slots of 40 bytes or more; an object that a stack keeps, too, has no frame of its own.
    assert all(1_998 * 40 <= weight < 2_000 * 400 for weight in leaks.values()), leaks
    assert any(stack[-2:] == ("Hash", "InCache") for stack in found)
    # A class that keeps much has a frame of its own, which is as wide as what it retains.
    classes = [row for row in tree["rows"] if "text" in row and row["type"] in ("T_CLASS", "T_MODULE")]
    assert classes or ruby.series < (2, 5)
    for row in classes:
        name = escaped(re.sub(" 0x[0-9a-f]+$", "", row["text"]))
        assert sum(weight for stack, weight in found.items() if stack[0] == name) == row["retained"], row
    # A linked list has one frame, and no stack is deep.
    assert all(len(stack) < 60 for stack in found)


@pytest.mark.any_ruby
def test_page(ruby, rbdump, extension, chromium, tmp_path):
    pages = {}
    with leaking(ruby, extension, rbdump, tmp_path) as (program, _), gcore_of(program.pid, tmp_path) as core:
        for name, more in (("counts", []), ("dominators", ["--dominators"])):
            pages[name] = tmp_path / f"{name}.html"
            done = run(rbdump, "heap", "--core", core, *more, "-f", "flamegraph", "-o", pages[name])
            assert (done.returncode, done.stdout) == (0, ""), done.stderr
        found = stacks(rbdump, "--core", core)
        kept = stacks(rbdump, "--core", core, "--dominators")
        pid = program.pid
    page = Page(chromium, pages["counts"])
    assert page.browser.text("#title") == f"the core of process {pid}memory by age, type and class"
    assert "objects" in page.browser.text("#counts") and page.browser.text("#facts").endswith("core")
    ages = collections.Counter()
    for (age, *_), weight in found.items():
        ages[age] += weight
    largest = max(ages, key=ages.get)
    tip = page.at(0.001, 1)
    assert tip["name"] == largest and set(tip["numbers"]) == {"total", "self", "objects"}
    assert tip["numbers"]["total"][0].endswith(f"({100 * ages[largest] / sum(ages.values()):.1f} %)")
    assert set(tip["states"]) == {"slots", "outside"}
    assert page.search("InThread").endswith(" frame") or page.search("InThread").endswith(" frames")
    page.toggle("outside")
    assert page.at(0.001, 1)["states"]["outside (left out)"]
    assert page.browser.console() == []
    page = Page(chromium, pages["dominators"])
    assert page.browser.text("#title").endswith("memory that objects keep")
    outermost = collections.Counter()
    for (first, *_), weight in kept.items():
        outermost[first] += weight
    tip = page.at(0.001, 1)
    assert tip["name"] == max(outermost, key=outermost.get) and tip["place"].startswith("T_") and tip["states"] == {}
    assert tip["numbers"]["total"][0].endswith(f"({100 * outermost[tip['name']] / sum(kept.values()):.1f} %)")
    assert page.browser.console() == []


@pytest.mark.any_ruby
def test_refusals(rbdump, tmp_path):
    for arguments in (
        ("--why", "x", "-f", "flamegraph"),
        ("-f", "collapsed", "--json"),
        ("-f", "collapsed", "-f", "flamegraph"),
        ("-f", "collapsed", "--diff", "x"),
        ("-f", "collapsed", "--top", 3),
        ("--dominators", "-f", "collapsed", "--depth", 3),
        ("--dominators", "-f", "objspace"),
    ):
        wrong = run(rbdump, "heap", 1, *arguments)
        assert (wrong.returncode, wrong.stdout) == (USAGE, ""), arguments
