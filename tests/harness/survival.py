"""Killing and stopping the processes of rbdump while signals and exec arrive at its target, and seeing what that does to it."""

import contextlib
import os
import pathlib
import random
import selectors
import signal
import subprocess
import threading
import time

from harness.process import children_of, has_ended, is_untouched, wait_until
from harness.target import TARGETS

GUARD = "rbdump-guard"
STEP = 2000
VERBS = {
    "dump": ["-p", "{pid}", "--json"],
    "record": ["record", "-p", "{pid}", "-r", "2000", "--mode", "paused", "-o", "{file}"],
    "experiment": ["experiment", "-p", "{pid}", "-m", "paused", "-r", "5000", "-d", "300"],
}
PROCESSES = ("parent", "tracer", "guard")
OVERSLEPT = 0.05  # so much later than due is the machine standing still, in seconds


def sum_of(count):
    """What a worker of survivor.rb comes to in so many rounds. A step is x*a+b; so are two, and twice as many again."""
    value, factor, addend, left = 0, 6364136223846793005, 1442695040888963407, count * STEP
    while left:
        if left % 2:
            value = (value * factor + addend) % (1 << 64)
        factor, addend, left = factor * factor % (1 << 64), (factor + 1) * addend % (1 << 64), left // 2
    return value


class Survivor:
    """targets/survival/survivor.rb with a sender of signals, each of which waits for the answer to the one before."""

    def __init__(self, ruby, folder):
        self.progress = pathlib.Path(folder) / "progress"
        command = [ruby.path, "--disable-gems", str(TARGETS / "survival/survivor.rb"), "signals", str(self.progress)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"
        self.sent = 0
        self.lost = None
        self._ends = threading.Event()
        self._sender = threading.Thread(target=self._send)

    def __enter__(self):
        self._sender.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._sender.join()
        self.process.kill()
        self.process.wait(30)
        self.process.stdin.close()
        self.process.stdout.close()

    def _send(self):
        """One signal at a time: two that wait together are one to the kernel."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not self._ends.is_set() and self.lost is None and self.process.poll() is None:
                os.kill(self.pid, signal.SIGUSR1)
                self.sent += 1
                if not selector.select(20) or os.read(self.process.stdout.fileno(), 16) != b"s":
                    self.lost = self.sent

    def steps(self):
        """How far its two workers are, together."""
        data = self.progress.read_bytes().ljust(16, b"\0")
        return sum(int.from_bytes(data[at : at + 8], "little") for at in (0, 8))

    def finish(self):
        """Ends it, and sees to it that no signal was lost or seen twice, and that its work is right."""
        self._ends.set()
        self._sender.join()
        assert self.lost is None, f"signal {self.lost} was not seen, or more than once"
        self.process.stdin.close()
        *early, first, second = self.process.stdout.read().decode().splitlines()
        assert self.process.wait(60) == 0
        assert not "".join(early), "a signal was seen more than once"
        return [tuple(map(int, line.split())) for line in (first, second)]


class Changer:
    """targets/survival/survivor.rb that becomes itself anew by exec, so many times; it ends by itself."""

    def __init__(self, ruby, folder, rounds):
        self.progress = pathlib.Path(folder) / "changes"
        self.rounds = rounds
        command = [ruby.path, "--disable-gems", str(TARGETS / "survival/survivor.rb"), "exec", str(self.progress), str(rounds)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(30)
        self.process.stdout.close()

    def has_ended(self):
        return has_ended(self.pid)

    def wait_for_exec(self):
        """The next one arrives; or it has ended."""
        before = self._state()
        wait_until(lambda: self.has_ended() or self._state() != before, "its exec arrives", 20)

    def _state(self):
        return self.progress.read_bytes() if self.progress.exists() else b""

    def finish(self):
        """Once it has ended: sees to it that its work is right."""
        assert int(self.process.stdout.read()) == sum_of(self.rounds + 1), "its work is wrong"
        assert self.process.wait(30) == 0


def check_sums(sums):
    """What the workers came to is right."""
    for found, count in sums:
        assert count > 0 and found == sum_of(count), "its work is wrong"


def command_of(rbdump, verb, pid, folder):
    return [str(rbdump), *(word.format(pid=pid, file=pathlib.Path(folder) / "recording") for word in VERBS[verb])]


@contextlib.contextmanager
def running_rbdump(rbdump, verb, pid, folder, *more, **how):
    """An rbdump that looks at a process, until the with statement ends it. If it does not end, its processes are killed."""
    command = [*command_of(rbdump, verb, pid, folder), *more]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how) as running:
        try:
            yield running
            if verb != "dump":
                running.terminate()
            running.wait(30)
        except BaseException:
            for process in processes_of(running).values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            raise


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def processes_of(running):
    """The processes of an rbdump by what they are; the one that traces may be the one that was started."""
    found = {"parent": running.pid}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in children_of(running.pid):
            name = name_of(child)
            if name == GUARD:
                found["guard"] = child
            elif name == name_of(running.pid):
                found["tracer"] = child
    return found


def wait_for_tracer(running):
    """The process that traces. A guard that has just begun has the same name, so both must be there."""
    found = wait_until(lambda: (found := processes_of(running)).keys() >= {"guard", "tracer"} and found, "it traces", 20)
    return found["tracer"]


def kill_one(rbdump, verb, whom, pid, folder, moments):
    """Starts rbdump, kills one of its processes at a random moment, then all that is left. Returns whether it did."""
    killed = False
    with subprocess.Popen(
        command_of(rbdump, verb, pid, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(moments.uniform(0.0, 0.12 if verb == "dump" else 0.3))
        found = processes_of(running)
        victim = found.get(whom, found["parent"] if whom == "tracer" else None)
        if victim and running.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                killed = True
        if victim != running.pid:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(moments.uniform(0.0, 0.05))
            found |= {f"{name} then": other for name, other in processes_of(running).items()}
            running.kill()
        running.wait(30)
    for other in found.values():
        wait_until(lambda other=other: has_ended(other), f"{other} ends with {running.pid}", 20)
    wait_until(lambda: is_untouched(pid), "nobody traces the target", 20)
    return killed


def kill_many(rbdump, pid, folder, count, seed, still=lambda: True):
    """So many kills, as long as there is still somebody, of each process in turn. Returns how many of each."""
    moments = random.Random(seed)
    done = {whom: 0 for whom in PROCESSES}
    while sum(done.values()) < count and still():
        # A guard of a dump is there for a moment only.
        whom = min(PROCESSES, key=done.get)
        done[whom] += kill_one(rbdump, moments.choice(tuple(VERBS)), whom, pid, folder, moments)
    return done


def longest_standstill(survivor, seconds):
    """
    The longest time within so many seconds in which the target made no step, in seconds; without what the machine may have
    stood still for meanwhile, as far as this one slept through that itself.
    """
    began = moved = time.monotonic()
    steps, longest = survivor.steps(), 0
    while (now := time.monotonic()) < began + seconds:
        time.sleep(0.001)
        moved += max(0, time.monotonic() - now - OVERSLEPT)
        longest = max(longest, now - moved)
        if (after := survivor.steps()) != steps:
            steps, moved = after, now
    return longest


def stop_one(rbdump, verb, whom, survivor, folder, moments, seconds):
    """
    Starts rbdump, stops one of its processes at a random moment, and lets it go on after so many seconds. Returns the
    target's longest standstill meanwhile; None if there was no such process any more. If `whom` is None, nobody is stopped.
    """
    with subprocess.Popen(
        command_of(rbdump, verb, survivor.pid, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(moments.uniform(0.0, 0.12 if verb == "dump" else 0.5))
        found = processes_of(running)
        victim = found.get(whom, found["parent"] if whom == "tracer" else None)
        standstill = longest_standstill(survivor, seconds) if whom is None else None
        if whom and victim and running.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGSTOP)
                try:
                    standstill = longest_standstill(survivor, seconds)
                finally:
                    os.kill(victim, signal.SIGCONT)
        running.terminate()
        running.wait(30)
    wait_until(lambda: is_untouched(survivor.pid), "nobody traces the target", 20)
    return standstill


def wait_for_progress(survivor, seconds):
    """How long it took until the target had made a step, in seconds."""
    began, before = time.monotonic(), survivor.steps()
    wait_until(lambda: survivor.steps() > before, "the target makes a step", seconds)
    return time.monotonic() - began
