"""rbdump experiment: what it is asked and cannot do. It refuses in one sentence, or the report says what was not reached."""

import json
import os
import subprocess

import pytest
from harness.dump import run
from harness.experiment import Graph, experiment
from harness.process import is_untouched

FAILED, NOT_RUBY, USAGE = 2, 3, 64


def check_refusal(done, status, *words):
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("rbdump: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"schema_version": 2, "roots": [], "frames": {}}', '{"schema_version": 1, "roots": 3}',
        '{"schema_version": 1, "roots": ["a"], "frames": {"a": 3}}',
        '{"schema_version": 1, "roots": ["a"], "frames": {"a": {"lines": ["x", {}]}}}',
        '{"schema_version": 1, "roots": ["a"], "frames": {"a": {"calls": {"1": "b"}}}}', "[" * 100000,
    ],
)  # fmt: skip
def test_bad_oracle(rbdump, tmp_path, text):
    oracle = tmp_path / "oracle.json"
    oracle.write_text(text)
    check_refusal(run(rbdump, "experiment", "-p", os.getpid(), "--oracle", oracle), FAILED, "oracle.json")


def test_no_oracle_file(rbdump, tmp_path):
    check_refusal(run(rbdump, "experiment", "-p", os.getpid(), "--oracle", tmp_path / "none"), FAILED, "No such file")


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["-p", "1", "--", "true"], ["-p", "x"], ["-p", "1", "-r", "0"], ["-p", "1", "-r", "-5"], ["-p", "1", "-r", "nan"],
        ["-p", "1", "-r", "1e9"], ["-p", "1", "-r", "1e-300"], ["-p", "1", "-n", "0"], ["-p", "1", "-n", "1.5"], ["-p", "1", "-d", "0"],
        ["-p", "1", "-n", "5", "-d", "5"], ["-p", "1", "-m", "none"], ["-p", "1", "-m", ""], ["-p", "1", "--on-torn", "x"],
        ["-p", "1", "--seed", "0"], ["-p", "1", "--budget", "0"], ["-p", "1", "--no-such"], ["-p"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_usage(rbdump, arguments):
    check_refusal(run(rbdump, "experiment", *arguments), USAGE)


def test_outputs_that_cannot_be_written(ruby, rbdump, tmp_path):
    """Where the report is to go is known to be wrong before anything is done; a full torn log costs only itself."""
    report = tmp_path / "report.json"
    with Graph(ruby, "churn", tmp_path) as graph:
        no_folder = tmp_path / "none/report.json"
        check_refusal(run(rbdump, "experiment", "-p", graph.pid, "--json", no_folder), FAILED, "none/report.json")
        for _ in range(3):
            done = run(
                rbdump, "experiment", "-p", graph.pid, "-n", 50, "-r", 1000, "-m", "unpaused-naive,paused-naive",
                "--oracle", tmp_path / "oracle.json", "--json", report, "--torn-log", "/dev/full",
            )  # fmt: skip
            assert is_untouched(graph.pid)
            modes = {mode["mode"]: mode for mode in json.loads(report.read_text())["modes"]}
            # On a busy machine a thread may not stop in time, which ends a block of samples.
            if "not-stopped" not in modes["paused-naive"]["rejected"]:
                break
    assert modes["paused-naive"]["samples"] == 50
    assert "paused-naive" in done.stdout
    if any(mode["impossible"]["count"] or mode["rejected"] for mode in modes.values()):
        assert (done.returncode, "torn log" in done.stderr) == (FAILED, True)


def test_no_progress_file(ruby, rbdump, tmp_path):
    with Graph(ruby, "churn", tmp_path) as graph:
        missing = tmp_path / "none"
        check_refusal(run(rbdump, "experiment", "-p", graph.pid, "--progress", missing), FAILED, "none", "No such file")
        assert is_untouched(graph.pid)


def test_no_such_command(rbdump):
    check_refusal(run(rbdump, "experiment", "--", "/no/such/program"), FAILED, "/no/such/program")


def test_no_ruby(rbdump):
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            check_refusal(run(rbdump, "experiment", "-p", sleeper.pid), NOT_RUBY, str(sleeper.pid))
        finally:
            sleeper.kill()


@pytest.mark.any_ruby
def test_rate_that_cannot_be_held(ruby, rbdump, tmp_path):
    with Graph(ruby, "churn", tmp_path) as graph:
        _, modes, _ = experiment(rbdump, graph, "-m", "paused", "-r", 1000000, "-n", 2000)
    assert modes["paused"]["achieved_rate"] < 100000
    assert modes["paused"]["late"] > 1000
