"""What rbdump experiment tells of what it found: its table, its list of places, its files."""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import RUBIES
from harness.dump import run
from harness.experiment import Graph, reported
from harness.process import tracers_of, wait_until
from harness.synthetic import ROOT
from test_gdb_torn import CODE, gdb

sys.path.insert(0, str(ROOT / "bench"))

import experiment_page  # noqa: E402
import experiment_words  # noqa: E402

# A mode's line of the table: a share in percent with its interval.
SHARE = r"^  {}\s+([\d.e-]+)% \(([\d.e-]+)–([\d.e-]+)\)"


def is_shown(shown, share):
    """Whether a percentage tells a share: to three digits, or, of most of all, what it lacks to all to two."""
    off = abs(float(shown) / 100 - share)
    return off <= (0.006 * share if share < 0.5 else 0.055 * (1 - share)) + 1e-9


@pytest.mark.outer_rubies
def test_table_tells_shares(ruby, rbdump, tmp_path):
    """Its shares are those of the JSON, and what is not quite all is told from all."""
    with Graph(ruby, "churn", tmp_path) as graph:
        # Stopped again instead, it may be in a window each time, where others want its CPU.
        table, report, _ = reported(
            rbdump, graph, "-m", "unpaused-once,unpaused-double,paused", "-r", 5000, "-n", 3000, "--on-torn", "step"
        )
    (paused,) = [mode for mode in report["modes"] if mode["mode"] == "paused"]
    blocks = {block.split("\n")[0]: block for block in table.split("\n\n")}
    for mode in report["modes"]:
        for words, share in (
            ("accepted", mode["accepted_share"]), ("rejected", mode["rejected_share"]), ("impossible", mode["impossible"]),
        ):  # fmt: skip
            found = re.search(SHARE.format(words), blocks[mode["mode"]], re.M)
            assert found, (words, blocks[mode["mode"]])
            for shown, key in zip(found.groups(), ("value", "low", "high")):
                assert is_shown(shown, share[key]), (words, key, found.group(), share)
    rejected = sum(paused["rejected"].values())
    assert paused["accepted"] + rejected == 3000, paused["rejected"]
    # How many those are of which a collection began before the names of new code were read depends on the machine.
    assert paused["rejected"].keys() <= {"collected", "window"}, paused["rejected"]
    assert rejected or "accepted    100% (99.88–100)" in table


@pytest.mark.outer_rubies
def test_places_are_of_wrong_samples_only(ruby, rbdump, tmp_path, times):
    """Where a thread was stopped whose stack was accepted after some steps is in the log, not among those places."""
    with Graph(ruby, "churn", tmp_path) as graph:
        table, report, lines = reported(
            rbdump, graph, "-m", "paused-naive,paused", "-r", 20000, "-n", times(6_000, 10_000), "--on-torn", "step"
        )
    modes = {mode["mode"]: mode for mode in report["modes"]}
    stepped = [line for line in lines if line["reason"] == "stepped"]
    assert all(line["verdict"] == "complete" and line["steps"] > 0 and line["registers"] for line in stepped)
    assert len(stepped) <= modes["paused"]["steps"]["samples"]
    if ruby.has_debug and ruby.series < (3, 0):
        assert len(stepped) > 100
    wrong = [line for line in lines if line["reason"] != "stepped" and line["registers"]]
    assert sum(place["count"] for place in report["where"]) == len(wrong)
    for name in modes:
        places = [place for place in report["where"] if place["mode"] == name]
        assert sum(place["count"] for place in places) == len([line for line in wrong if line["mode"] == name])
        assert not places or abs(sum(place["share"] for place in places) - 1) < 1e-6
    assert "stepped  " not in table
    assert ("rejected and impossible samples were stopped" in table) == bool(wrong)


@pytest.mark.outer_rubies
@pytest.mark.parametrize("variant", ["blocks", "exceptions", "tailcalls"])
def test_checks_say_nothing_against_what_is_right(ruby, rbdump, tmp_path, variant, times):
    """
    Also where C functions call methods and blocks: legal stacks of a stopped thread, outside of any window. What is said
    against one of a thousand of them is seen in 98 of 100 runs of a variant on a Ruby.
    """
    samples = times(4_000, 10_000)
    with Graph(ruby, variant, tmp_path) as graph:
        _, report, lines = reported(rbdump, graph, "-m", "paused-naive", "-r", 10000, "-n", samples)
    (mode,) = report["modes"]
    legal = mode["checks"]["legal"]
    assert legal["accepted"] > samples / 2, legal
    assert legal["rejected"] == {}, legal
    assert (legal["call_site"]["innermost"]["contradicts"], legal["call_site"]["any"]["contradicts"]) == (0, 0), legal
    # What is known to have tail calls is no evidence.
    assert legal["call_site"]["innermost"]["agrees"] > 0 or variant == "tailcalls", legal


@pytest.mark.long
@pytest.mark.any_ruby
def test_seed_orders_the_blocks(ruby, rbdump, tmp_path):
    """
    By an oracle that nothing is legal by, each sample has a line: whose follow whose is the order of their blocks, of which
    each mode has two: one lasts 0.25 s.
    """
    names = ["unpaused-naive", "unpaused-once"]
    with Graph(ruby, "churn", tmp_path) as graph:
        graph.oracle.write_text(json.dumps({"schema_version": 1, "roots": [], "frames": {}}))

        def order(seed):
            _, _, lines = reported(rbdump, graph, "-m", ",".join(names), "-r", 1000, "-n", 500, "--seed", seed)
            assert len(lines) == 1000
            return [mode for mode, _ in itertools.groupby(line["mode"] for line in lines)]

        assert order(1) == order(1) != order(2)


@pytest.mark.parametrize("debugged", [ruby for ruby in RUBIES if ruby.has_debug][:1], ids=lambda ruby: ruby.id)
def test_gdb_shows_a_line_of_a_log(debugged, rbdump, tmp_path):
    """gdb-scripts/torn.py, given what rbdump has written: gdb's own name of that address is what the log has."""
    with Graph(debugged, "churn", tmp_path) as graph:
        graph.oracle.write_text(json.dumps({"schema_version": 1, "roots": [], "frames": {}}))
        _, _, lines = reported(rbdump, graph, "-m", "paused-naive", "-r", 1000, "-n", 50)
    inside = [number for number, line in enumerate(lines) if line["ip"]["inlined"] and line["ip"]["module"] == line["elf"]]
    assert len(inside) > 25
    for number in inside[:3]:
        at, line = lines[number]["ip"], lines[number]
        said, complaints = gdb(f"rb-torn {tmp_path / 'torn.log'} {number + 1}")
        assert complaints == ""
        assert f"sample {number + 1}: impossible, {line['oracle']}; mode paused-naive" in said
        assert f"in '{line['frames'][0]['label']}'" in said
        (arrow,) = [match for match in CODE.finditer(said) if match[1] == "=>"]
        assert int(arrow[2], 16) == int(at["module_address"], 16)
        # The name that debug info has: of x.constprop.0, a copy that the compiler has made of x, it is x.
        assert (arrow[3], int(arrow[4] or 0)) == (at["inlined"][-1]["function"], at["offset"])


@pytest.mark.long
@pytest.mark.any_ruby
def test_late_samples(ruby, rbdump, tmp_path):
    """One that rbdump has slept through by half a period is late, although it was done before the next one's turn."""
    command = ["experiment", "-m", "unpaused-naive", "-r", "10", "-n", "20", "--json", "-"]
    with Graph(ruby, "churn", tmp_path) as graph, subprocess.Popen(
        [rbdump, *command, "-p", str(graph.pid)], stdout=subprocess.PIPE, text=True
    ) as running:
        (worker,) = wait_until(lambda: tracers_of(running.pid), "it has begun its work", 10)
        with contextlib.suppress(ProcessLookupError):
            while running.poll() is None:
                os.kill(worker, signal.SIGSTOP)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(0.05)
                os.kill(worker, signal.SIGCONT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(0.005)
        (mode,) = json.loads(running.stdout.read())["modes"]
    assert mode["samples"] == 20
    assert 5 <= mode["late"] <= 20


@pytest.mark.parametrize("option", ["--json", "--torn-log"])
def test_no_command_is_started_for_nothing(rbdump, tmp_path, option):
    """What cannot be written is known before."""
    ran = tmp_path / "ran"
    done = run(rbdump, "experiment", option, tmp_path / "none/file", "--", "touch", ran)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none/file cannot be written: No such file or directory" in done.stderr
    assert not ran.exists()


def test_no_file_without_a_report(rbdump, tmp_path):
    """A process that is no Ruby leaves no empty report, and what was there is as it was."""
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            for before in (None, "older\n"):
                files = [tmp_path / "report.json", tmp_path / "torn.log"]
                if before:
                    for file in files:
                        file.write_text(before)
                done = run(rbdump, "experiment", "-p", sleeper.pid, "--json", files[0], "--torn-log", files[1])
                assert done.returncode == 3
                assert [file.read_text() if file.exists() else None for file in files] == [before, before]
        finally:
            sleeper.kill()


@pytest.mark.any_ruby
def test_pipes(ruby, rbdump, tmp_path):
    """Who reads from one has all of it, and once."""
    paths = [tmp_path / "report", tmp_path / "log"]
    for path in paths:
        os.mkfifo(path)
    with Graph(ruby, "churn", tmp_path) as graph, contextlib.ExitStack() as stack:
        readers = [stack.enter_context(subprocess.Popen(["cat", path], stdout=subprocess.PIPE, text=True)) for path in paths]
        done = run(
            rbdump, "experiment", "-p", graph.pid, "-m", "paused", "-n", 10, "--json", paths[0], "--torn-log", paths[1]
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(readers[0].stdout.read())["modes"][0]["samples"] == 10
        assert len([json.loads(line) for line in readers[1].stdout]) <= 10


# ---- doc/experiments.md, doc/experiments/tables.md


@pytest.mark.parametrize(
    "share, shown",
    [(0, "0"), (1, "100"), (0.1225, "12.2"), (0.0000369, "0.00369"), (0.5, "50.0"), (0.999, "99.90"), (0.9999631, "99.9963")],
)
def test_percentages(share, shown):
    assert experiment_words.near(share) == shown
    assert is_shown(experiment_words.near(share), share)


def test_lower_ends():
    """Against what Clopper and Pearson's have in closed form: all of n, and one of n."""
    for of in (1, 20, 132):
        assert experiment_words.at_least(of, of) == pytest.approx(0.025 ** (1 / of), abs=1e-9)
        assert experiment_words.at_least(1, of) == pytest.approx(1 - 0.975 ** (1 / of), abs=1e-9)
        assert experiment_words.at_least(0, of) == 0


def test_page_is_made_of_its_reports():
    """Each table and each sentence with figures is in one of the two pages, as the reports in the tree say."""
    pages = [path.read_text() for path in experiment_page.PAGES]
    made = experiment_page.made()
    for name, content in made.items():
        assert sum(content.join(experiment_page.marks(name)) in page for page in pages) == 1, name
    # And no place is left over that nothing is written to.
    places = {name for page in pages for name in re.findall(r"^<!-- (?!end )(.*) -->$", page, re.M)}
    assert places == {*made, "when"}


def test_answer_can_be_read_at_a_glance():
    """The answer and its figures are the first ten lines of a page that has no room for all tables, and links to them."""
    answer, tables = [path.read_text() for path in experiment_page.PAGES]
    lines = answer.splitlines()
    assert "<!-- end answer -->" in lines[:11] and len(lines) <= 170
    assert "](experiments/tables.md)" in answer and "](../experiments.md)" in tables
