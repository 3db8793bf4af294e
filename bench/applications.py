#!/usr/bin/env python3
"""
What recording costs real applications, by turns with and without it.

    bench/applications.py [--apps rails,jobs,rubocop] [--loads saturated,half,idle] [--neighbours 0,4]
                          [--rates 99,1000] [--modes paused,unpaused,kernel] [--profilers rbdump,rbspy] [--native WHICH]
                          [--turns 12] [--seconds 14] [--json FILE]

Each application is one of bench/apps, on Debian's Ruby (make packages-applications installs what they need). First it
is recorded for some seconds, for the CPU time of the profiler. Then a profiler samples it for TURN seconds, is suspended
for as long, and so on: what the application did in each turn is compared with the turns just before and after. What samples
in the kernel goes on while rbdump is suspended, so there, each turn has a recording of its own.
Neighbours are loops that compute, each as much as it can. rbspy is measured if it is in the PATH; it counts fewer
threads as samples than rbdump does.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from measure import BENCH, TIMEOUT, TREE, Failed, percentile
from sampling import cpu_us, suspended, with_children

TURN, SETTLE, WARM = 2.0, 0.1, 3.0  # seconds
RUBY = "/usr/bin/ruby"
BOUND = 3600  # seconds after which a process that was started ends, whatever happens


# ---- applications


class Application:
    """
    One that runs: its `pid`, and its `progress`: for each piece of work that was done (moment of the monotonic clock,
    how long it took in seconds). A piece of work is a request, a job, a file.
    """

    def __init__(self, folder, rate):
        self.folder, self.rate = folder, rate
        self.progress = []
        self.processes = []
        self.readers = []

    def __enter__(self):
        try:
            self.begin()
            self.wait_for_progress()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def start(self, command, **options):
        process = subprocess.Popen([str(word) for word in command], **options)
        self.processes.append(process)
        return process

    def follow(self, stream):
        """Notes the progress that comes as lines of a stream."""

        def read():
            for line in stream:
                words = line.split()
                if len(words) != 2 or words[0] == "status":
                    self.progress.append((float("nan"), line.strip()))
                    return
                self.progress.append((float(words[0]), float(words[1])))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self.readers.append(reader)

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        for reader in self.readers:
            reader.join(TIMEOUT)

    def work(self, begin, end):
        """How long each piece of work took that was done between two moments."""
        if self.progress and self.progress[-1][0] != self.progress[-1][0]:
            raise Failed(f"the application: {self.progress[-1][1]}")
        return [took for moment, took in self.progress if begin <= moment <= end]

    def wait_for_progress(self, count=20):
        deadline = time.monotonic() + TIMEOUT
        while len(self.progress) < count:
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                raise Failed(f"{type(self).__name__} does no work")
            time.sleep(0.05)
        self.work(0, 0)


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Rails(Application):
    """A Rails application on puma, with five threads for requests and four clients."""

    THREADS, CLIENTS = 5, 4
    LEAKS = {}  # more of the environment

    def begin(self):
        port = free_port()
        threads, address = f"{self.THREADS}:{self.THREADS}", f"tcp://127.0.0.1:{port}"
        puma = self.start(
            ["puma", "-q", "-t", threads, "-b", address, "-e", "production", "config.ru"],
            cwd=BENCH / "apps/rails",
            env=dict(os.environ, BOOKS=self.folder, RAILS_ENV="production", **self.LEAKS),
            stdout=subprocess.DEVNULL,
        )
        self.pid = puma.pid
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if puma.poll() is not None or time.monotonic() > deadline:
                    raise Failed("puma did not get ready") from None
                time.sleep(0.05)
        clients = self.start(
            [sys.executable, BENCH / "apps/clients.py", port, self.CLIENTS, self.rate or 0],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.follow(clients.stdout)


class Jobs(Application):
    """Sidekiq, with ten threads that work, and redis-server."""

    THREADS, AHEAD = 10, 200  # how many jobs are always in the queue if there is no rate

    holding = feeder = None

    def begin(self):
        path = os.path.join(self.folder, "redis")
        progress = os.path.join(self.folder, "progress")
        os.mkfifo(progress)
        self.start(
            ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", self.folder],
            stdout=subprocess.DEVNULL,
        )
        connection = self._connect(path)
        reading = os.open(progress, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reading, True)
        self.holding = os.open(progress, os.O_WRONLY)  # so that there is no end while sidekiq starts
        sidekiq = self.start(
            ["sidekiq", "-q", "default", "-r", BENCH / "apps/jobs.rb", "-c", self.THREADS, "-e", "production"],
            env=dict(os.environ, PROGRESS=progress, REDIS_URL=f"unix://{path}"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # it warns at each job
        )
        self.pid = sidekiq.pid
        self.over = threading.Event()
        self.follow(os.fdopen(reading))
        self.feeder = threading.Thread(target=self._feed, args=(connection,), daemon=True)
        self.feeder.start()

    def end(self):
        if self.feeder:
            self.over.set()
            self.feeder.join(TIMEOUT)
        if self.holding is not None:
            os.close(self.holding)
            self.holding = None
        super().end()

    @staticmethod
    def _connect(path):
        deadline = time.monotonic() + TIMEOUT
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(TIMEOUT)
        while True:
            try:
                connection.connect(path)
                return connection
            except OSError:
                if time.monotonic() > deadline:
                    raise Failed("redis-server did not get ready") from None
                time.sleep(0.02)

    @staticmethod
    def command(connection, *words):
        """One command of Redis, and its answer's number (RESP)."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        connection.sendall(text.encode())
        answer = b""
        while not answer.endswith(b"\r\n"):
            got = connection.recv(4096)
            if not got:
                raise Failed("redis-server has ended")
            answer += got
        if not answer.startswith(b":"):
            raise Failed(f"redis: {answer[:80]!r}")
        return int(answer[1:])

    def _feed(self, connection):
        number, due = 0, time.monotonic()
        while not self.over.is_set():
            if self.rate:
                due += 1 / self.rate
                time.sleep(max(0, due - time.monotonic()))
            elif self.command(connection, "LLEN", "queue:default") >= self.AHEAD:
                time.sleep(0.02)
                continue
            at = due if self.rate else time.monotonic()
            for _ in range(1 if self.rate else 50):
                number += 1
                job = {"class": "ReportJob", "args": [number, at], "jid": f"{number:024x}"}
                job |= {"queue": "default", "retry": False}
                self.command(connection, "LPUSH", "queue:default", json.dumps(job))
        connection.close()


class Program(Application):
    """A program that prints "ready", and then its progress."""

    def command(self):
        raise NotImplementedError

    def begin(self):
        process = self.start(self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = process.pid
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(TIMEOUT) or process.stdout.readline() != "ready\n":
                raise Failed(f"{type(self).__name__} did not get ready")
        self.follow(process.stdout)


class Rubocop(Program):
    """Rubocop, over and over, on its own sources."""

    def command(self):
        gems = pathlib.Path("/usr/share/rubygems-integration/all/gems")
        (sources,) = gems.glob("rubocop-[0-9]*/lib/rubocop/cop/style")
        return [RUBY, BENCH / "apps/rubocop.rb", sources, "progress"]


APPLICATIONS = {"rails": Rails, "jobs": Jobs, "rubocop": Rubocop}
LOADS = {"saturated": 0, "half": 0.5, "idle": 0.05}


# ---- profilers


class Rbdump:
    """rbdump record, while it runs."""

    MODES = ("paused", "unpaused", "kernel")

    def __init__(self, options, app, rate, mode, seconds=None, name="recording"):
        self.seconds = seconds
        self.file = os.path.join(app.folder, name)
        command = [options.rbdump, "record", "-p", app.pid, "-r", rate, "--mode", mode, "-o", self.file]
        command += ["-d", seconds] if seconds else []
        command += [f"--native={options.native}"] if options.native else []
        # Neither a layout nor a cache of the user's is used.
        environment = dict(os.environ, RBDUMP_OFFSETS_D=str(TREE / "offsets.d"), XDG_CACHE_HOME=app.folder, DEBUGINFOD_URLS="")
        self.process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True, env=environment)

    def pids(self):
        return with_children(self.process.pid)

    def sampler(self):
        pids = self.pids()
        if len(pids) < 2:
            raise Failed("rbdump record has no process that samples")
        return pids[1]

    def end(self):
        """{samples, complete, late}: how many, and the shares."""
        if not self.seconds:
            self.process.send_signal(signal.SIGTERM)
        try:
            errors = self.process.communicate(timeout=TIMEOUT + (self.seconds or 0))[1]
        except subprocess.TimeoutExpired as problem:
            self.process.kill()
            self.process.wait()
            raise Failed("rbdump record did not end") from problem
        line = re.search(r"samples (\d+): (\d+) complete.*", errors)
        if not line or self.process.returncode not in (0, 1):
            raise Failed(f"rbdump record: {errors.strip()[-300:]}")
        late = re.search(r"late (\d+).* of (\d+) due", errors)
        samples = int(line[1])
        return {
            "samples": samples,
            "complete": int(line[2]) / max(1, samples),
            "late": int(late[1]) / int(late[2]) if late else 0.0,
            "told": line[0],
        }


class Rbspy:
    """rbspy record, while it runs. It tells neither what is complete nor what is late."""

    MODES = ("paused", "unpaused")

    def __init__(self, _options, app, rate, mode, seconds=None):
        self.seconds = seconds
        self.raw = os.path.join(app.folder, "rbspy.raw")
        command = ["rbspy", "record", "--pid", app.pid, "--rate", rate, "--silent", "--duration", seconds or BOUND]
        command += ["--format", "collapsed", "--file", self.raw, "--raw-file", os.devnull]
        command += ["--nonblocking"] if mode == "unpaused" else []
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([str(word) for word in command], **quiet)

    def pids(self):
        return with_children(self.process.pid)

    def sampler(self):
        return self.process.pid

    def end(self):
        if not self.seconds:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(TIMEOUT + (self.seconds or 0))
        lines = pathlib.Path(self.raw).read_text().splitlines()
        return {"samples": sum(int(line.rpartition(" ")[2]) for line in lines)}


PROFILERS = {"rbdump": Rbdump, "rbspy": Rbspy}


# ---- measuring


@contextlib.contextmanager
def running(profiler):
    """A profiler, which is ended whatever happens."""
    try:
        yield profiler
    finally:
        if profiler.process.poll() is None:
            profiler.process.kill()
            profiler.process.wait()


@contextlib.contextmanager
def neighbours(count):
    """So many loops that compute."""
    loops = [subprocess.Popen(["timeout", str(BOUND), "sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
        if any(loop.poll() is not None for loop in loops):
            raise Failed("a neighbour has ended")
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()


def turn():
    """Waits for a turn: (its begin, its end)."""
    time.sleep(SETTLE)
    began = time.monotonic()
    time.sleep(TURN - SETTLE)
    return began, time.monotonic()


def end_of(profiler):
    """Ends a profiler, which must not have ended before."""
    ended = profiler.process.poll() is not None
    profiler.end()
    if ended:
        raise Failed("the profiler has ended too soon")


def suspended_turns(app, begin, turns):
    with running(begin(None)) as profiler:
        time.sleep(WARM)
        for _ in range(turns):
            yield turn()
            with suspended(profiler.sampler(), app.pid):
                yield turn()
        end_of(profiler)


def separate_turns(_app, begin, turns):
    for _ in range(turns):
        with running(begin(None)) as profiler:
            time.sleep(WARM)
            yield turn()
            end_of(profiler)
        yield turn()


def by_turns(app, begin, turns, mode):
    """What is left of the speed of an application while it is sampled, and of the 99th percentile of its work's time."""
    spans = list((separate_turns if mode == "kernel" else suspended_turns)(app, begin, turns))
    work = [app.work(begin, end) for begin, end in spans]
    speeds = [len(some) / (end - begin) for some, (begin, end) in zip(work, spans)]
    kept = [2 * speeds[i] / (speeds[i - 1] + speeds[i + 1]) for i in range(2, len(spans) - 1, 2)]
    if not all(work):
        raise Failed("there is a turn in which the application did nothing: its pieces of work are too long")
    with_it = [took for some in work[0::2] for took in some]
    without = [took for some in work[1::2] for took in some]
    return {
        "kept": statistics.median(kept),
        "kept_error": statistics.stdev(kept) / len(kept) ** 0.5,
        "p99": percentile(with_it, 0.99),
        "p99_without": percentile(without, 0.99),
        "speed_without": statistics.median(speeds[1::2]),
    }


def alone(app, begin, seconds):
    """What a profiler took of a CPU, and what it tells of its samples."""
    with running(begin(seconds)) as profiler:
        time.sleep(WARM)
        pids = profiler.pids()
        began, before = time.monotonic(), cpu_us(pids)
        time.sleep(seconds - WARM - 1)
        cpu, took = cpu_us(pids) - before, time.monotonic() - began
        told = profiler.end()
    return told | {"cpu": cpu / 1e6 / took, "cpu_us": cpu / took / (told["samples"] / seconds) if told["samples"] else None}


def measure(options, folder, name, load, count, saturated):
    """The rows of an application under a load, beside so many neighbours."""
    rate = saturated * LOADS[load]
    with neighbours(count), tempfile.TemporaryDirectory(dir=folder) as own, APPLICATIONS[name](own, rate) as app:
        time.sleep(WARM)
        for profiler in options.profilers:
            for hz in options.rates:
                for mode in [mode for mode in options.modes if mode in PROFILERS[profiler].MODES]:

                    def begin(seconds, profiler=profiler, hz=hz, mode=mode):
                        return PROFILERS[profiler](options, app, hz, mode, seconds)

                    row = {"app": name, "load": load, "neighbours": count, "profiler": profiler, "rate": hz, "mode": mode}
                    row |= alone(app, begin, options.seconds) | by_turns(app, begin, options.turns, mode)
                    yield row


def saturated_speed(folder, name):
    """How many pieces of work a second an application does at most."""
    with tempfile.TemporaryDirectory(dir=folder) as own, APPLICATIONS[name](own, 0) as app:
        time.sleep(WARM)
        spans = [turn() for _ in range(3)]
        return statistics.median(len(app.work(began, ended)) / (ended - began) for began, ended in spans)


COLUMNS = (
    ("application", lambda row: row["app"]),
    ("load", lambda row: row["load"]),
    ("neighbours", lambda row: row["neighbours"]),
    ("profiler", lambda row: f"{row['profiler']} {row['mode']}, {row['rate']:,} Hz"),
    ("work kept", lambda row: f"{row['kept']:.3f} ± {2 * row['kept_error']:.3f}"),
    ("p99, ms", lambda row: f"{row['p99'] * 1e3:.1f} / {row['p99_without'] * 1e3:.1f}"),
    ("CPU, %", lambda row: f"{row['cpu'] * 100:.2f}"),
    ("CPU a sample, us", lambda row: f"{row['cpu_us']:.0f}" if row["cpu_us"] else "none"),
    ("complete, %", lambda row: f"{row['complete'] * 100:.2f}" if "complete" in row else "not told"),
    ("late, %", lambda row: f"{row['late'] * 100:.2f}" if "late" in row else "not told"),
)


def options_given():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)

    def words_of(known):
        def words(text):
            if unknown := set(text.split(",")) - set(known):
                raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")
            return text.split(",")

        return words

    def numbers(text):
        return [int(word) for word in text.split(",")]

    parser.add_argument("--rbdump", default=str(TREE / "build/rbdump"))
    parser.add_argument("--apps", type=words_of(APPLICATIONS), default=list(APPLICATIONS))
    parser.add_argument("--loads", type=words_of(LOADS), default=["saturated"])
    parser.add_argument("--neighbours", type=numbers, default=[0])
    parser.add_argument("--rates", type=numbers, default=[99, 1000])
    parser.add_argument("--modes", type=words_of(Rbdump.MODES), default=list(Rbdump.MODES))
    profilers = ["rbdump"] + ["rbspy"] * bool(shutil.which("rbspy"))
    parser.add_argument("--profilers", type=words_of(PROFILERS), default=profilers)
    parser.add_argument("--native", metavar="WHICH", help="as of rbdump record")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=14, help="how long a recording is of which the CPU time is taken")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if options.turns < 4 or options.seconds < 8:
        parser.error("at least 4 turns, and 8 seconds")
    if "rubocop" in options.apps and options.loads != ["saturated"]:
        parser.error("rubocop is always saturated")
    return options


def main():
    options = options_given()
    rows = []
    with tempfile.TemporaryDirectory(prefix="rbdump-apps-") as folder:
        print("| " + " | ".join(title for title, _ in COLUMNS) + " |")
        print("|" + "---|" * len(COLUMNS), flush=True)
        for name in options.apps:
            saturated = saturated_speed(folder, name) if set(options.loads) - {"saturated"} else 0
            for load in options.loads:
                for count in options.neighbours:
                    for row in measure(options, folder, name, load, count, saturated):
                        rows.append(row)
                        print("| " + " | ".join(str(cell(row)) for _, cell in COLUMNS) + " |", flush=True)
                        if options.json:
                            pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failed as problem:
        sys.exit(f"{sys.argv[0]}: {problem}")
