"""What threads wait for, who holds it, and deadlocks: as the target itself tells, live and from a core."""

import json
import re

import pytest
from harness.core import gcore_of, read_core
from harness.dump import as_text, current, difference, dump, rbdumps_frames, rubys_frames, run, thread_of

# Of each thread of locks.rb: the kind of its wait, the object's name, and the thread that holds it.
WAITS = {
    "two 0": ("mutex", "two 1", "two 1"),
    "two 1": ("mutex", "two 0", "two 0"),
    "three 0": ("mutex", "three 1", "three 1"),
    "three 1": ("mutex", "three 2", "three 2"),
    "three 2": ("mutex", "three 0", "three 0"),
    "behind": ("mutex", "two 0", "two 0"),
    "three monitors 0": ("monitor", "three monitors 1", "three monitors 1"),
    "three monitors 1": ("monitor", "three monitors 2", "three monitors 2"),
    "three monitors 2": ("monitor", "three monitors 0", "three monitors 0"),
    "three joins 0": ("join", "three joins 1", "three joins 1"),
    "three joins 1": ("join", "three joins 2", "three joins 2"),
    "three joins 2": ("join", "three joins 0", "three joins 0"),
    "monitors 0": ("monitor", "monitors 1", "monitors 1"),
    "monitors 1": ("monitor", "monitors 0", "monitors 0"),
    "joins 0": ("join", "joins 1", "joins 1"),
    "joins 1": ("join", "joins 0", "joins 0"),
    "mixed holder": ("join", "mixed waiter", "mixed waiter"),
    "mixed waiter": ("mutex", "mixed", "mixed holder"),
    "fibers 0": ("mutex", "fibers 1", "fibers 1"),
    "fibers 1": ("mutex", "fibers 0", "fibers 0"),
    "sleep waiter": ("mutex", "sleep", "sleep holder"),
    "read waiter": ("mutex", "read", "read holder"),
    "socket waiter": ("mutex", "socket", "socket holder"),
    "chain waiter": ("mutex", "chain", "chain holder"),
    "middle waiter": ("mutex", "middle", "middle holder"),
    "middle holder": ("mutex", "chain", "chain holder"),
    "chain holder": ("queue_pop", "chain queue", None),
    "ended waiter": ("mutex", "ended", None),
    "empty 0": ("queue_pop", "empty", None),
    "empty 1": ("queue_pop", "empty", None),
    "full": ("queue_push", "full", None),
    "timed empty": ("queue_pop", "timed empty", None),
    "timed full": ("queue_push", "timed full", None),
    "condition": ("condition", "condition", None),
    "timed condition": ("condition", "condition", None),
    "timed join": ("join", "timed join", "mixed waiter"),
    "pool waiter": ("condition", "pool", None),
    "gem pool waiter": ("condition", "gem pool", None),
    "sleep holder": ("sleep", None, None),
    "child": ("process", None, None),
    "read holder": None,
    "socket holder": None,
}
LIMITED = {"timed empty", "timed full", "timed condition", "timed join", "pool waiter", "gem pool waiter", "sleep holder"}
DEADLOCKS = [
    ["joins 0", "joins 1"],
    ["mixed holder", "mixed waiter"],
    ["monitors 0", "monitors 1"],
    ["three 0", "three 1", "three 2"],
    ["three joins 0", "three joins 1", "three joins 2"],
    ["three monitors 0", "three monitors 1", "three monitors 2"],
    ["two 0", "two 1"],
]
DUMPS, DUMPS_OF_SOAK = 50, 10_000  # of a program without a deadlock


@pytest.fixture(params=["paused", "core"])
def answer_of(request, rbdump, tmp_path):
    def answer(target):
        if request.param == "core":
            with gcore_of(target.pid, tmp_path) as core:
                return read_core(rbdump, core)
        return dump(rbdump, target.pid)

    return answer


def address(told):
    """Of "#<Class:0x00007f…>", as rbdump writes it."""
    return hex(int(re.search(rb":(0x\h+)>".replace(rb"\h", rb"[0-9a-f]"), told)[1], 16))


def class_of(told):
    return as_text(re.search(rb"#<(.*):0x", told)[1])


def names_of(answer, deadlock, keys):
    return sorted({keys[answer["threads"][index]["tid"]] for index in deadlock["threads"]})


def check_wait(key, lock, expected, answer, target, keys):
    if expected is None:
        assert lock is None, key
        return
    kind, name, holder = expected
    assert lock is not None and lock["kind"] == kind, (key, lock)
    if name:
        told = target.ready["objects"][name]
        assert (lock["object"], lock["class"]) == (address(told), class_of(told)), key
    if holder:
        entry = answer["threads"][lock["holder"]["index"]]
        told = (lock["holder"]["state"], keys[entry["tid"]], entry["thread"])
        assert told == ("known", holder, lock["holder"]["thread"]), key
        # Not if it ends by itself, or if the holder waits for nobody in particular.
        followed = entry["waits"]["lock"] and entry["waits"]["lock"]["holder"]
        suspended = entry["fiber"] and not entry["fiber"]["current"]
        assert lock["confirmed"] == (key not in LIMITED and bool(followed or suspended)), key
    assert lock["limited"] == (key in LIMITED), key


@pytest.mark.target("locks.rb")
def test_locks(ruby, start, answer_of):
    target = start(ruby, "locks.rb")
    answer = answer_of(target)
    keys = {tid: key for key, tid in target.ready["tasks"].items()}
    found = {keys[entry["tid"]]: entry for entry in current(answer) if entry["tid"] in keys}
    assert set(found) == set(keys.values())
    for key, entry in found.items():
        if key in WAITS:
            check_wait(key, entry["waits"]["lock"], WAITS[key], answer, target, keys)
    locks = {key: entry["waits"]["lock"] for key, entry in found.items()}
    assert (locks["empty 0"]["length"], locks["empty 0"]["max"], locks["empty 0"]["waiters"]) == (0, None, 2)
    assert (locks["full"]["length"], locks["full"]["max"]) == (3, 3)
    assert (locks["sleep holder"]["seconds"], locks["timed join"]["seconds"]) == (3600.5, 3600.0)
    assert locks["timed condition"]["seconds"] == locks["pool waiter"]["seconds"] == 3600.0
    if ruby.id == "debian":
        assert {"socket waiter", "gem pool waiter"} <= set(found)
    if "gem pool waiter" in found:
        assert 3000 < locks["gem pool waiter"]["seconds"] <= 3600
        assert "ConnectionPool::TimedStack#pop" in {frame["name"] for frame in found["gem pool waiter"]["frames"]}
        assert "ConnectionPool#with" in {frame["name"] for frame in found["gem pool user"]["frames"]}
    assert locks["condition"]["seconds"] is None and locks["empty 0"]["seconds"] is None
    if ruby.series >= (3, 2):
        assert (locks["timed empty"]["seconds"], locks["timed full"]["seconds"]) == (3600.25, 3601.0)
    assert locks["child"]["child"] == target.ready["child"]
    # Since which frame: the caller of synchronize.
    (hold,) = found["sleep holder"]["holds"]
    assert hold["object"] == address(target.ready["objects"]["sleep"]) and hold["waiters"] == 1
    frames = found["sleep holder"]["frames"]
    assert frames[hold["frame"]]["label"].endswith("synchronize")
    assert frames[hold["frame"] + 1]["name"].startswith("block in ") and "held" in frames[hold["frame"] + 1]["name"]

    expected = [names for names in DEADLOCKS if names[0] in found] + [["fibers 0", "fibers 1"]]
    if ruby.series >= (3, 0):
        expected.append(["ended waiter"])
        assert locks["ended waiter"]["holder"]["state"] == "ended"
        left = answer["threads"][locks["fibers 1"]["holder"]["index"]]
        assert not left["fiber"]["current"] and left["holds"][0]["object"] == locks["fibers 1"]["object"]
    assert sorted(names_of(answer, deadlock, keys) for deadlock in answer["deadlocks"]) == sorted(expected)
    ended = [names_of(answer, deadlock, keys) for deadlock in answer["deadlocks"] if deadlock["holder_ended"]]
    assert ended == [names for names in expected if names == ["ended waiter"]]


@pytest.mark.newest_ruby
@pytest.mark.target("locks.rb")
def test_text(ruby, start, rbdump):
    """Deadlocks come first; a holder that is blocked itself is followed."""
    target = start(ruby, "locks.rb")
    done = run(rbdump, "-p", target.pid)
    assert done.returncode == 0, done.stderr
    head = done.stdout[: done.stdout.index("\nThread ")]
    objects = {name: address(told) for name, told in target.ready["objects"].items()}
    monitors = "monitors 0" in objects
    assert head.count("\nDeadlock of 2\n") == 3 + monitors and head.count("\nDeadlock of 3\n") == 3 + monitors
    assert "\nDeadlock: the holder of a lock has ended\n" in head
    assert re.search(rf'thread \d+ "two 0" waits for Thread::Mutex {objects["two 1"]}, held by thread \d+ "two 1" since \S*locks\.rb:\d+:in \'', head)
    chain = rf"""
  waits for Thread::Mutex {objects["chain"]}, held by thread (\d+) "chain holder" since .*
  -> thread \1 "chain holder" waits for an element of Thread::Queue {objects["chain queue"]} \(empty\)
"""
    assert re.search(chain, done.stdout), done.stdout
    two_links = rf"""
  waits for Thread::Mutex {objects["middle"]}, held by thread (\d+) "middle holder" since .*
  -> thread \1 "middle holder" waits for Thread::Mutex {objects["chain"]}, held by thread (\d+) "chain holder" since .*
  -> thread \2 "chain holder" waits for an element of Thread::Queue {objects["chain queue"]} \(empty\)
"""
    assert re.search(two_links, done.stdout), done.stdout
    behind = rf"""
  waits for Thread::Mutex {objects["two 0"]}, held by thread (\d+) "two 0" since .*
  -> thread \1 "two 0" waits for .*
  -> a deadlock
"""
    assert re.search(behind, done.stdout), done.stdout
    assert '"behind"' not in head
    assert re.search(r'held by thread (\d+) "read holder" since .*\n  -> thread \1 "read holder" is blocked, at .*, in IO#read\n', done.stdout)


@pytest.mark.newest_ruby
@pytest.mark.target("locks.rb")
def test_with_native_frames(ruby, start, rbdump):
    """Native frames among those of Ruby change nothing about who holds what, and since which frame."""
    target = start(ruby, "locks.rb")
    since = [
        sorted(re.findall(r"held by thread .* since .*|is blocked, at .*", run(rbdump, "-p", target.pid, *arguments).stdout))
        for arguments in ([], ["--native"])
    ]
    assert since[0] == since[1] and any("two 0" in line for line in since[0])
    for thread in dump(rbdump, target.pid, "--native")["threads"]:
        for hold in thread["holds"]:
            if hold["frame"] is not None:
                assert "synchronize" in thread["frames"][hold["frame"]]["name"]
                assert thread["frames"][hold["frame"]]["kind"] != "native"


@pytest.mark.newest_ruby
@pytest.mark.target("locks.rb")
def test_in_merged_looks(ruby, start, rbdump):
    """Several looks show the deadlocks, too."""
    target = start(ruby, "locks.rb")
    heads = [
        text[: text.index("\nThread ")]
        for text in (run(rbdump, "-p", target.pid, *arguments).stdout for arguments in ([], ["-n", 2, "-i", 0.1]))
    ]
    deadlocks = [head[head.index("\nDeadlock") :] for head in heads]
    assert deadlocks[0] == deadlocks[1]


def waits_by_heading(text):
    """{ "Thread 4711": its lines between the heading and the frames }, without how much time is left."""
    blocks = re.findall(r"^(Thread \d+|Fiber \S+) .*\n((?: {2}\S.*\n| {6}\S.*\n)*)", text, re.M)
    return {name: re.sub(r" \(\S+ s after the dump\)", "", lines) for name, lines in blocks}


@pytest.mark.three_rubies
@pytest.mark.since((2, 3), "Thread#name")
@pytest.mark.target("locks.rb")
def test_waits_in_merged_looks(ruby, start, rbdump):
    """Several looks show what each thread waits for and holds, in the words of one; and JSON has it for the stack."""
    target = start(ruby, "locks.rb")
    once, merged = (run(rbdump, "-p", target.pid, "--all", *how).stdout for how in ([], ["-n", 3, "-i", 0.1]))
    assert waits_by_heading(merged) == waits_by_heading(once)
    assert sum("waits for" in lines for lines in waits_by_heading(once).values()) > 20
    answer = dump(rbdump, target.pid, "-n", 3, "-i", 0.1)
    names = {entry["thread"]: entry["name"] for entry in answer["threads"]}
    checked = 0
    for thread in answer["looks"]["threads"]:
        (stack,) = thread["stacks"]
        lock, expected = stack["waits"]["lock"], WAITS.get(thread["name"])
        if thread["name"] not in WAITS or thread["suspended_fiber"]:
            continue
        checked += 1
        assert (lock and lock["kind"]) == (expected and expected[0]), thread["name"]
        if expected and expected[1]:
            assert lock["object"] == address(target.ready["objects"][expected[1]])
        if expected and expected[2]:
            assert names[lock["holder"]["thread"]] == expected[2]
        for hold in stack["waits"]["holds"]:
            assert hold["frame"] is None or "synchronize" in stack["frames"][hold["frame"]]["name"]
    assert checked >= 24


@pytest.mark.newest_ruby
@pytest.mark.target("locks.rb")
def test_unpaused(ruby, start, rbdump):
    """What was not copied at one moment tells no deadlock."""
    target = start(ruby, "locks.rb")
    answer = dump(rbdump, target.pid, "--no-stop")
    assert answer["deadlocks"] is None
    names = {entry["name"]: entry["waits"]["lock"] for entry in current(answer)}
    assert names["two 0"]["kind"] == "mutex"


@pytest.mark.since((3, 1), "a scheduler that fibers wait in")
def test_scheduler(ruby, start, rbdump):
    """A fiber that waits in a hook of its scheduler: for whom is that of the caller of the hook."""
    target = start(ruby, "fiber_scheduler.rb")
    answer = dump(rbdump, target.pid)
    fibers = [entry for entry in answer["threads"] if not entry["fiber"]["current"]]
    kinds = [lock and lock["kind"] for lock in (entry["waits"]["lock"] for entry in fibers)]
    assert {kind: kinds.count(kind) for kind in ("mutex", "queue_pop", "sleep")} == {"mutex": 25, "queue_pop": 25, "sleep": 25}
    for entry in fibers:
        lock = entry["waits"]["lock"]
        if lock and lock["kind"] == "mutex":
            assert answer["threads"][lock["holder"]["index"]]["main"]
    assert answer["deadlocks"] == []


# Of each fiber of fiber_waits.rb: the kind of its wait, whether it has a time limit, and which, if it is known.
SCHEDULED = {
    "joins": ("join", False, None),
    "joins nil": ("join", False, None),
    "joins for a while": ("join", True, 3600),
    "joins for a fraction": ("join", True, None),
    "sleeps again": ("mutex", False, None),
    "waits again": ("mutex", False, None),
    "condition": ("condition", True, 3600),
    "pops": ("queue_pop", False, None),
    "pops for a while": ("queue_pop", True, 3600.25),
    "sleeps": ("sleep", False, None),
    "sleeps for a while": ("sleep", True, 3600.5),
    "sleeps for a fraction": ("sleep", True, None),
    "joins from C": ("join", False, None),
    "sleeps for a while, nested": ("sleep", True, 3600.75),
    "sleeps, nested": ("sleep", False, None),
}


@pytest.mark.since((3, 1), "a scheduler that fibers wait in")
@pytest.mark.target("fiber_waits.rb")
def test_limits_in_a_scheduler(ruby, start, rbdump):
    """No state of a thread says whether a fiber's wait in a scheduler has a limit. Only one without a limit is a deadlock."""
    target = start(ruby, "fiber_waits.rb")
    answer = dump(rbdump, target.pid)
    checked = set()
    for told in target.ready["fibers"]:
        key = as_text(told["key"])
        same = [
            entry["waits"]["lock"]
            for entry in answer["threads"]
            if not entry["fiber"]["current"] and not difference(rbdumps_frames(entry), rubys_frames(told))
        ]
        # Several join at the same place: each another thread.
        holders = [lock["holder"] and answer["threads"][lock["holder"]["index"]]["name"] for lock in same]
        (lock,) = [lock for lock, holder in zip(same, holders, strict=True) if holder in (None, f"wants {key}", f"takes {key}")]
        assert (lock["kind"], lock["limited"], lock["seconds"]) == SCHEDULED[key], key
        assert (lock["holder"] is not None) == (lock["kind"] in ("mutex", "join")), key
        checked.add(key)
    assert checked == set(SCHEDULED) - ({"pops for a while"} if ruby.series < (3, 2) else set())
    keys = {entry["tid"]: entry["name"] for entry in answer["threads"]}
    assert sorted(names_of(answer, deadlock, keys) for deadlock in answer["deadlocks"]) == [
        ["nested", "wants joins from C"],
        ["scheduled", "wants joins"],
        ["scheduled", "wants joins nil"],
    ]


def check_contention(rbdump, target, dumps):
    """Gives the kinds of the waits."""
    waits = set()
    for _ in range(dumps):
        done = run(rbdump, "-p", target.pid, "--json")
        assert done.returncode in (0, 1), done.stderr
        answer = json.loads(done.stdout)
        assert answer["deadlocks"] == []
        waits |= {entry["waits"]["lock"]["kind"] for entry in answer["threads"] if entry["waits"] and entry["waits"]["lock"]}
    return waits


@pytest.mark.newest_ruby
@pytest.mark.long
@pytest.mark.target("contention.rb")
def test_no_deadlock(ruby, start, rbdump, times):
    """A program that locks in one order has no deadlock, at whatever moment it is dumped."""
    target = start(ruby, "contention.rb")
    assert {"mutex", "gvl"} <= check_contention(rbdump, target, times(DUMPS, DUMPS_OF_SOAK))


@pytest.mark.newest_ruby
@pytest.mark.long
@pytest.mark.target("contention_others.rb")
def test_no_deadlock_of_others(ruby, start, rbdump, times):
    """The same with Monitors, and with a Mutex that suspended fibers hold."""
    target = start(ruby, "contention_others.rb")
    wanted = {"mutex", "monitor"} if target.ready["monitors"] else {"mutex"}
    assert wanted <= check_contention(rbdump, target, times(DUMPS, DUMPS_OF_SOAK))
