"""rbdump -p PID --children: a server and its workers, each as Ruby itself tells; who is no Ruby, or ends, is named."""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import types

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import check, run
from harness.process import has_ended, is_untouched, wait_until, wait_until_it_reads
from harness.stripped import stripped_copy
from harness.target import from_hex, needs
from harness.tracer import Tracer

FAILED, NOT_RUBY, NO_PERMISSION, USAGE = 2, 3, 4, 64


def tree(pid, ready):
    """The processes with what they say of themselves, each followed by what it forked; and the pids of no Rubies."""
    for subject in ready["threads"]:
        # 3.1 and 3.2 tell a forked process the thread id of its parent.
        if subject["key"] == b"main" and subject["tid"] is not None:
            subject["tid"] = pid
    rubies = [types.SimpleNamespace(pid=pid, ready=ready)]
    others = [ready["other"]] if "other" in ready else []
    for child, line in sorted(ready["processes"].items(), key=lambda item: int(item[0])):
        below, more = tree(int(child), from_hex(json.loads(line)))
        rubies += below
        others += more
    return rubies, others


class Forks:
    def __init__(self, target, pid=None):
        self.rubies, self.others = tree(pid or target.pid, target.ready)

    def pids(self):
        return [process.pid for process in self.rubies]


def check_each(stdout, rubies, ruby, mode="paused"):
    answers = [json.loads(line) for line in stdout.splitlines()]
    assert [answer["pid"] for answer in answers] == [process.pid for process in rubies]
    for answer, process in zip(answers, rubies):
        check(answer, process, ruby, mode)


@pytest.mark.parametrize("mode", ["paused", "unpaused"])
def test_each_as_ruby_tells(ruby, start, rbdump, mode):
    target = start(ruby, "fork_tree.rb")
    forks = Forks(target)
    assert (len(forks.rubies), len(forks.others)) == (5, 1)
    done = run(rbdump, "-p", target.pid, "--children", "--json", *(["--no-stop"] if mode == "unpaused" else []))
    assert done.stderr == f"rbdump: {forks.others[0]} (cat) is not a Ruby process: skipped\n"
    assert done.returncode == 0
    check_each(done.stdout, forks.rubies, ruby, mode)
    assert all(is_untouched(pid) for pid in forks.pids())
    assert target.release() == 0


@pytest.mark.any_ruby
def test_text(ruby, start, rbdump):
    """Each as without --children, and an empty line between."""
    target = start(ruby, "fork_tree.rb")
    pids = Forks(target).pids()
    for pid in pids:
        wait_until_it_reads(pid)
    done = run(rbdump, "-p", target.pid, "--children")

    def alone(pid):
        return run(rbdump, "-p", pid).stdout

    def timeless(text):
        return re.sub("paused for .*", "", text)

    assert done.returncode == 0
    assert timeless(done.stdout) == timeless("\n".join(alone(pid) for pid in pids))


def test_part_of_the_tree(ruby, start, rbdump):
    target = start(ruby, "fork_tree.rb")
    forks = Forks(target)
    counts = []
    for process in forks.rubies[1:]:
        # The numbers of processes can begin anew at any of them, so their order tells nothing.
        part = {process.pid, *map(int, process.ready["processes"])}
        done = run(rbdump, "-p", process.pid, "--children", "--json")
        assert done.returncode == 0
        check_each(done.stdout, [one for one in forks.rubies if one.pid in part], ruby)
        counts.append(len(part))
    assert sorted(counts) == [1, 1, 1, 2]


def test_below_what_is_no_ruby(ruby, start, rbdump, tmp_path):
    script = tmp_path / "a) Z (b"
    script.write_text(f'#!/bin/sh\nexec 3<&0\n{ruby.path} "$@" <&3 &\nwait $!\n')
    script.chmod(0o755)
    target = start(dataclasses.replace(ruby, path=str(script)), "fork_tree.rb")
    done = run(rbdump, "-p", target.pid, "--children", "--json")
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == f"rbdump: {target.pid} (a) Z (b) is not a Ruby process: skipped"
    pid = json.loads(done.stdout.splitlines()[0])["pid"]
    check_each(done.stdout, Forks(target, pid).rubies, ruby)
    assert target.release() == 0


def test_no_ruby_at_all(rbdump):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        wait_until(lambda: b"cat" in open(f"/proc/{cat.pid}/comm", "rb").read(), "it has begun")
        done = run(rbdump, "-p", cat.pid, "--children")
        assert (done.returncode, done.stdout) == (NOT_RUBY, "")
        assert done.stderr.splitlines() == [
            f"rbdump: {cat.pid} (cat) is not a Ruby process: skipped",
            f"rbdump: there is no Ruby process to show: process {cat.pid} was skipped",
        ]
        cat.stdin.close()
    done = run(rbdump, "-p", cat.pid, "--children")
    assert (done.returncode, done.stdout, done.stderr) == (FAILED, "", f"rbdump: there is no process {cat.pid}\n")


def test_worst_exit_status(ruby, start, rbdump):
    """One that cannot be shown does not keep the others from being shown."""
    target = start(ruby, "fork_tree.rb")
    forks = Forks(target)
    refused = forks.rubies.pop(2)
    # One that sleeps need not be stopped.
    with Tracer(refused.pid, stop=True):
        done = run(rbdump, "-p", target.pid, "--children", "--json")
    assert done.returncode == NO_PERMISSION
    assert re.match(rf"rbdump: {refused.pid} \(\S+\): process {refused.pid} is already traced by ", done.stderr)
    check_each(done.stdout, forks.rubies, ruby)


def test_exits_meanwhile(ruby, start, rbdump):
    """A worker is killed after the list was made, while rbdump waits for somebody to read of the first process."""
    target = start(ruby, "fork_tree.rb")
    forks = Forks(target)
    killed = forks.rubies.pop(1)
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    filled = os.write(write, bytes(4096))
    with (
        open(read, "rb") as out,
        subprocess.Popen(
            [rbdump, "-p", str(target.pid), "--children", "--json"], stdout=write, stderr=subprocess.PIPE, text=True
        ) as dumping,
    ):
        os.close(write)

        def blocked():
            """Whether the part of rbdump that looks at the first process is in write(1, …"""
            parts = open(f"/proc/{dumping.pid}/task/{dumping.pid}/children").read().split()
            return len(parts) == 1 and open(f"/proc/{parts[0]}/syscall").read().startswith("1 0x1 ")

        wait_until(blocked, "it waits for its reader")
        os.kill(killed.pid, signal.SIGKILL)
        wait_until(lambda: has_ended(killed.pid), "it has ended")
        stdout = out.read()[filled:].decode()
        _, errors = dumping.communicate(timeout=60)
    assert dumping.returncode == 0
    assert re.fullmatch(rf"rbdump: {killed.pid} \(\S+\) has ended: skipped", errors.splitlines()[0])
    check_each(stdout, forks.rubies, ruby)


@contextlib.contextmanager
def server_that_never_answers():
    """The address of one that takes connections and lets them wait."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


# Those whose version is in their executable, not in a libruby.
ALONE = [ruby for ruby in RUBIES if os.path.realpath(ruby.elf) == os.path.realpath(ruby.path)]
if not ALONE:
    note_not_applicable("a process whose debug info is searched for too long: no Ruby has its version in its executable")


SEARCHING = "nothing to show after %d s: rbdump was searching for debug info"


@pytest.mark.long
@pytest.mark.parametrize("program_ruby", ALONE[-1:], ids=lambda ruby: ruby.id)
def test_slow_one(program_ruby, start, rbdump, tmp_path):
    """One that debug info is looked for in vain is given up when its own time is over, and named; the next is shown."""
    ruby = program_ruby
    with stripped_copy(ruby, tmp_path) as stripped:
        # A release that no layout is for: only its version is another.
        program = pathlib.Path(stripped.ruby.path)
        unknown = "9" + ruby.version[1:]
        content = program.read_bytes()
        assert content.count(b"\0" + ruby.version.encode() + b"\0") > 0
        program.write_bytes(content.replace(b"\0" + ruby.version.encode() + b"\0", b"\0" + unknown.encode() + b"\0"))
        script = tmp_path / "server"
        ready, rest = tmp_path / "ready", tmp_path / "rest.rb"
        os.mkfifo(ready)
        rest.write_text("File.write(ARGV[0], '.')\n$stdin.read\n")
        script.write_text(
            f'#!/bin/sh\nexec 3<&0\n{program} --disable-gems {rest} {ready} <&3 &\ncat {ready} >&2\n{ruby.path} "$@" <&3 &\nwait\n'
        )
        script.chmod(0o755)
        which = "waits.rb" if ruby.series >= needs("waits.rb") else "oldest.rb"
        target = start(dataclasses.replace(ruby, path=str(script)), which, environment=stripped.environment)
        with server_that_never_answers() as url:
            environment = dict(os.environ, DEBUGINFOD_URLS=url)
            done = run(rbdump, "-p", target.pid, "--children", "--json", "--time-limit", "6", env=environment)
            (slow,) = re.findall(rf"^rbdump: process (\d+): {SEARCHING % 6}", done.stderr, re.M)
            assert done.returncode == FAILED and "--time-limit" in done.stderr
            (answer,) = [json.loads(line) for line in done.stdout.splitlines()]
            assert answer["pid"] != int(slow) and is_untouched(int(slow))
            # Alone, too.
            alone = run(rbdump, "-p", slow, "--time-limit", "5", env=environment)
            assert (alone.returncode, alone.stdout) == (FAILED, "")
            assert alone.stderr.startswith(f"rbdump: process {slow}: {SEARCHING % 5}")
        check(answer, types.SimpleNamespace(pid=answer["pid"], ready=target.ready), ruby)


@pytest.mark.parametrize("seconds", ["0", "-1", "1.5", "", "two"])
def test_time_limit_that_is_none(rbdump, seconds):
    done = run(rbdump, "-p", "1", "--time-limit", seconds)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1)


def test_usage(rbdump):
    done = run(rbdump, "--core", "a", "--children")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr == "rbdump: --children can be used only with PID; see rbdump help dump\n"
