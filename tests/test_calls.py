"""In which system call a thread is, and what its descriptors are: as the program, /proc, ss and lsof say."""

import contextlib
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from conftest import note_not_applicable
from harness.core import gcore_of, read_core
from harness.dump import dump, run
from harness.process import children_of, family, innermost, is_untouched, name_of, status, task_states, wait_until
from harness.target import TARGETS

CALLS = TARGETS / "calls"
INSIDE = 'ip link set lo up && mount -t tmpfs tmpfs "$0" && exec "$@"'
PLACES = {
    "here": (),
    "namespaces": ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", INSIDE),
}
SYS_POLL = 7
# With this one, the kernel goes on with some calls after something has stopped the process: anybody may do that.
SYS_RESTART = 219


def call_number(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return None


def wait_until_in(pid, number):
    wait_until(lambda: call_number(pid) in (str(number), str(SYS_RESTART)), f"process {pid} is in system call {number}")


@contextlib.contextmanager
def started(*command, **options):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


@contextlib.contextmanager
def kinds(ruby, folder, place=()):
    """A Ruby that waits for many kinds of descriptors: its pid here, and what is known of them, by number."""
    enter = (*place, folder) if place else ()
    with started(*enter, sys.executable, CALLS / "kinds.py", folder, ruby.path, CALLS / "poll.rb") as process:
        opened = json.loads(process.stdout.readline())
        pid = innermost(process.pid)
        wait_until_in(pid, SYS_POLL)
        try:
            yield pid, opened
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)


def call_of(answer, name=None):
    """The call of the main thread, or of the thread of a name."""
    (thread,) = (thread for thread in answer["threads"] if (thread["main"] if name is None else thread["name"] == name))
    return thread["waits"]["syscall"]


def known_here(facts, pid):
    """What the program knows of a descriptor, with its pid as it is here."""
    facts = {key: value for key, value in facts.items() if key not in ("quiet", "watched")}
    if facts.get("process") == "self":
        facts["process"] = pid
    if "ends" in facts:
        found = [end for told in facts["ends"] for end in ends_here(told, pid)]
        facts["ends"] = sorted(found, key=lambda end: end["process"])
    return facts


def ends_here(told, pid):
    """An end that the program has, or all of its children: with who has it, as they are here."""
    processes = [pid] if told["process"] == "self" else family(pid)[1:]
    assert processes
    return [{**told, "process": process, "name": name_of(process)} for process in processes]


# ss calls states so; it abbreviates nothing else that is open here.
STATES = {"ESTAB": "established", "UNCONN": "unconnected", "LISTEN": "listen", "FIN-WAIT-2": "fin-wait-2", "CLOSE-WAIT": "close-wait"}


def of_ss(pid, place):
    """{ inode: what ss says }, of the network namespace of a process"""
    enter = ["nsenter", f"--net=/proc/{pid}/ns/net"] if PLACES[place] else []
    command = [*enter, "ss", "-Hnae"]
    told = {}
    for line in subprocess.run([*command, "-tu"], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines():
        _, state, received, sent, local, remote, rest = line.split(maxsplit=6)
        inode = int(re.search(r"ino:(\d+)", rest)[1])
        told[inode] = {"state": STATES.get(state), "local": local, "receive_queue": int(received)}
        if not remote.endswith(":*"):
            told[inode]["remote"] = remote
        if state != "LISTEN":
            told[inode]["send_queue"] = int(sent)
    unix = subprocess.run([*command, "-x"], capture_output=True, text=True, check=True, timeout=60).stdout
    for _, state, received, sent, name, inode, peer in re.findall(r"u_(str|dgr|seq) +(\S+) +(\d+) +(\d+) +(\S.*?) (\d+) +\* (\d+)", unix, re.S):
        known = {"state": "connected" if state == "ESTAB" else STATES.get(state), "receive_queue": int(received)}
        # A name with a NUL in it is cut by ss.
        if name.startswith("/"):
            known["local"] = name
        if peer != "0":
            known["peer"] = int(peer)
        told[int(inode)] = {**known, "send_queue": int(sent)}
    return told


# Of what lsof says in its column TYPE.
LSOF = {"REG": {"file", "memfd", "namespace"}, "DIR": {"directory"}, "CHR": {"terminal", "device"}, "FIFO": {"pipe", "fifo"}, "LINK": {"symlink"}}
SOCKETS = {"IPv4", "IPv6", "unix", "netlink", "pack", "raw", "raw6", "sock"}


def of_lsof(pid):
    """{ descriptor: (type, name) }"""
    done = subprocess.run(["lsof", "-a", "-p", str(pid), "-d", "0-999", "-n", "-P", "-F", "ftn"], capture_output=True, check=False, timeout=60)
    return {
        int(fd): (kind.decode(), name)
        for fd, kind, name in re.findall(rb"^f(\d+)\n(?:a.\n)?t(\S+)\n(?:\w*\n)*?n(.*)$", done.stdout, re.M)
    }


@pytest.mark.any_ruby
@pytest.mark.parametrize("place", PLACES)
def test_kinds(ruby, rbdump, tmp_path, place):
    if PLACES[place] and os.geteuid() != 0:
        note_not_applicable("namespaces: need root")
        return
    with kinds(ruby, tmp_path, PLACES[place]) as (pid, opened):
        call = call_of(dump(rbdump, pid))
        sockets, listed = of_ss(pid, place), of_lsof(pid)
        assert is_untouched(pid)
        assert (call["name"], call["timeout_s"], call["more_fds"]) == ("poll", 86400, 0)
        told = {fd["fd"]: fd for fd in call["fds"]}
        quiet = {name: one for name, one in opened.items() if one["quiet"]}
        assert set(told) == {one["fd"] for one in quiet.values()}
        assert len({one["kind"] for one in quiet.values()}) >= 14 and len(quiet) >= 30
        for name, one in quiet.items():
            known = known_here(one, pid)
            assert {key: told[one["fd"]].get(key) for key in known} == known, name
        # The targets of the epoll set, each with its own facts.
        targets = {target["fd"]: target for target in told[opened["epoll"]["fd"]]["targets"]}
        assert set(targets) == {fd for fd, _, _ in opened["epoll"]["watched"]}
        for fd, events, name in opened["epoll"]["watched"]:
            known = {"replaced": True} if name is None else known_here(opened[name], pid)
            assert {key: targets[fd].get(key) for key in known} == known, name
            assert targets[fd]["events"] == events
        described = [*told.values(), *targets.values()]
        for one in described:
            link = None if "replaced" in one else os.readlink(f"/proc/{pid}/fd/{one['fd']}")
            if one.get("kind") in ("pipe", "socket"):
                assert link == f"{one['kind']}:[{one['inode']}]"
            if one.get("inode") in sockets:
                known = sockets.pop(one["inode"])
                assert {key: one.get(key) for key in known} == known, link
        # lsof reads the tables of its own network namespace.
        for one in described if place == "here" else ():
            kind, name = listed[one["fd"]]
            if "replaced" in one:
                continue
            if one["kind"] == "socket":
                assert kind in SOCKETS
            else:
                assert one["kind"] in LSOF.get(kind, {one["kind"]}), kind
            if one.get("protocol", "").startswith(("TCP", "UDP")) and "local" in one:
                ours = one["local"] + (f"->{one['remote']}" if "remote" in one else "")
                assert name.decode().split(" ")[0] == re.sub(r"\[::ffff:([\d.]+)\]", r"\1", ours)


@pytest.mark.any_ruby
def test_kinds_as_text(ruby, rbdump, tmp_path):
    """Each descriptor has its line, and no name controls the terminal."""
    with kinds(ruby, tmp_path) as (pid, opened):
        done = run(rbdump, "-p", pid)
    assert not set(done.stdout) & {chr(code) for code in [*range(10), *range(11, 32), 0x7F, 0x202E]}
    lines = done.stdout.splitlines()
    words = {int(found[1]): found[2] for found in (re.fullmatch(r" {6}fd (\d+) \(errors\): (.*)", line) for line in lines) if found}

    def text(name):
        return words[opened[name]["fd"]]

    end = rf"process {pid} \(ruby\S*\) fd "
    for name, wanted in {
        "file": re.escape(f"file {opened['file']['path']}, at offset 4"),
        "deleted": re.escape(f"file {opened['deleted']['path']} (deleted), at offset 0"),
        "hostile": r"file \S+/\\x1B\[31m\\x0A\\xFF\\xE2\\x80\\xAE, at offset 0",
        "pipe-read": rf"pipe, written by {end}{opened['pipe-write']['fd']}",
        "fifo-write": rf"FIFO {re.escape(opened['fifo-write']['path'])}, read by {end}{opened['fifo-read']['fd']}",
        "tcp4-listen": re.escape(f"TCP socket {opened['tcp4-listen']['local']}, listen, 1 connection waits"),
        "tcp4-server": re.escape(f"TCP socket {opened['tcp4-server']['local']} -> {opened['tcp4-server']['remote']}, established, 7 bytes received, ")
        + rf"the other end: {end}{opened['tcp4-client']['fd']}",
        "unix-listen": re.escape(f"Unix stream socket {opened['unix-listen']['local']}, listen, 0 connections wait (at most 5)"),
        "netlink": r"NETLINK socket \(ROUTE\)",
        "eventfd": "eventfd, count 31",
        "timerfd": r"timerfd, expires in \d+\.\d s, every 7 s",
        "signalfd": "signalfd of SIGUSR2, SIGWINCH",
        "inotify": "inotify, 2 watches",
        "pidfd": f"pidfd of process {pid}",
        "epoll": f"epoll set of {len(opened['epoll']['watched'])} descriptors",
    }.items():
        assert re.fullmatch(wanted, text(name)), text(name)


@pytest.mark.any_ruby
@pytest.mark.alone
@pytest.mark.parametrize("place", PLACES)
def test_mounts_are_read_once(ruby, rbdump, tmp_path, place):
    """The list of mounts is long on some machines: one look reads it once for all descriptors, whatever their number."""
    if PLACES[place] and os.geteuid() != 0:
        note_not_applicable("namespaces: need root")
        return
    log = tmp_path / "strace.log"
    with kinds(ruby, tmp_path, PLACES[place]) as (pid, _):
        strace = ["strace", "-f", "-qq", "-e", "trace=openat", "-e", "signal=none", "-o", log]
        done = subprocess.run([*strace, rbdump, "-p", str(pid), "--json"], check=True, capture_output=True, text=True, timeout=60)
    fds = call_of(json.loads(done.stdout))["fds"]
    assert len([fd for fd in fds if fd.get("path", "").startswith("/")]) >= 10
    assert {fd["kind"] for fd in fds} >= {"file", "fifo", "directory", "device"}
    opened = re.findall(r'"(/proc/[^"]*/mountinfo)"', log.read_text())
    assert opened.count(f"/proc/{pid}/mountinfo") == 1
    # That of rbdump is another one only if rbdump is in another mount namespace.
    assert len(opened) == (1 if place == "here" else len(set(opened))), opened


def without_a_time(call):
    return call["text"].replace(call["until"], "UNTIL") if call["until"] else call["text"]


@contextlib.contextmanager
def asleep_in_calls(ruby, folder, *names):
    """{ pid: (name, number of the call, words, until when) }, and the process whose children they are"""
    with started(ruby.path, "--disable-gems", CALLS / "calls.rb", folder, *names) as process:
        asleep = {}
        for line in iter(process.stdout.readline, b"\n"):
            pid, name, number, words, *until = line.decode().rstrip("\n").split("\t")
            asleep[int(pid)] = (name, number, bytes.fromhex(words).decode(), int(until[0]) if until and until[0] else None)
        for pid, (name, number, *_) in asleep.items():
            wait_until_in(pid, number)
            if name.startswith("wait"):
                wait_until(lambda: all(task_states(child) == {"S"} for child in children_of(pid)), "its child sleeps")
        yield asleep, process.pid


def check_words(call, name, words, until_ns):
    told = call["text"].replace(call["until"], "UNTIL") if call["until"] else call["text"]
    assert re.sub(r" \(\S+ s after the dump\)", "", told) == words, name
    if until_ns is not None:
        until = datetime.datetime.fromisoformat(call["until"].replace("Z", "+00:00"))
        assert abs(until.timestamp() - until_ns / 1e9) < 1, name


def parent_of(pid):
    return int(status(pid, "PPid"))


@pytest.mark.outer_rubies
@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_calls(ruby, rbdump, tmp_path, mode):
    """Each call, in the words that its process has for it; /proc says that it is in this call."""
    with asleep_in_calls(ruby, tmp_path) as (asleep, parent):
        done = run(rbdump, "-p", parent, "--children", "--json", *mode)
        answers = {answer["pid"]: answer for answer in map(json.loads, done.stdout.splitlines())}
        assert len(asleep) >= 35
        for pid, (name, number, words, until_ns) in asleep.items():
            call = call_of(answers[pid])
            assert (call["number"], call["missing"]) == (int(number), None), name
            check_words(call, name, words, until_ns)
            assert call_number(pid) in (number, str(SYS_RESTART))
            assert call["arguments"][:2] == pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[1:3], name
            assert is_untouched(pid)
            # Who has what it waits for.
            if name == "flock":
                assert call["fds"][0]["holder"] == pid
            elif name == "fcntl":
                assert parent_of(call["fds"][0]["holder"]) == pid
            elif name.startswith("wait"):
                (child,) = call["children"]
                assert child["state"] == "asleep" and parent_of(child["process"]) == pid
                assert call.get("child", child["process"]) == child["process"]


@pytest.mark.newest_ruby
def test_calls_in_core(ruby, rbdump, tmp_path):
    """The same, from registers and memory; the descriptors have no more than their numbers."""
    names = ["poll", "pselect6", "connect", "clock_nanosleep until", "futex until monotonic"]
    with asleep_in_calls(ruby, tmp_path, *names) as (asleep, _):
        for pid, (name, number, words, until_ns) in asleep.items():
            with gcore_of(pid, tmp_path) as core:
                call = call_of(read_core(rbdump, core))
            assert call["number"] == int(number), name
            assert not [fd for fd in call["fds"] if set(fd) - {"fd", "events", "role"}]
            if name == "futex until monotonic":
                # What its clock showed is not in a core.
                assert (call["until"], call["remaining_s"]) == (None, None)
                assert call["text"] == words.replace("until UNTIL at the latest", "with a timeout")
            else:
                check_words(call, name, words, until_ns)


@pytest.mark.three_rubies
def test_threads(ruby, rbdump, tmp_path):
    """Methods of Ruby: each thread waits for its descriptor, whichever call its Ruby uses for that."""
    with started(ruby.path, "--disable-gems", CALLS / "threads.rb", tmp_path) as process:
        told = [line.decode().rstrip("\n").split("\t") for line in iter(process.stdout.readline, b"\n")]

        def all_wait():
            answer = dump(rbdump, process.pid)
            calls = [thread["waits"]["syscall"] if thread["waits"] else None for thread in answer["threads"]]
            # rbdump stops a thread that it has seen awake; of its call, only the registers are known.
            return all(call and call["name"] and not call["incomplete"] for call in calls) and answer

        answer = wait_until(all_wait, "all threads wait")
        assert len(told) == 7
        for name, fd, kind in told:
            call = call_of(answer, name)
            # Until 2.7, Ruby waits for an eventfd of its own, too.
            assert [(one["fd"], one["kind"]) for one in call["fds"] if one["kind"] != "eventfd"] == [(int(fd), kind)], name
            assert call["timeout_s"] == (100_000 if name == "select" else None)
        states = {name: [one["state"] for one in call_of(answer, name)["fds"] if one["kind"] == "socket"] for name in ("accept", "client")}
        assert states == {"accept": ["listen"], "client": ["established"]}
        assert call_of(answer, "flock")["fds"][0]["holder"] == process.pid
        sleep = call_of(answer, "sleep")
        # Until 2.7, a sleeping thread can have the duty to wait for signals, for as long as it sleeps or for less.
        assert sleep["name"] != "futex" or 99_000 < sleep["remaining_s"] < 100_000
        child = call_of(answer, "child")
        if child["name"] == "wait4":
            assert parent_of(child["child"]) == process.pid


@pytest.mark.newest_ruby
@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_call_is_of_its_stack(ruby, rbdump, mode):
    """A thread that waits in turn, in two methods: the call is that of the method, or it is not shown."""
    shown = []
    with started(ruby.path, "--disable-gems", CALLS / "turns.rb") as process:
        fds = [int(word) for word in process.stdout.readline().split()]
        for count in range(400):
            if count >= 25 and set(shown) == set(fds):
                break
            answer = json.loads(run(rbdump, "-p", process.pid, "--json", *mode).stdout)
            (thread,) = (one for one in answer["threads"] if one["name"] == "reader")
            call = thread["waits"] and thread["waits"]["syscall"]
            inside = [frame["label"].split("#")[-1] for frame in thread["frames"]]
            if call and call["missing"]:
                assert set(call) == {"name", "missing"} and call["name"] is None
            elif call and call["fds"] and thread["verdict"] == "complete":
                # Ruby's own code of IO#sysread comes before and after the call.
                assert ("first" in inside, "second" in inside) == (call["fds"][0]["fd"] == fds[0], call["fds"][0]["fd"] == fds[1])
                shown.append(call["fds"][0]["fd"])
    assert set(shown) == set(fds)


@pytest.mark.any_ruby
def test_many_descriptors(ruby, rbdump, tmp_path):
    """Of thousands, some are shown and all are counted; the ends of pipes are found among thousands."""
    opens = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
pipes = [os.pipe() for _ in range(2000)]
for fd in (fd for pair in pipes for fd in pair):
    os.set_inheritable(fd, True)
print(pipes[0][0], pipes[0][1], flush=True)
os.execv({str(ruby.path)!r}, ["ruby", "--disable-gems", {str(CALLS / "poll.rb")!r}, *[str(reads) for reads, _ in pipes]])
"""
    with started(sys.executable, "-c", opens) as process:
        reads, writes = (int(word) for word in process.stdout.readline().split())
        wait_until_in(process.pid, SYS_POLL)
        call = call_of(dump(rbdump, process.pid))
        text = run(rbdump, "-p", process.pid).stdout
    assert (len(call["fds"]), call["more_fds"]) == (64, 1936)
    assert call["text"] == "waits for 2000 descriptors, for at most 86400 s"
    assert (call["fds"][0]["fd"], [end["fd"] for end in call["fds"][0]["ends"]]) == (reads, [writes])
    assert "\n      and 1936 more\n" in text


@pytest.mark.any_ruby
def test_process_that_ends(ruby, rbdump):
    """It ends at any moment: what was read until then is shown, or one sentence says why nothing is."""
    reads, writes = os.pipe()
    for step in range(12):
        with started(ruby.path, "--disable-gems", CALLS / "poll.rb", str(reads), str(writes), pass_fds=(reads, writes)) as process:
            wait_until_in(process.pid, SYS_POLL)
            with subprocess.Popen([rbdump, "-p", str(process.pid), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as dumping:
                # Not a wait for anything: all moments are fine.
                time.sleep(step * 0.006)
                process.kill()
                stdout, stderr = dumping.communicate(timeout=60)
        if dumping.returncode <= 1:
            (thread,) = json.loads(stdout)["threads"]
            call = thread["waits"] and thread["waits"]["syscall"]
            assert not call or call["missing"] == "ran-on" or {fd["kind"] for fd in call["fds"]} <= {"pipe", "closed", "unknown"}
        else:
            assert stdout == "" and len(stderr.splitlines()) == 1, stderr
    os.close(reads)
    os.close(writes)
