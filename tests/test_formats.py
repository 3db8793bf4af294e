"""What `rbdump report` writes for other tools, opened by these: the importer of speedscope, pprof, callgrind_annotate,
and the command line of the Firefox Profiler."""

import collections
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

import pytest

from harness.process import wait_until
from harness.profile import FUNCTIONS, INDEX, NO_FUNCTION, SYSCALLS, Profile
from harness.symbolize import BUILD, SECONDS

PACKAGES = BUILD / "formats/node_modules"
SCRIPTS = pathlib.Path(__file__).resolve().parent / "formats"


def output(*command, **options):
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


@pytest.fixture(scope="module")
def profile():
    return Profile()


@pytest.fixture(scope="module")
def packages():
    assert PACKAGES.exists(), f"{PACKAGES} is not there: run make formats"
    return PACKAGES


def place(function, line):
    """A frame as its function's name and file, and a line in it, if it is in a file at all."""
    return function.name, function.path, line if function.path and line > 0 else None


# ---- speedscope


def by_function(function, line):
    return place(function, function.first_line)


def replay(events):
    """What was open when: [(from, to, frames)], what is alike and has no gap as one."""
    timeline, opened, since = [], [], 0
    for what, at, frame in events:
        assert at >= since
        if opened and at > since:
            timeline.append((since, at, tuple(opened)))
        since = at
        frame = frame["name"], frame["file"], frame["line"]
        if what == "open":
            opened.append(frame)
        else:
            assert opened.pop() == frame
    assert not opened
    return joined(timeline)


def joined(timeline):
    result = []
    for begin, end, frames in timeline:
        if result and result[-1][1] == begin and result[-1][2] == frames:
            begin = result.pop()[0]
        result.append((begin, end, frames))
    return result


@pytest.mark.parametrize("lines", [False, True], ids=["functions", "lines"])
def test_speedscope(profile, packages, tmp_path, lines):
    path = profile.write(tmp_path / "a.speedscope.json", "speedscope", *(["lines"] if lines else []))
    told = json.loads(output("node", SCRIPTS / "speedscope.js", packages / "speedscope", path))
    key = place if lines else by_function
    assert told["name"] == profile.title
    assert len(told["profiles"]) == len(profile.seen_threads())
    for thread, shown in zip(profile.seen_threads(), told["profiles"]):
        process, tid, name, main = profile.threads[thread]
        command, pid, _ = profile.processes[process]
        number = f" ({tid})" if tid and (name or main) else ""
        assert shown["name"] == f"{command} {pid}: {profile.thread_name(thread)}{number}"
        assert (shown["unit"], shown["weight"]) == ("nanoseconds", profile.duration_ns)
        spans = profile.of_thread(thread)
        frames = [tuple(key(FUNCTIONS[i], line) for i, line in span.stack) or (key(NO_FUNCTION, 0),) for span in spans]
        timeline = joined([(span.start_ns, span.end_ns, stack) for span, stack in zip(spans, frames)])
        assert replay(shown["events"]) == timeline
        weights = collections.defaultdict(lambda: [0, 0])
        for frame in shown["frames"]:
            found = weights[frame["name"], frame["file"], frame["line"]]
            found[0] += frame["self"]
            found[1] += frame["total"]
        assert weights == profile.weights(spans, key)


def test_speedscope_of_nothing(profile, packages, tmp_path):
    """A selection can leave nothing: that is an empty profile, and no error."""
    empty = Profile(spans_a_thread=1)
    empty.spans = []
    path = empty.write(tmp_path / "a.speedscope.json", "speedscope")
    told = json.loads(output("node", SCRIPTS / "speedscope.js", packages / "speedscope", path))
    assert [(shown["name"], shown["events"]) for shown in told["profiles"]] == [(empty.title, [])]


# ---- collapsed stacks, which speedscope reads, too


def shown_name(name):
    """As a line has it: what would end a frame or the line is not in it."""
    name = name.replace(";", ":")
    return re.sub(
        "[\0-\x1f\x7f-\x9f\u2028\u2029]", lambda match: "".join(f"\\x{byte:02X}" for byte in match[0].encode()), name
    )


def test_collapsed(profile, packages, tmp_path):
    path = profile.write(tmp_path / "a.collapsed", "collapsed")
    told = json.loads(output("node", SCRIPTS / "speedscope.js", packages / "speedscope", path))
    (shown,) = told["profiles"]
    by_path = collections.Counter()
    for span in profile.spans:
        command, pid, _ = profile.processes[profile.threads[span.thread][0]]
        by_path[f"{command} {pid}", *(FUNCTIONS[i] for i, _ in span.stack)] += span.end_ns - span.start_ns
    weights = collections.defaultdict(lambda: [0, 0])
    for stack, ns in by_path.items():
        # Microseconds, rounded for each line.
        us = (ns + 500) // 1000
        names = [shown_name(one if isinstance(one, str) else one.name) for one in stack]
        weights[names[-1]][0] += us
        for name in set(names) if us else ():
            weights[name][1] += us
    assert {frame["name"]: [frame["self"], frame["total"]] for frame in shown["frames"]} == {
        name: weight for name, weight in weights.items() if weight[1]
    }
    assert shown["weight"] == sum((ns + 500) // 1000 for ns in by_path.values()) > 0


# ---- pprof


def pprof(*arguments):
    return output("go", "tool", "pprof", *arguments, env={**os.environ, "GOTOOLCHAIN": "local", "TZ": "UTC"})


def entries(text, number):
    """What is listed, by its number: an entry begins with it, and may have any lines after that."""
    parts = re.split(rf"^ *({number}): ", text, flags=re.MULTILINE)
    assert not parts[0].strip()
    return list(zip(parts[1::2], parts[2::2]))


def shown_location(function, line):
    """As pprof -raw shows it. A line of a function that is in no file is one of another."""
    label = f"({function.label})" if function.label != function.name else ""
    line = line if function.path else 0
    return f"0x0 M=1 {function.name} {function.path or ''}:{line} s={function.first_line}{label}\n"


def shown_labels(profile, span):
    process, tid, _, _ = profile.threads[span.thread]
    syscall = f" syscall:[{SYSCALLS[span.syscall]}]" if span.syscall >= 0 else ""
    number = f" tid:[{tid}]" if tid else ""
    indent = " " * 16
    return (
        f"{indent}state:[{span.state}]{syscall} thread:[{profile.thread_name(span.thread)}]\n"
        f"{indent}pid:[{profile.processes[process][1]}]{number}\n"
    )


def test_pprof(profile, tmp_path):
    raw = pprof("-raw", profile.write(tmp_path / "a.pb.gz", "pprof"))
    header, rest = raw.split("Samples:\nsamples/count wall/nanoseconds[dflt]\n", 1)
    samples, rest = rest.split("Locations\n", 1)
    locations = rest.rsplit("Mappings\n", 1)[0]
    assert header.split("\n") == [
        f"Comment: title: {profile.title}",
        f"Comment: tool: {profile.tool}",
        f"Comment: mode: {profile.mode}",
        f"Comment: rate: {profile.rate} Hz",
        "Comment: cut: the recording was not finished, or is damaged",
        "PeriodType: wall nanoseconds",
        f"Period: {10**9 // profile.rate}",
        "Time: 2023-11-14 22:13:20.123456789 +0000 UTC",
        f"Duration: {str(profile.duration_ns / 1e6)[:4]}",  # milliseconds, and it shows only four characters
        "",
    ]
    named = {int(number): text for number, text in entries(locations, r"\d+")}
    found = collections.Counter()
    for values, text in entries(samples, r"\d+ +\d+"):
        stack, labels = text.split("\n", 1)
        assert (stack, labels) not in found
        found[tuple(named[int(number)] for number in stack.split()), labels] = tuple(map(int, values.split()))
    wanted = collections.defaultdict(lambda: (0, 0))
    for span in profile.spans:
        stack = [shown_location(FUNCTIONS[i], line) for i, line in reversed(span.stack)]
        key = tuple(stack) or (shown_location(NO_FUNCTION, 0),), shown_labels(profile, span)
        count, weight = wanted[key]
        wanted[key] = count + span.count, weight + span.weight_ns
    assert dict(found) == dict(wanted)


def test_pprof_top(profile, tmp_path):
    """Its own sums, which count what is on a stack more than once only once."""
    path = profile.write(tmp_path / "a.pb.gz", "pprof")
    top = pprof("-top", "-unit=nanoseconds", "-nodefraction=0", "-nodecount=1000000", path)
    found = {}
    for own, total, name in re.findall(r"^ *(\d+)(?:ns)? +\S+ +\S+ +(\d+)(?:ns)? +\S+  (.*)$", top, re.MULTILINE):
        found[name] = [int(own), int(total)]
    weights = profile.weights(profile.spans, lambda function, line: function.name)
    names = ["Shop#open", "Tree#walk", "Array#each", "Kernel#sleep", "(torn: call)", "(truncated)", "(no stack)"]
    assert {name: found[name] for name in names} == {name: weights[name] for name in names}


# ---- callgrind


def shown_by_callgrind(text):
    """Without what would end its line."""
    text = re.sub(
        "[\0-\x1f\x7f-\x9f\u2028\u2029]", lambda found: "".join(f"\\x{byte:02X}" for byte in found.group().encode()), text
    )
    return text.lstrip(" ") or "???"


def annotate(path, *options):
    """Costs by function, or of the lines of a file that is there: {name: nanoseconds, samples}."""
    text = output("callgrind_annotate", "--threshold=100", *options, path.name, cwd=path.parent)
    cost = r"([\d,]+|\.)(?: \([ \d.]+%\))? +"
    return {
        name: tuple(int(number.replace(",", "").replace(".", "0")) for number in numbers)
        for *numbers, name in re.findall(rf"^ *{cost}{cost}(.*)$", text, re.MULTILINE)
    }


@pytest.mark.parametrize("inclusive", [False, True], ids=["self", "inclusive"])
def test_callgrind(profile, tmp_path, inclusive):
    found = annotate(
        profile.write(tmp_path / "out", "callgrind"), "--auto=no", f"--inclusive={'yes' if inclusive else 'no'}"
    )
    wanted = collections.defaultdict(lambda: [0, 0])
    for span in profile.spans:
        functions = [FUNCTIONS[i] for i, _ in span.stack] or [NO_FUNCTION]
        for function in {(function.path, function.name) for function in (functions if inclusive else functions[-1:])}:
            path, name = (shown_by_callgrind(text or "") for text in function)
            cost = wanted[f"{path}:{name}"]
            cost[0] += span.weight_ns
            cost[1] += span.count
    total = sum(span.weight_ns for span in profile.spans), sum(span.count for span in profile.spans)
    assert found.pop("PROGRAM TOTALS") == total
    assert found.pop("???:(root)") == (total if inclusive else (0, 0))
    assert {name: cost for name, cost in found.items() if cost != (0, 0)} == {k: tuple(v) for k, v in wanted.items()}


def test_callgrind_lines(profile, tmp_path):
    """What a line of a file costs itself, and the calls in it."""
    (tmp_path / "shop.rb").write_text("".join(f"source {line}\n" for line in range(1, 60)))
    found = annotate(profile.write(tmp_path / "out", "callgrind"), "--auto=yes", "--inclusive=no")
    top = INDEX["Shop#open"]
    own = [span for span in profile.spans if span.stack and span.stack[-1] == (top, 52)]
    assert found["source 52"] == (sum(span.weight_ns for span in own), sum(span.count for span in own))
    for name in ["Tree#walk", "Order#total", "eval'd"]:
        called = [span for span in profile.spans if (top, INDEX[name]) in callers(span.stack)]
        shown = [cost for text, cost in found.items() if f":{name} (" in text]
        assert called and shown == [(sum(span.weight_ns for span in called), sum(span.count for span in called))]


def callers(stack):
    """Pairs of who calls and who is called, where that is the outermost of its function."""
    functions = [function for function, _ in stack]
    return {(functions[i - 1], f) for i, f in enumerate(functions) if i > 0 and f not in functions[:i]}


# ---- Firefox Profiler


class FirefoxProfiler:
    """A session of the profiler's own command line: a process that has a file loaded.

    It is started here, as its `load` command gives the process half a second to start: too little for a busy machine.
    """

    def __init__(self, script, folder, profile):
        self.script, self.folder = script, pathlib.Path(folder)
        self.environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": folder}
        command = ["node", script, "--daemon", profile, "--session", "test"]
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL)

    def is_loaded(self):
        assert self.process.poll() is None, "the profiler's process has ended"
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(SECONDS)
            try:
                asking.connect(str(self.folder / "test.sock"))
            except OSError:
                return False  # not listening yet
            asking.sendall(b'{"type": "status"}\n')
            told = json.loads(asking.makefile().readline())
        assert told["type"] in ("loading", "ready"), told
        return told["type"] == "ready"

    def close(self):
        self.process.kill()
        self.process.wait()

    def ask(self, *words):
        return output("node", self.script, *words, "--session", "test", env=self.environment)

    def told(self, *words):
        return json.loads(self.ask(*words, "--json"))


@pytest.fixture(scope="module")
def firefox(profile, packages, tmp_path_factory):
    path = profile.write(tmp_path_factory.mktemp("firefox") / "profile.json", "firefox")
    # Its socket is in that folder, and the path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="rbdump-") as folder:
        session = FirefoxProfiler(packages / "@firefox-devtools/profiler-cli/dist/profiler-cli.js", folder, path)
        try:
            wait_until(session.is_loaded, "the profile is loaded", SECONDS)
            yield session
        finally:
            session.close()


def milliseconds(ns):
    return pytest.approx(ns / 1e6, abs=1e-6)


def test_firefox_threads(profile, firefox):
    told = firefox.told("profile", "info", "--all")
    threads = {}
    for process in told["processes"]:
        for thread in process["threads"]:
            threads[thread["threadIndex"]] = process["name"], process["pid"], thread["name"], thread["tid"]
            busy = [span for span in profile.of_thread(thread["threadIndex"]) if span.state in ("cpu", "gc")]
            assert thread["cpuMs"] == milliseconds(sum(span.weight_ns for span in busy))
    wanted = {}
    for i, (process, tid, _, _) in enumerate(profile.threads):
        command, pid, _ = profile.processes[process]
        wanted[i] = command, str(pid), profile.thread_name(i), tid or f"unknown {i}"
    assert threads == wanted
    ends = {process["pid"]: process["endTime"] for process in told["processes"]}
    assert ends == {
        str(pid): milliseconds(profile.duration_ns) if ended else None for _, pid, ended in profile.processes
    }


def test_firefox_meta(profile, firefox):
    told = firefox.told("profile", "meta")
    assert (told["product"], told["importedFrom"], told["interval"]) == (profile.title, profile.tool, 10)
    assert told["startTime"] == pytest.approx(profile.start_s * 1000 + profile.start_ns / 1e6)
    assert told["durationMs"] == milliseconds(profile.duration_ns)
    entries = {entry["label"]: entry["value"] for section in told["extra"] for entry in section["entries"]}
    assert entries == {
        "Tool": profile.tool,
        "Mode": profile.mode,
        "Weights": profile.by,
        "Cut": "the recording was not finished, or is damaged",
    }


def firefox_functions(firefox, *words):
    """What functions weigh, those of one name together."""
    found = collections.defaultdict(lambda: [0, 0])
    for function in firefox.told("thread", "functions", "--include-idle", *words)["functions"]:
        found[function["name"], function["functionIndex"]] = [function["selfSamples"], function["totalSamples"]]
    return dict(found)


def firefox_wanted(profile, spans):
    index = {function: i for i, function in enumerate([*FUNCTIONS, NO_FUNCTION])}
    weights = profile.weights(spans, lambda function, line: (function.name, index[function]))
    return {key: [milliseconds(own), milliseconds(total)] for key, (own, total) in weights.items()}


@pytest.mark.parametrize("thread", range(3))
def test_firefox_weights(profile, firefox, thread):
    spans = profile.of_thread(thread)
    assert firefox_functions(firefox, "--thread", f"t-{thread}") == firefox_wanted(profile, spans)
    told = firefox.told("thread", "samples", "--include-idle", "--thread", f"t-{thread}")["categoryBreakdown"]
    states = collections.Counter()
    for span in spans:
        states[span.state] += span.weight_ns
        if span.state == "blocked":
            states["blocked", SYSCALLS[span.syscall] or "Other"] += span.weight_ns
    found = {category["name"]: category["samples"] for category in told["categories"]}
    for category in told["categories"]:
        for sub in category["subcategories"]:
            found[category["name"], sub["name"]] = sub["samples"]
    assert found == {state: milliseconds(weight) for state, weight in states.items()}


def test_firefox_times(profile, firefox):
    """What is seen in a part of the time is what was seen then."""
    spans = profile.of_thread(3)
    part = spans[40:90]
    firefox.ask("zoom", "push", f"{part[0].start_ns / 1e6}ms,{spans[90].start_ns / 1e6}ms")
    try:
        assert firefox_functions(firefox, "--thread", "t-3") == firefox_wanted(profile, part)
    finally:
        firefox.ask("zoom", "clear")


def test_firefox_lines(profile, firefox):
    """The lines of a file, and what they and the calls in them weigh."""
    function = FUNCTIONS[INDEX["Order#total"]]
    firefox.ask("thread", "select", "t-1")
    told = firefox.told("function", "annotate", f"f-{FUNCTIONS.index(function)}", "--context", "file")["srcAnnotation"]
    assert told["filename"] == function.path
    found = {line["lineNumber"]: [line["selfSamples"], line["totalSamples"]] for line in told["lines"]}
    weights = profile.weights(profile.of_thread(1), lambda function, line: (function.path, line))
    assert {line: weights for line, weights in found.items() if any(weights)} == {
        line: [milliseconds(own), milliseconds(total)]
        for (path, line), (own, total) in weights.items()
        if path == function.path
    }
