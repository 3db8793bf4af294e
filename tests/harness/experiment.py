"""Experiments (rbdump experiment) on the target whose every legal call is known, targets/graph/graph.rb; and their reports."""

import json
import subprocess

from harness.target import TARGETS

GRAPH = TARGETS / "graph/graph.rb"


class Graph:
    """A running target: for ever, or so many rounds if they are given."""

    def __init__(self, ruby, variant, folder, rounds=None, flags=()):
        self.folder = folder
        self.oracle = folder / "oracle.json"
        command = [ruby.path, *flags, "--disable-gems", GRAPH, variant, "1", folder]
        self.command = [str(word) for word in command + ([] if rounds is None else [rounds])]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.supported = self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self.process.stdin.close()
        self.process.stdout.close()


def reported(rbdump, graph, *arguments, timeout=300):
    """
    The table, the report and the torn log's lines of an experiment. On a busy machine a thread may not stop in time. That says
    nothing of its stack, and ends a block of samples: then the experiment is made again, at most twice.
    """
    report, log = graph.folder / "report.json", graph.folder / "torn.log"
    command = [rbdump, "experiment", "-p", graph.pid, "--oracle", graph.oracle, "--json", report, "--torn-log", log, *arguments]
    for _ in range(3):
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=timeout, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
        answer = json.loads(report.read_text())
        if not any("not-stopped" in mode["rejected"] for mode in answer["modes"]):
            break
    return done.stdout, answer, [json.loads(line) for line in log.read_text().splitlines()]


def experiment(rbdump, graph, *arguments):
    """The same report, its modes by their names, and the lines; torn samples are stepped out of their windows."""
    _, answer, lines = reported(rbdump, graph, "--on-torn", "step", *arguments)
    return answer, {mode["mode"]: mode for mode in answer["modes"]}, lines


def summary(mode):
    return {key: mode[key] for key in ("mode", "samples", "accepted", "rejected", "impossible", "impossible_kinds")}
