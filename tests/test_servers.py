"""Servers that people run, Debian's, with their workers: each thread of each process as Ruby itself tells."""

import json
import os
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import TESTS, note_not_applicable
from harness.dump import difference, rbdumps_frames, run
from harness.process import has_ended, is_untouched, schedstat, status, wait_until

FOLDER = TESTS / "targets/server"
WORKERS = 2
# How each is started.
SERVERS = {"puma": ["-C", FOLDER / "puma.rb"], "unicorn": ["-E", "deployment", "-c", FOLDER / "unicorn.rb"]}
MISSING = [name for name in SERVERS if not shutil.which(name)]

for name in MISSING:
    note_not_applicable(f"a server: {name} is not installed")


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(30)
    client.connect(str(path))
    return client


def ask(path, request=b""):
    """All that is answered."""
    with connect(path) as client:
        if request:
            client.sendall(request)
        with client.makefile("rb") as answer:
            return answer.read()


class Server:
    def __init__(self, name, folder):
        self.folder = folder
        self.clients = []
        # Some programs are not Ruby's own, but wrappers of a distribution that end in it.
        command = ["/usr/bin/ruby", "-r", FOLDER / "witness.rb", shutil.which(name), *SERVERS[name], FOLDER / "config.ru"]
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            command, cwd=folder, env=dict(os.environ, WITNESS=str(folder)), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )  # fmt: skip
        self.pid = self.process.pid

    def pids(self):
        """The server's own, and its workers'."""
        children = open(f"/proc/{self.pid}/task/{self.pid}/children").read().split()
        return [self.pid, *sorted(int(child) for child in children)]

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        return len(self.pids()) == 1 + WORKERS and all((self.folder / str(pid)).exists() for pid in self.pids()) and self.answers()

    def answers(self):
        try:
            return b"from " in ask(self.folder / "server.sock", b"GET / HTTP/1.0\r\n\r\n")
        except (ConnectionError, FileNotFoundError):
            return False

    def keep_waiting(self):
        """Sends a request that is never answered."""
        self.clients.append(connect(self.folder / "server.sock"))
        self.clients[-1].sendall(b"GET /wait HTTP/1.0\r\n\r\n")

    def testimony(self):
        """What Ruby says of the threads of each process, by its id."""
        return {pid: json.loads(ask(self.folder / str(pid))) for pid in self.pids()}

    def waiting(self):
        """How many threads wait in the application."""
        return sum(
            any(frame[3] == "wait_for_ever" for frame in thread["frames"]) for threads in self.testimony().values() for thread in threads
        )

    def __enter__(self):
        wait_until(self.is_ready, "the server is ready", 60)
        return self

    def __exit__(self, *_):
        pids = self.pids() if self.process.poll() is None else []
        for pid in reversed(pids):
            os.kill(pid, signal.SIGKILL)
        self.process.wait(30)
        for pid in pids:
            wait_until(lambda pid=pid: has_ended(pid), "it has ended")
        for client in self.clients:
            client.close()
        self.log.close()


def kernel_thread(pid, subject):
    """That of a thread in a testimony: 3.1 and 3.2 tell a forked process the thread id of its parent."""
    return pid if subject["main"] else subject["tid"]


def at_rest(testimony):
    """
    How often the threads in a testimony have been given a CPU, if all of them sleep; else None. Who sleeps now and then, and
    was given none meanwhile, has slept all the time.
    """
    threads = [(pid, kernel_thread(pid, subject)) for pid, subjects in testimony.items() for subject in subjects]
    switches = [schedstat(*thread).switches for thread in threads]
    return switches if all(status(pid, "State", task)[0] == "S" for pid, task in threads) else None


def complaints(answer, threads):
    """What of a process is not as Ruby tells."""
    wrong = []
    shown = [thread for thread in answer["threads"] if thread["name"] != "witness"]
    if len(shown) != len(threads):
        wrong.append(f"{len(shown)} threads, Ruby has {len(threads)}")
    for subject in threads:
        tid = kernel_thread(answer["pid"], subject)
        (thread,) = [thread for thread in shown if thread["tid"] == tid]
        frames = [(path, absolute, line or None, label) for path, absolute, line, label in subject["frames"]]
        if (thread["verdict"], thread["name"], thread["main"]) != ("complete", subject["name"], subject["main"]):
            wrong.append(f"{tid}: {thread['verdict']} {thread['name']}, Ruby has {subject['name']}")
        differs = difference(rbdumps_frames(thread), frames)
        if differs:
            wrong.append(f"{answer['pid']} {tid} {subject['name']}: {differs}")
    return wrong


@pytest.mark.parametrize("mode", ["paused", "unpaused"])
@pytest.mark.parametrize("name", [name for name in SERVERS if name not in MISSING])
def test_server(rbdump, tmp_path, name, mode):
    """At rest, with a request in each worker that waits in the application."""
    with Server(name, tmp_path) as server:
        busy = WORKERS if name == "unicorn" else 1
        for _ in range(busy):
            server.keep_waiting()
        wait_until(lambda: server.waiting() == busy, "the requests have come")
        # A server looks after its workers now and then, and a thread of it can do so and be where it was before: what Ruby says
        # must be the same before and after, and none of its threads may have run, but for the witness.
        for _ in range(60):
            before = server.testimony()
            switches = at_rest(before)
            done = run(rbdump, "-p", server.pid, "--children", "--json", *(["--no-stop"] if mode == "unpaused" else []))
            if switches and switches == at_rest(before) and server.testimony() == before:
                break
        else:
            pytest.fail("the server does not come to rest")
        assert (done.returncode, done.stderr) == (0, "")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["pid"] for answer in answers] == list(before)
        wrong = [line for answer in answers for line in complaints(answer, before[answer["pid"]])]
        assert not wrong, "\n".join(wrong)
        depth = max(len(thread["frames"]) for answer in answers for thread in answer["threads"])
        assert depth > 10
        assert all(is_untouched(pid) for pid in server.pids())
        if name == "puma":
            assert server.answers()
