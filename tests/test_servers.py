"""Servers that people run, Debian's, with their workers: each thread of each process as Ruby itself tells."""

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import TESTS, note_not_applicable
from harness.dump import difference, dump, rbdumps_frames, run
from harness.process import has_ended, is_untouched, schedstat, status, wait_until

FOLDER = TESTS / "targets/server"
WORKERS = 2
# How each is started.
SERVERS = {"puma": ["-C", FOLDER / "puma.rb"], "unicorn": ["-E", "deployment", "-c", FOLDER / "unicorn.rb"]}
MISSING = [name for name in SERVERS if not shutil.which(name)]

# A shop that gets stuck, with so many threads; the most tries until it is stuck.
SHOP = TESTS.parent / "bench/apps/stuck/config.ru"
THREADS, TRIES = 5, 100

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
    def __init__(self, name, folder, application=FOLDER / "config.ru", workers=WORKERS, arguments=()):
        self.folder = folder
        self.clients = []
        self.workers = workers
        # Some programs are not Ruby's own, but wrappers of a distribution that end in it.
        command = ["/usr/bin/ruby", "-r", FOLDER / "witness.rb", shutil.which(name), *SERVERS[name], *arguments, application]
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
        pids = self.pids()
        return len(pids) == 1 + self.workers and all((self.folder / str(pid)).exists() for pid in pids) and self.answers()

    def answers(self):
        try:
            return b"200 OK" in ask(self.folder / "server.sock", b"GET / HTTP/1.0\r\n\r\n")
        except (ConnectionError, FileNotFoundError):
            return False

    def keep_waiting(self, path="/wait"):
        """Sends a request that is never answered."""
        self.clients.append(connect(self.folder / "server.sock"))
        self.clients[-1].sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())

    def has_answered(self):
        """Whether a client has got an answer."""
        return bool(select.select(self.clients, [], [], 0)[0])

    def leave(self):
        while self.clients:
            self.clients.pop().close()

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
        self.leave()
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


def locking(server):
    """The threads that wait for a Mutex in the shop, as Ruby tells: { method in which they lock it: [thread] }"""
    threads = {}
    for thread in server.testimony()[server.pid]:
        frames = thread["frames"]  # none if the thread has just begun
        if thread["status"] == "sleep" and len(frames) > 1 and frames[0][3] == "synchronize" and frames[1][0].endswith(SHOP.name):
            threads.setdefault(frames[1][3], []).append(thread)
    return threads


def get_stuck(server):
    """
    Sends a purchase and a refund until each has locked its first Mutex, and waits for that of the other; then a request for
    each of the other threads. Gives what locking() does.
    """

    def are_stuck():
        return set(locking(server)) == {"block in buy", "block in refund"}

    for _ in range(TRIES):
        for path in ("/buy", "/refund"):
            server.keep_waiting(path)
        wait_until(lambda: server.has_answered() or are_stuck(), "the requests are answered, or the server is stuck", 60)
        if are_stuck():
            break
        server.leave()
    else:
        pytest.fail("the server does not get stuck")
    for path in ("/buy", "/buy", "/refund"):
        server.keep_waiting(path)
    wait_until(lambda: sum(map(len, locking(server).values())) == THREADS, "all threads are stuck")
    return locking(server)


def link(waiter, holder):
    """The line that a thread waits for a Mutex, and where its holder has locked it: in the caller of its first `synchronize`."""
    path, _, line, label = holder["frames"][3]
    return (
        rf'  thread {waiter["tid"]} "{re.escape(waiter["name"])}" waits for Thread::Mutex 0x[0-9a-f]+, held by '
        rf'thread {holder["tid"]} "{re.escape(holder["name"])}" since {re.escape(path)}:{line}:in \'{label}\''
    )


@pytest.mark.skipif("puma" in MISSING, reason="puma is not installed")
def test_stuck(rbdump, tmp_path):
    """The gallery's shop, all of whose threads are stuck: the deadlock, with the lines that have locked, and who waits for it."""
    with Server("puma", tmp_path, SHOP, 0, ("-w", "0", "-t", f"{THREADS}:{THREADS}")) as server:
        threads = get_stuck(server)
        (buyer,), (refunder,) = threads["block in buy"], threads["block in refund"]
        done = run(rbdump, server.pid)
        assert (done.returncode, done.stderr) == (0, "")
        deadlock = re.search(r"^\nDeadlock of 2\n((?:  .*\n)+)\nThread ", done.stdout, re.M)
        assert deadlock and done.stdout.index("\nThread ") > deadlock.start(), done.stdout
        links = deadlock[1].splitlines()
        assert len(links) == 2
        for wanted in (link(buyer, refunder), link(refunder, buyer)):
            assert any(re.fullmatch(wanted, line) for line in links), (wanted, links)

        answer = dump(rbdump, server.pid)
        tids = [thread["tid"] for thread in answer["threads"]]
        (deadlock,) = answer["deadlocks"]
        assert {tids[index] for index in deadlock["threads"]} == {buyer["tid"], refunder["tid"]}
        waits = {thread["tid"]: thread["waits"]["lock"] for thread in answer["threads"]}
        for method, holder in {"buy": buyer, "refund": refunder}.items():
            for waiter in threads[method]:
                wait = waits[waiter["tid"]]
                assert (wait["kind"], tids[wait["holder"]["index"]]) == ("mutex", holder["tid"])
        assert is_untouched(server.pid)
