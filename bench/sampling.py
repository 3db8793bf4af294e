"""What sampling costs: rbdump record beside the least that there can be, the rbdump of before, and rbspy."""

import contextlib
import datetime
import itertools
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import statistics
import subprocess
import threading
import time

from measure import BENCH, TIMEOUT, TREE, Failed, Run, counted, percentile

MODES = ("unpaused", "paused")
BARE = {"unpaused": "read", "paused": "pause"}  # what bare_sampling does instead
WARM = 1.5  # seconds until nothing is new
WINDOW = 3.0  # seconds that are measured
TURNS, TURN, SETTLE = 16, 0.4, 0.06  # of being looked at, or not; seconds, and how many of them do not count
SUSPENDING = 0.05  # seconds that it may take to suspend one who looks
FRAMES = 25
MILLION = 1_000_000
READS = ("process_vm_readv", "pread64")
CALLS = TREE / "doc/benchmarks.calls.json"


class Loop:
    """A bench/loop.rb, or another of those programs, that is ready; and how fast it was, and when."""

    def __init__(self, ruby, *arguments, program="loop.rb"):
        command = [ruby.path, "--disable-gems", BENCH / program, *arguments]
        environment = dict(os.environ, RUBY_THREAD_VM_STACK_SIZE="8388608")
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment
        )
        self.pid = self.process.pid
        self.progress = []

    def __enter__(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(TIMEOUT) or self.process.stdout.readline() != "ready\n":
                raise Failed("the loop did not get ready")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            moment, calls = line.split()
            self.progress.append((float(moment), int(calls)))

    def speed(self, begin, end):
        """Calls a second, between two moments of the monotonic clock; None if it got on too little to tell."""
        inside = [(moment, calls) for moment, calls in self.progress if begin <= moment <= end]
        if len(inside) < 5:
            return None
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


def with_children(pid):
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                found += with_children(int(child))
    return found


def cpu_us(pids):
    """What the threads of those processes have run, ever."""
    total = 0
    for pid in pids:
        for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                total += int(file.read_text().split()[0])
    return total / 1e3


def memory_kb(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])
    return total


class Recorded:
    """
    rbdump record of a process, while it runs; and what its last line tells. It ends after so many seconds; if that is
    None, when it is told to.
    """

    def __init__(self, setting, pid, rate, mode, seconds, rbdump=None):
        self.rate = rate
        file = os.path.join(setting.folder, "bench.rbdump")
        command = [rbdump or setting.rbdump, "record", "-p", pid, "-r", rate, "--mode", mode, "-o", file]
        command += ["-d", seconds] if seconds else []
        self.file = file
        self.process = subprocess.Popen(
            [str(word) for word in command], stderr=subprocess.PIPE, text=True, env=setting.environment
        )

    def pids(self):
        return with_children(self.process.pid)

    def sampler(self):
        """The one of them that takes the samples."""
        return with_children(self.process.pid)[1]

    def end(self, timeout=TIMEOUT):
        """(samples, the share of those due that were late, complete)"""
        try:
            errors = self.process.communicate(timeout=timeout)[1]
        except subprocess.TimeoutExpired as problem:
            self.process.kill()
            self.process.wait()
            raise Failed("rbdump record did not end") from problem
        line = re.search(r"^rbdump: samples (\d+): (\d+) complete.*; late (\d+)[^o]*(?:of (\d+) due)?$", errors, re.M)
        if not line:
            raise Failed(f"rbdump record: {errors.strip()[-300:]}")
        # A revision that does not tell how many were due has missed some of the late ones.
        due = int(line[4] or int(line[1]) + int(line[3]))
        return int(line[1]), int(line[3]) / due, int(line[2])


class Bare:
    """The bare calls, while they run."""

    def __init__(self, program, pid, rate, seconds, what, pieces):
        command = [program, str(pid), str(rate), str(seconds), what]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with contextlib.suppress(BrokenPipeError):  # its status tells
            self.process.stdin.write(pieces)
            self.process.stdin.close()
        self.process.stdin = None

    def sampler(self):
        return self.process.pid

    def end(self, timeout=TIMEOUT):
        """(samples, the share of those due that were late, samples)"""
        words = self.process.communicate(timeout=timeout)[0].split()
        if self.process.returncode != 0:
            raise Failed("bare_sampling failed")
        return int(words[0]), int(words[4]) / (int(words[0]) + int(words[5])), int(words[0])


def cost(setting, pid, rate, mode, threads=1, rbdump=None):
    """CPU time of all of rbdump for one round, once it is warm, in microseconds; and what share of them was late."""
    seconds = WARM + WINDOW + 0.5
    recorded = Recorded(setting, pid, rate, mode, seconds, rbdump)
    time.sleep(WARM)
    pids = recorded.pids()
    began, before = time.monotonic(), cpu_us(pids)
    time.sleep(WINDOW)
    took, ended = cpu_us(pids) - before, time.monotonic()
    samples, late, _ = recorded.end()
    share = min(1, samples / threads / (rate * seconds))
    return took / (rate * (ended - began) * share), late


def pieces_of(setting, pid, mode):
    """What rbdump copies of a stack that it knows: the pieces of the commonest of its reads."""
    log = os.path.join(setting.folder, "strace.log")
    strace = ["strace", "-f", "-qq", "-s0", "-e", "abbrev=none", "-e", "signal=none", "-e", "trace=process_vm_readv", "-o", log]
    record = [setting.rbdump, "record", "-p", pid, "-r", 200, "--mode", mode, "-d", 2, "-o", "/dev/null"]
    Run([str(word) for word in strace + record], setting.environment)
    reads = {}
    for line in pathlib.Path(log).read_text(errors="replace").splitlines():
        remote = line.partition("], 1, [")[2]
        pieces = tuple(re.findall(r"iov_base=(0x[0-9a-f]+), iov_len=(\d+)", remote))
        reads[pieces] = reads.get(pieces, 0) + 1
    pieces = max(reads, key=reads.get)
    return "".join(f"{address} {length}\n" for address, length in pieces).encode()


def calls_a_sample(setting, pid, mode, rate=500):
    """{system call: how often a sample}, from two recordings of which one is longer: of when its stacks are known."""
    counts, samples = [], []
    for seconds in (2, 4.5):
        log = os.path.join(setting.folder, "strace.log")
        strace = ["strace", "-f", "-qq", "-c", "-U", "name,calls", "-e", "signal=none", "-o", log]
        file = os.path.join(setting.folder, "bench.rbdump")
        record = [setting.rbdump, "record", "-p", pid, "-r", rate, "--mode", mode, "-d", seconds, "-o", file]
        run = Run([str(word) for word in strace + record], setting.environment)
        samples.append(int(re.search(r"samples (\d+)", run.output)[1]))
        lines = [line.split() for line in pathlib.Path(log).read_text().splitlines()]
        counts.append({words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()})
    more = samples[1] - samples[0]
    if more <= 0:
        raise Failed("a longer recording has no more samples")
    each = {name: (counts[1][name] - counts[0].get(name, 0)) / more for name in counts[1] if name != "total"}
    return {name: count for name, count in sorted(each.items(), key=lambda item: -item[1]) if count >= 0.02}


def instructions_a_sample(setting, pid, mode, rate=200):
    """From two recordings of which one is longer, as calls_a_sample()."""
    counts, samples = [], []
    for seconds in (3, 9):
        record = [setting.rbdump, "record", "-p", pid, "-r", rate, "--mode", mode, "-d", seconds, "-o", os.devnull]
        count, output = counted(record, setting.environment)
        counts.append(count)
        samples.append(int(re.search(r"samples (\d+)", output)[1]))
    if samples[1] <= samples[0]:
        raise Failed("a longer recording has no more samples")
    return (counts[1] - counts[0]) / (samples[1] - samples[0])


def states_of(pid):
    """Those of its threads (proc(5), stat): "T" if stopped, "t" if by a tracer."""
    states = set()
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # a thread that has ended
            states.add(file.read_text().rpartition(")")[2].split()[0])
    return states


@contextlib.contextmanager
def suspended(pid, target):
    """Suspends who looks at a target: not while that is stopped by it, or about to be."""
    deadline = time.monotonic() + 10
    try:
        while True:
            os.kill(pid, signal.SIGSTOP)
            while (states := states_of(pid)) != {"T"}:
                if time.monotonic() > deadline or states & {"Z", "X"}:
                    raise Failed("what looks at the loop cannot be suspended")
            time.sleep(0.002)  # a stop that is on its way
            if "t" not in states_of(target):
                break
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.002)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Sampling:
    PARTS = ("sampling", "calls", "pause_window", "speed", "rates", "threads", "frames", "start", "memory")

    def __init__(self, setting):
        self.setting, self.table, self.ruby = setting, setting.table, setting.ruby
        self.repeat = max(3, setting.options.repeat // 3)
        self.bare = setting.compile("bare_sampling")
        self.baselines = None

    def baseline(self):
        """The rbdump of another revision, built; None if it cannot be."""
        if self.baselines is None:
            tree = os.path.join(self.setting.folder, "baseline")
            revision = self.setting.options.baseline
            try:
                subprocess.run(["git", "clone", "-q", "--shared", TREE, tree], check=True, timeout=TIMEOUT)
                subprocess.run(["git", "-C", tree, "checkout", "-q", revision], check=True, timeout=TIMEOUT)
                subprocess.run(["make", "-s", "-C", tree, "-j2", "build/rbdump"], check=True, timeout=600,
                               stdout=subprocess.DEVNULL)  # fmt: skip
                self.baselines = [os.path.join(tree, "build/rbdump")]
            except (OSError, subprocess.SubprocessError) as problem:
                self.table.note(f"rbdump of {revision}: not built: {problem}")
                self.baselines = []
        return self.baselines[0] if self.baselines else None

    def bare_run(self, pid, rate, what, pieces):
        """(CPU time a sample, the median and the 99th percentile of the pauses)"""
        run = Run([self.bare, str(pid), str(rate), str(WINDOW), what], os.environ, stdin=pieces)
        return tuple(float(word) for word in run.output.split()[1:4])

    def rbspy(self, pid, rate, mode):
        """CPU time of one more sample of rbspy record, once it is warm: from two recordings of which one is longer."""
        cpu, samples = [], []
        raw = os.path.join(self.setting.folder, "rbspy.raw")
        for seconds in (1, 1 + int(WINDOW)):
            command = ["rbspy", "record", "--pid", str(pid), "--rate", str(rate), "--duration", str(seconds), "--silent",
                       "--format", "collapsed", "--file", raw, "--raw-file", os.devnull]  # fmt: skip
            run = Run(command + (["--nonblocking"] if mode == "unpaused" else []), os.environ)
            cpu.append(run.cpu)
            samples.append(sum(int(line.rpartition(" ")[2]) for line in pathlib.Path(raw).read_text().splitlines()))
        if samples[1] <= samples[0]:
            raise Failed("a longer recording of rbspy has no more samples")
        return (cpu[1] - cpu[0]) * 1e6 / (samples[1] - samples[0])

    def sampling(self):
        self.table.section(f"CPU time of a sample: a call-heavy loop of {FRAMES} frames, 1,000 Hz, warm")
        baseline = self.baseline()
        peers = {"rbspy record": self.rbspy} if shutil.which("rbspy") else {}
        with Loop(self.ruby, FRAMES, 0) as loop:
            for mode in MODES:
                pieces, what = pieces_of(self.setting, loop.pid, mode), BARE[mode]
                mine, before, bare, asleep = [], [], [], []
                for turn in range(max(10, self.repeat) if baseline else self.repeat):
                    # Neither program is always the first: with a fixed order, the first seemed to cost up to a tenth more.
                    programs = [(mine, None)] + ([(before, baseline)] if baseline else [])
                    for costs, rbdump in programs if turn % 2 == 0 else reversed(programs):
                        costs.append(cost(self.setting, loop.pid, 1000, mode, rbdump=rbdump)[0])
                    bare.append(self.bare_run(loop.pid, 1000, what, pieces)[0])
                    asleep.append(self.bare_run(loop.pid, 1000, "sleep", pieces)[0])
                self.table.add_spread(f"{mode}: rbdump record", mine, "us")
                if before:
                    self.table.add_spread(f"  rbdump of {self.setting.options.baseline}", before, "us")
                self.table.add_spread(f"  the limit: sleep, {what}", bare, "us")
                self.table.add_spread("    of which to sleep, and nothing else", asleep, "us")
                self.table.add("  ratio to the limit", statistics.median(mine) / statistics.median(bare), "ratio", 2)
                if before:
                    ratios = [ours / theirs for ours, theirs in zip(mine, before)]
                    noise = 2 * statistics.stdev(ratios) / len(ratios) ** 0.5
                    self.table.add("  ratio to that rbdump, mean of all turns", statistics.mean(ratios), "ratio", 1 + noise)
                for name, peer in peers.items():
                    theirs = [peer(loop.pid, 1000, mode) for _ in range(self.repeat)]
                    self.table.add_spread(f"  {name}", theirs, "us")
                    self.table.add("  ratio to that", statistics.median(mine) / statistics.median(theirs), "ratio", 0.04)
        if not peers:
            self.table.note("rbspy record: not found")

    def calls(self):
        """Writes doc/benchmarks.calls.json, too, by which tests/test_cost.py judges."""
        self.table.section("System calls of a sample, once it is warm (and instructions outside of the kernel)")
        told = {}
        for frames in (FRAMES, 1000):
            with Loop(self.ruby, frames, 0) as loop:
                for mode in MODES:
                    each = calls_a_sample(self.setting, loop.pid, mode)
                    told[f"{mode} {frames}"] = {name: round(count, 2) for name, count in each.items()}
                    self.table.add(f"{mode}, {frames:,} frames: all", round(sum(each.values()), 2), "")
                    self.table.note("  " + ", ".join(f"{count:.2f} {name}" for name, count in each.items()))
                    # Under valgrind, a deep stack is not learned in time: every one is decoded.
                    if self.setting.options.instructions and frames == FRAMES:
                        more = instructions_a_sample(self.setting, loop.pid, mode)
                        self.table.add(f"{mode}, {frames:,} frames: instructions", round(more), "")
                    reads = sum(count for name, count in each.items() if name in READS)
                    self.table.add(f"{mode}, {frames:,} frames: to read the stack", round(reads, 2), "", 4)
        CALLS.write_text(json.dumps(told, indent=1) + "\n")

    def pause_window(self):
        self.table.section("The pause of a sample; bare: only stop, read, get registers, and let go")
        report = os.path.join(self.setting.folder, "experiment.json")
        for frames, limit in ((FRAMES, 2), (1000, 3)):
            with Loop(self.ruby, frames, 0) as loop:
                pieces = pieces_of(self.setting, loop.pid, "paused")
                mine, bare = {0.5: [], 0.99: []}, {0.5: [], 0.99: []}
                for _ in range(self.repeat):
                    Run([self.setting.rbdump, "experiment", "-p", str(loop.pid), "-r", "1000", "-n", "3000", "-m", "paused",
                         "--on-torn", "again", "--json", report], self.setting.environment, allowed=(0, 1))  # fmt: skip
                    (paused,) = json.loads(pathlib.Path(report).read_text())["modes"]
                    _, median, last = self.bare_run(loop.pid, 1000, "pause", pieces)
                    mine[0.5].append(paused["pause_us"]["p50"])
                    mine[0.99].append(paused["pause_us"]["p99"])
                    bare[0.5].append(median)
                    bare[0.99].append(last)
                for share, most in ((0.5, limit), (0.99, 2)):
                    what = f"{frames:,} frames, p{round(100 * share)}"
                    self.table.add_spread(f"{what}: rbdump", mine[share], "us")
                    self.table.add_spread("  bare", bare[share], "us")
                    ratio = statistics.median(mine[share]) / statistics.median(bare[share])
                    self.table.add("  ratio of the medians", ratio, "ratio", most)

    def kept(self, loop, begin):
        """
        Has something look at the loop for a while and not for as long, by turns: [(what is left of the loop's speed,
        beside that just before and after; the share of that time in which it was on a CPU)]. `begin` is called with how
        many seconds that takes, and starts it.
        """
        running = begin(WARM + 2 * TURNS * (TURN + SUSPENDING))
        time.sleep(WARM)
        spans = []
        for _ in range(TURNS):
            spans.append(self.span(loop))
            with suspended(running.sampler(), loop.pid):
                spans.append(self.span(loop))
        if running.process.poll() is not None:
            raise Failed("what looks at the loop has ended too soon")
        running.end()
        speeds = [loop.speed(begin, end) for begin, end, _ in spans]
        # Where the machine stood still, there is nothing to compare.
        found = [
            (2 * speeds[i] / (speeds[i - 1] + speeds[i + 1]), spans[i][2])
            for i in range(2, len(spans) - 1, 2)
            if all(speeds[i - 1 : i + 2])
        ]
        if len(found) < TURNS / 2:
            raise Failed("the loop did not get on")
        return found

    @staticmethod
    def span(loop):
        """Waits for a turn: (its begin, its end, the share of it in which the loop was on a CPU)."""
        time.sleep(SETTLE)
        began, before = time.monotonic(), cpu_us([loop.pid])
        time.sleep(TURN - SETTLE)
        ran, ended = cpu_us([loop.pid]) - before, time.monotonic()
        return began, ended, ran / 1e6 / (ended - began)

    def speed(self):
        self.table.section("How much speed the target loses, compared with its speed just before and after; and the share of late samples")
        self.table.note(f"lost: the mean of all turns of {TURN} s in which it is sampled; the bare calls in the same minutes")
        cases = (("paused", 100, 0.01), ("paused", 1000, 0.05), ("unpaused", 1000, 0.02), ("unpaused", 10000, 0.10))
        kept, late = {}, {}
        with Loop(self.ruby, FRAMES, 0) as loop:
            pieces = {mode: pieces_of(self.setting, loop.pid, mode) for mode in MODES}
            for _ in range(self.repeat + 2):
                for mode, rate, _ in cases:
                    for who, begin in (
                        ("rbdump", lambda seconds: Recorded(self.setting, loop.pid, rate, mode, seconds)),
                        ("bare", lambda seconds: Bare(self.bare, loop.pid, rate, seconds, BARE[mode], pieces[mode])),
                    ):
                        kept.setdefault((mode, rate, who), []).append(self.kept(loop, begin))
                        late.setdefault((mode, rate, who), []).append(begin(WARM + WINDOW).end()[1])
        for mode, rate, most in cases:
            for who, limit, latest in (("rbdump", most, 0.01), ("bare", None, None)):
                speeds, on_cpu = zip(*itertools.chain(*kept[mode, rate, who]))
                means = [statistics.mean(speed for speed, _ in one) for one in kept[mode, rate, who]]
                what = f"{mode}, {rate:,} Hz" if who == "rbdump" else "  the bare calls"
                self.table.add(f"{what}: lost", 1 - statistics.mean(speeds), "ratio", limit)
                error = statistics.stdev(speeds) / len(speeds) ** 0.5
                self.table.note(f"    kept {statistics.mean(speeds):.3f}, of {len(speeds)} turns with a standard error of {error:.3f}; "
                                f"on its CPU {statistics.mean(on_cpu):.3f};")  # fmt: skip
                self.table.note(f"    in each recording {', '.join(f'{one:.3f}' for one in means)}")
                self.table.add("    late", statistics.median(late[mode, rate, who]), "ratio", latest)

    def rates(self):
        self.table.section(f"CPU time of a sample, by rate; {FRAMES} frames")
        with Loop(self.ruby, FRAMES, 0) as loop:
            for mode in MODES:
                for rate in (100, 1000, 10000):
                    some = [cost(self.setting, loop.pid, rate, mode) for _ in range(self.repeat)]
                    self.table.add_spread(f"{mode}, {rate:,} Hz", [us for us, _ in some], "us")
                    self.table.add("  late", statistics.median(late for _, late in some), "ratio")

    def threads(self):
        self.table.section("CPU time of a round, by threads: one is busy, the others wait; 1,000 Hz")
        for mode in MODES:
            alone = None
            for idle in (0, 9, 99, 999):
                with Loop(self.ruby, FRAMES, idle) as loop:
                    some = [cost(self.setting, loop.pid, 1000, mode, idle + 1) for _ in range(self.repeat)]
                values = [us for us, _ in some]
                self.table.add_spread(f"{mode}, {idle + 1:,} threads", values, "us")
                alone = alone or statistics.median(values)
            self.table.add("  ratio of 1,000 to one", statistics.median(values) / alone, "ratio", 2)

    def frames(self):
        self.table.section("CPU time of a sample, by frames; 100 Hz")
        for mode in MODES:
            for frames in (10, 100, 1000, 10000):
                with Loop(self.ruby, frames, 0) as loop:
                    values = [cost(self.setting, loop.pid, 100, mode)[0] for _ in range(self.repeat)]
                self.table.add_spread(f"{mode}, {frames:,} frames", values, "us")

    def start(self):
        self.table.section("From the start of rbdump record to its first sample")
        with Loop(self.ruby, FRAMES, 0) as loop:
            values = []
            for _ in range(self.setting.options.repeat):
                began = time.time_ns()
                recorded = Recorded(self.setting, loop.pid, 1000, "paused", 0.2)
                recorded.end()
                report = [self.setting.rbdump, "report", recorded.file, "-f", "json"]
                told = json.loads(Run(report, self.setting.environment).output)
                start = datetime.datetime.fromisoformat(told["start"].replace("Z", "+00:00")).timestamp()
                first = min(span["start_ns"] for span in told["runs"])
                values.append(start * 1e3 + (first - began) / 1e6)
        self.table.add_spread("to the first sample", values, "ms", 100)

    def memory(self):
        self.table.section("Memory: a target that keeps defining and dropping methods, 10,000 Hz, unpaused")
        with Loop(self.ruby, program="dropping.rb") as loop:
            recorded = Recorded(self.setting, loop.pid, 10000, "unpaused", None)
            began, peak = time.monotonic(), 0
            for turn in range(1, 12):
                while time.monotonic() < began + 15 * turn:
                    time.sleep(1)
                    peak = max(peak, memory_kb(recorded.pids()))
                self.table.add(f"after {15 * turn} s", peak / 1024, "MB")
            recorded.process.terminate()
            samples, late, complete = recorded.end()
        self.table.add(f"the most, of {samples:,} samples", peak / 1024, "MB", 32)
        self.table.note(f"  {complete / samples:.1%} of them complete, {late:.1%} late or missed")
        if samples < MILLION:
            self.table.note(f"  fewer than {MILLION:,}")
