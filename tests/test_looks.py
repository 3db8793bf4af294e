"""
What a dump shows of many threads, and of several looks: threads that are folded, --watch, -n. The truth is what the
target says of its threads (their ids by gettid(2), their CPU time by their own clocks), and what it was told to do.
"""

import contextlib
import datetime
import json
import pathlib
import re
import signal
import subprocess

import pytest
from harness.dump import current, run
from harness.process import is_untouched, task_states, wait_until, wait_until_it_reads
from harness.refusals import USAGE, check_refusal
from harness.target import TARGETS
from harness.terminal import interrupted, shown_on_terminal
from harness.tracer import Tracer

CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]"
SGR = r"\x1b\[[0-9;]*m"
SYS_PPOLL = "271"  # x86_64
CREW = [f"tp {i}" for i in range(3, 15)]


class Crew:
    """A running crew.rb, whose threads wait."""

    def __init__(self, ruby, *arguments):
        self.process = subprocess.Popen(
            [ruby.path, "--disable-gems", TARGETS / "looks/crew.rb", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip
        self.pid = self.process.pid
        try:
            self.tids = json.loads(self.process.stdout.readline())
            wait_until_it_reads(self.pid)
            if "busy" not in arguments:
                wait_until(lambda: task_states(self.pid) == {"S"}, "all threads of the target sleep")
        except BaseException:
            self.close()
            raise

    def tell(self, word):
        """Tells it to do something, and returns what it answers when it has done so."""
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        self.process.kill()
        self.process.wait(30)
        self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def crew(ruby, *arguments):
    with contextlib.closing(Crew(ruby, *arguments)) as target:
        yield target


@contextlib.contextmanager
def looking(rbdump, *arguments):
    """A running rbdump, which is killed if the test fails."""
    with subprocess.Popen(
        [rbdump, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def by_tid(look):
    return {thread["tid"]: thread for thread in current(look)}


def status_of(look):
    """The exit status for a look."""
    complete = look["thread_list"]["complete"] and look["fibers"]["complete"]
    return int(not complete or {thread["verdict"] for thread in look["threads"]} != {"complete"})


def expanded(ranges):
    """{1, 2, 3, 5} of "1 … 3, 5"."""
    numbers = set()
    for part in ranges.split(", "):
        ends = [int(end) for end in part.split(" … ")]
        numbers |= set(range(ends[0], ends[-1] + 1))
    return numbers


def headings(text):
    return [line for line in text.splitlines()[2:] if line and not line.startswith(" ")]


@pytest.mark.outer_rubies
def test_folded(ruby, rbdump):
    """The running thread comes first, the crew last, as one; each thread is there exactly once, with its frames."""
    with crew(ruby, "busy") as target:
        folded, unfolded = run(rbdump, target.pid), run(rbdump, target.pid, "--all")
        answer = json.loads(run(rbdump, target.pid, "--json").stdout)
        assert is_untouched(target.pid)
    # The stack of the busy thread can be torn.
    assert {folded.returncode, unfolded.returncode} <= {0, 1} and folded.stderr == unfolded.stderr == ""
    assert not re.search(CONTROL, folded.stdout + unfolded.stdout)
    shown = headings(folded.stdout)
    assert re.fullmatch(rf'Thread {target.tids["busy"]} "busy" (running|waiting for the GVL)( \[.*\])?', shown[0])
    (of_crew,) = [line for line in shown if line.startswith("12 threads")]
    found = re.fullmatch(r'12 threads, sleeping forever: "tp 003 … 014" \(tids (.*)\)', of_crew)
    assert expanded(found[1]) == {target.tids[key] for key in CREW}
    (unnamed,) = [line for line in shown if line.startswith("3 threads")]
    found = re.fullmatch(r"3 threads, sleeping(?: forever)? \(tids (.*)\)", unnamed)
    assert expanded(found[1]) == {target.tids[f"unnamed {i}"] for i in range(3)}
    assert {of_crew, unnamed} == set(shown[-2:])
    alone = {int(match[1]) for line in shown if (match := re.match(r"Thread (\d+) ", line))}
    folded_tids = {target.tids[key] for key in target.tids if key in CREW or key.startswith("unnamed")}
    assert alone == set(by_tid(answer)) - folded_tids
    assert f'Thread {target.tids["hostile"]} "\\x1B[31mevil\\xC2\\x9B \\xE2\\x80\\xAE" sleeping' in folded.stdout
    # Unfolded, the order is that of the JSON, and the frames of the crew are those that were shown once.
    tids = [int(re.match(r"Thread (\d+)", line)[1]) for line in headings(unfolded.stdout)]
    assert tids == [thread["tid"] for thread in answer["threads"]]
    # Between the heading and the frames there can be lines on what it waits for.
    blocks = dict(re.findall(r"^(\S.*)\n(?: {2}\S.*\n)*((?: {4}.*\n)+)", folded.stdout, re.M))
    each = dict(re.findall(r"^Thread (\d+) .*\n(?: {2}\S.*\n)*((?: {4}.*\n)+)", unfolded.stdout, re.M))
    assert {each[str(target.tids[key])] for key in CREW} == {blocks[of_crew]}


@pytest.mark.outer_rubies
def test_watch(ruby, rbdump):
    """Who has moved, and for how long each has run: by what the target was told to do, and by its own clocks."""
    with crew(ruby) as target, looking(rbdump, "--watch", "0.1", "--json", target.pid) as watch:
        looks = []

        def look():
            looks.append(json.loads(watch.stdout.readline()))
            return looks[-1]

        def after(word):
            """Tells the target a word; returns its answer, and the looks until one that began after that."""
            first = len(looks)
            answer = target.tell(word)
            told = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            while look()["look"]["time"] <= told:
                pass
            return answer, looks[first:]

        def of(key, some):
            return [thread["progress"] for one in some for thread in [by_tid(one).get(target.tids[key])] if thread]

        assert look()["look"] == {"number": 1, "time": looks[0]["look"]["time"], "before": None, "seconds": None, "ended": None}
        assert {thread["progress"] for thread in looks[0]["threads"]} == {None}
        assert target.tell("work")  # its clock begins here
        before, some = after("work")
        cpu, some = after("work")
        used = sum(progress["cpu_ns"] for progress in of("worker", some))
        assert cpu - before - 5_000_000 <= used <= cpu - before + 60_000_000
        assert {progress["moved"] for progress in of("worker", some)} & {"moved", "same-stack"}
        _, some = after("move")
        assert "moved" in [progress["moved"] for progress in of("mover", some)]
        labels = [frame["label"].split("#")[-1] for frame in by_tid(looks[-1])[target.tids["mover"]]["frames"]]
        assert "second_wait" in labels and "outer" in labels
        tid, some = after("begin")
        target.tids["short"] = tid
        assert [progress["moved"] for progress in of("short", some)][0] == "new"
        _, some = after("end")
        assert [one["tid"] for some_look in some for one in some_look["look"]["ended"]] == [tid]
        assert [one["name"] for some_look in some for one in some_look["look"]["ended"]] == ["short"]
        look()
        # Nobody has woken these. A Ruby before 3.0 can wake one of them, to watch for signals instead of another thread.
        for one in looks[1:]:
            crew_of = [of(key, [one])[0] for key in CREW]
            still = [progress for progress in crew_of if progress == {"moved": "not-moved", "cpu_ns": 0}]
            assert len(still) >= (12 if ruby.series >= (3, 0) else 11), crew_of
            assert {progress["moved"] for progress in crew_of} <= {"not-moved", "same-stack"}
            assert one["look"]["before"] == one["look"]["number"] - 1 and one["look"]["seconds"] >= 0.1
        watch.send_signal(signal.SIGINT)
        rest, errors = watch.communicate(timeout=60)
        looks += map(json.loads, rest.splitlines())
        # A thread that does something can be caught while it changes its stack.
        assert (watch.returncode, errors) == (max(map(status_of, looks)), "")
        assert is_untouched(target.pid)


@pytest.mark.newest_ruby
def test_watch_text(ruby, rbdump):
    with crew(ruby) as target:
        done = run(rbdump, "--watch", "0.1", "-n", "3", target.pid)
        once = run(rbdump, target.pid)
    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search(CONTROL, done.stdout)
    looks = re.split(r"^(?=Look )", done.stdout, flags=re.M)[1:]
    for number, look in enumerate(looks, 1):
        since = rf", [\d.]+ s after look {number - 1}" if number > 1 else ""
        assert re.fullmatch(rf"Look {number} at \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d{since}", look.splitlines()[0])
    assert len(looks) == 3
    # Nothing has happened: but for that, each look is as a dump is.
    for look in looks[1:]:
        blocks = look.rstrip("\n").split("\n\n")[1:]
        assert {bool(re.search(r"; ha(s|ve) not moved; 0\.00 s CPU( together)?$", block.split("\n")[0])) for block in blocks} == {True}
    for look in looks:
        without = re.sub(r"; ha(s|ve) not moved; 0\.00 s CPU( together)?$", "", look, flags=re.M)
        assert without.split("\n\n", 1)[1].rstrip("\n") == once.stdout.split("\n\n", 1)[1].rstrip("\n")


def after_a_look(process):
    """Waits until rbdump has taken at least one whole look: what it has read tells."""

    def has_read():
        return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{process.pid}/io").read_text())[1])

    def waits():
        # Between two looks only if it has not begun another one meanwhile.
        before = has_read()
        is_between = pathlib.Path(f"/proc/{process.pid}/syscall").read_text().split()[0] == SYS_PPOLL
        return is_between and has_read() == before and before

    before = wait_until(waits, "rbdump waits for the next look")
    wait_until(lambda: waits() > before, "rbdump has taken a look")


@pytest.mark.outer_rubies
def test_merged(ruby, rbdump):
    """^C ends the looks; the stacks, the threads that began and ended, and the CPU time are those that there were."""
    with crew(ruby) as target, looking(rbdump, "-n", 1000, "-i", "0.1", "--json", target.pid) as looks:
        after_a_look(looks)
        before = target.tell("work")
        after_a_look(looks)
        cpu = target.tell("work")
        target.tell("move")
        tid = target.tell("begin")
        after_a_look(looks)
        target.tell("end")
        after_a_look(looks)
        looks.send_signal(signal.SIGINT)
        output, errors = looks.communicate(timeout=60)
        assert (looks.returncode, errors) == (1, "")
        assert is_untouched(target.pid)
    answer = json.loads(output)
    merged = answer["looks"]
    count = len(merged["each"])
    assert (merged["wanted"], merged["interval_s"]) == (1000, 0.1)
    assert [look["number"] for look in merged["each"]] == list(range(1, count + 1))
    assert all(look["all_threads"] and look["all_fibers"] and 0 <= look["pause_us"] < 1e6 for look in merged["each"])
    assert answer["look"]["number"] == count
    threads = {thread["tid"]: thread for thread in merged["threads"]}
    for thread in merged["threads"]:
        assert sorted(look for stack in thread["stacks"] for look in stack["looks"]) == list(range(thread["first_look"], thread["last_look"] + 1))
        assert sum(thread["states"].values()) == thread["looks"]
    for key in CREW:
        thread = threads[target.tids[key]]
        assert (thread["looks"], len(thread["stacks"]), thread["began"], thread["ended"]) == (count, 1, False, False)
        assert thread["states"] == {"sleeping_forever": count}
        assert thread["moved"] == "not-moved" or ruby.series < (3, 0)
        assert thread["stacks"][0]["frames"] == by_tid(answer)[target.tids[key]]["frames"]
    mover = threads[target.tids["mover"]]
    waits = {frame["label"].split("#")[-1] for stack in mover["stacks"] for frame in stack["frames"]}
    assert {"first_wait", "second_wait"} <= waits and mover["moved"] == "moved"
    # The first piece of work began after the first look, and used 0.2 s, too.
    worker = threads[target.tids["worker"]]
    assert cpu - before + 200_000_000 - 5_000_000 <= worker["cpu_ns"] <= cpu + 10_000_000
    short = [thread for thread in merged["threads"] if thread["name"] == "short"]
    assert [(thread["tid"], thread["began"], thread["ended"]) for thread in short] == [(tid, True, True)]
    assert short[0]["last_look"] < count and tid not in by_tid(answer)


@pytest.mark.three_rubies
@pytest.mark.parametrize("turns", [0, 1], ids=["stays", "turns"])
def test_waits_of_merged(ruby, rbdump, turns):
    """What a thread waits for in the last look; and with its stack, if it was the same in all looks."""
    answers = []
    for how in ([], ["--json"]):
        with crew(ruby) as target:
            told = target.tell("turn")
            with looking(rbdump, "-n", 1000, "-i", "0.1", *how, target.pid) as looks:
                after_a_look(looks)
                for _ in range(turns):
                    told = target.tell("turn")
                after_a_look(looks)
                looks.send_signal(signal.SIGINT)
                output, errors = looks.communicate(timeout=60)
        assert (looks.returncode, errors) == (1, "")
        answers.append((output, hex(int(re.search(r":0x([0-9a-f]+)>", told)[1], 16))))
    (text, queue), (answer, queue_of_answer) = answers
    block = text.split('"turner" ')[1].split("\n\n")[0].splitlines()
    assert block[1] == f"  waits for an element of Thread::Queue {queue} (empty)"
    last = re.search(r"^(\d+) of 1000 looks", text, re.M)[1]
    marks = [line for line in block if "in look" in line]
    assert marks == [f"  (as in look {last}; different in some other looks with this stack)"] * turns
    answer = json.loads(answer)
    (turner,) = [thread for thread in answer["looks"]["threads"] if thread["name"] == "turner"]
    (now,) = [thread for thread in current(answer) if thread["name"] == "turner"]
    assert (now["waits"]["lock"]["kind"], now["waits"]["lock"]["object"]) == ("queue_pop", queue_of_answer)
    (stack,) = turner["stacks"]
    if turns:
        assert stack["waits"] is None
    else:
        assert (stack["waits"]["lock"]["kind"], stack["waits"]["lock"]["object"]) == ("queue_pop", queue_of_answer)


@pytest.mark.newest_ruby
def test_merged_text(ruby, rbdump):
    with crew(ruby, "busy") as target:
        done = run(rbdump, "-n", 3, "-i", "0.1", target.pid)
    assert done.returncode in (0, 1) and done.stderr == ""
    assert not re.search(CONTROL, done.stdout)
    assert re.match(r"3 looks in \d+\.\d\d s, 20 threads in the last look, each look paused the process for at most ", done.stdout.splitlines()[1])
    shown = headings(done.stdout)
    assert re.match(rf'Thread {target.tids["busy"]} "busy" (running|waiting for the GVL)', shown[0])
    (of_crew,) = [line for line in shown if line.startswith("12 threads")]
    assert of_crew.startswith('12 threads, sleeping forever: "tp 003 … 014" (tids ')
    assert of_crew.endswith("; have not moved; 0.00 s CPU together")


@pytest.mark.newest_ruby
@pytest.mark.parametrize("word, said", [("exit", "has ended"), ("exec", "has called exec: it runs another program now")])
@pytest.mark.parametrize("how", [["--watch", "0.1"], ["--watch", "0.1", "-n", "1000"], ["-n", "1000", "-i", "0.1"]], ids=" ".join)
def test_end_of_the_process(ruby, rbdump, word, said, how):
    """All that was seen is shown. Only if more looks were wanted, the status says that something is missing."""
    with crew(ruby) as target, looking(rbdump, *how, "--json", target.pid) as looks:
        after_a_look(looks)
        target.tell(word)
        output, errors = looks.communicate(timeout=60)
        assert errors == f"rbdump: process {target.pid} {said}\n"
        assert looks.returncode == ("-n" in how)
    answers = [json.loads(line) for line in output.splitlines()]
    assert len(answers) >= 2 or "--watch" not in how
    assert {len(current(answer)) for answer in answers} == {19}


def begin_to_trace(tid):
    """A tracer of a thread that rbdump may just have stopped itself: then another one is tried."""
    while True:
        with contextlib.suppress(AssertionError):
            return Tracer(tid).__enter__()


@pytest.mark.newest_ruby
def test_what_is_not_known(ruby, rbdump):
    """While another tracer has a running thread, its stack cannot be read, so it is not said whether it has moved."""
    with crew(ruby, "busy") as target, looking(rbdump, "--watch", "0.1", "--json", target.pid) as watch:
        watch.stdout.readline()
        with contextlib.ExitStack() as stack:
            stack.push(begin_to_trace(target.tids["busy"]))
            while (thread := by_tid(json.loads(watch.stdout.readline()))[target.tids["busy"]])["reason"] != "refused":
                pass
            assert thread["progress"]["moved"] == "not-known" and thread["progress"]["cpu_ns"] > 0
        while (thread := by_tid(json.loads(watch.stdout.readline()))[target.tids["busy"]])["progress"]["moved"] == "not-known":
            pass
        assert (thread["verdict"], thread["progress"]["moved"] in ("moved", "same-stack")) == ("complete", True)
        watch.send_signal(signal.SIGTERM)
        _, errors = watch.communicate(timeout=60)
        assert (watch.returncode, errors) == (1, "")


@pytest.mark.newest_ruby
def test_terminal(ruby, rbdump):
    """Each look is drawn over the one before, on one screen; ^C leaves the last, and the terminal as it was."""
    with crew(ruby) as target:
        status, shown = interrupted([rbdump, "--watch", "0.1", str(target.pid)], lambda shown: shown.count(b"Look 4") > 0)
    assert status == 0
    shown = shown.decode().replace("\r\n", "\n").split("\x1b[?7l\x1b[H")
    assert len(shown) >= 5 and not shown[0].strip()
    for number, screen in enumerate(shown[1:], 1):
        text = re.sub(SGR, "", screen)
        body, *after = text.split("\x1b[J\x1b[?7h")
        if number == len(shown) - 1 and (not after or "^C" in body):
            continue  # ^C came while it was written
        assert text.startswith(f"Look {number} ") or f"Look {number}\x1b" in screen
        assert body.count("\n") <= 23  # the terminal has 24 lines
        assert not re.search(CONTROL, body.replace("\x1b[K", ""))


@pytest.mark.newest_ruby
def test_colours(ruby, rbdump, monkeypatch):
    with crew(ruby) as target:
        arguments = [rbdump, str(target.pid)]
        plain = run(*arguments).stdout
        coloured = run(*arguments, "--color", "always").stdout
        merged = run(rbdump, target.pid, "-n", 2, "-i", "0.1", "--color=always").stdout
        never = shown_on_terminal([*arguments, "--color=never"])
        automatic = shown_on_terminal([*arguments, "--color=auto"])
        dumb = shown_on_terminal(arguments, TERM="dumb")
        empty = shown_on_terminal(arguments, NO_COLOR="")
        without = shown_on_terminal(arguments, NO_COLOR="1")
        forced = shown_on_terminal([*arguments, "--color=always"], NO_COLOR="1")

    def timeless(text):
        return re.sub("paused for .*", "", text)

    for text in (coloured, merged):
        assert "\x1b[" in text and not re.search(CONTROL, re.sub(SGR, "", text))
    assert timeless(re.sub(SGR, "", coloured)) == timeless(plain)
    assert b"\x1b" not in never + without + dumb
    assert b"\x1b[" in automatic and b"\x1b[" in forced and b"\x1b[" in empty


@pytest.mark.newest_ruby
def test_unpaused(ruby, rbdump):
    """Without a stop, too: also of looks, none is paused."""
    with crew(ruby) as target:
        done = run(rbdump, "-n", 3, "-i", "0.1", "--no-stop", "--json", target.pid)
        assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert [(look["pause_us"], look["pauses"]) for look in answer["looks"]["each"]] == [(None, 0)] * 3
    assert {thread["tid"] for thread in answer["looks"]["threads"]} == set(target.tids.values())


@pytest.mark.parametrize(
    "arguments",
    [
        ["1", "--watch", "0"], ["1", "--watch", "0.05"], ["1", "--watch", "x"], ["1", "--watch", "nan"], ["1", "--watch"],
        ["1", "-n", "0"], ["1", "-n", "1.5"], ["1", "-n", "1001"], ["1", "-n", "x"], ["1", "-i", "1"], ["1", "-n", "2", "-i", "1e9"],
        ["1", "--watch", "1", "-i", "1"], ["1", "--watch", "1", "--children"], ["1", "-n", "2", "--children"],
        ["--core", "core", "--watch", "1"], ["--core", "core", "-n", "2"], ["1", "--color", "red"], ["1", "--color"],
        ["--gen-offsets", "/bin/true", "--watch", "1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_refused(rbdump, arguments):
    check_refusal(run(rbdump, *arguments), USAGE)


@pytest.mark.parametrize("how", [["--watch", "1"], ["-n", "2"]], ids=" ".join)
def test_no_process(rbdump, how):
    """A first look that fails is a dump that fails."""
    with subprocess.Popen(["true"]) as gone:
        gone.wait(30)
        done = run(rbdump, gone.pid, *how)
        check_refusal(done, 2, str(gone.pid))
