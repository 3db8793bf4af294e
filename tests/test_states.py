"""What each thread is doing, what it is called, and whether garbage is being collected."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import as_text, check, current, difference, dump, rbdumps_frames, rubys_frames, run, thread_of
from harness.process import has_ended, is_untouched, schedstat, status, task_states, wait_until
from harness.recording import Running
from harness.under_gdb import stop_in

# Where the kernel or another thread keeps them; what Ruby itself says of them is compared everywhere.
STATES = {"timed": "sleeping", "queue": "sleeping_forever", "mutex": "sleeping_forever", "reader": "blocked"}
BUSY = {"running", "waiting_gvl"}


def has_fiddle(ruby):
    done = subprocess.run([ruby.path, "-e", "require 'fiddle'"], capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def busy_threads(answer):
    """Those that states.rb calls so; before 2.3, where no thread has a name, those that run what only they run."""
    def is_busy(thread):
        if thread["name"] is not None:
            return thread["name"].startswith("busy ")
        return "spin" in [frame.get("label") for frame in thread["frames"]]

    return [thread for thread in current(answer) if is_busy(thread)]


def test_at_rest(ruby, start, rbdump):
    target = start(ruby, "states.rb", "0")
    answer = dump(rbdump, target.pid)
    check(answer, target, ruby)
    told = {as_text(subject["key"]): thread_of(answer, subject)["state"] for subject in target.ready["threads"]}
    assert {key: told[key] for key in STATES} == STATES


# The most threads that rbdump lists (dumper/ruby/threads.h).
THREADS_MAX = 16384


@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_crowd(ruby, start, rbdump, mode):
    target = start(ruby, "crowd.rb", "1000")
    answer = dump(rbdump, target.pid, *mode)
    assert answer["thread_list"] == {"complete": True, "reason": None, "missing": None}
    waiting = [thread for thread in answer["threads"] if not thread["main"]]
    assert len(waiting) == len({thread["thread"] for thread in waiting}) == 1000
    assert {thread["state"] for thread in waiting} == {"sleeping_forever"}
    # Until 2.0, Queue#pop is Ruby code.
    inner = "pop" if ruby.series >= (2, 1) else "sleep"
    assert {thread["frames"][0]["label"].rpartition("#")[2] for thread in waiting} == {inner}
    assert target.release() == 0


@pytest.mark.long
@pytest.mark.any_ruby
@pytest.mark.since((3, 3), "M:N threads")
def test_too_many_threads(ruby, start, rbdump):
    """
    More threads than rbdump lists, which M:N makes cheap: as many are shown, and that there are more is said. In which words,
    if it is not JSON, says unit/test_render_both.c.
    """
    target = start(ruby, "crowd.rb", str(THREADS_MAX + 16), environment={"RUBY_MN_THREADS": "1"})
    for mode in ([], ["--no-stop"]):
        answer = dump(rbdump, target.pid, *mode, status=1)
        assert answer["thread_list"] == {"complete": False, "reason": "too-many", "missing": None}
        assert len(answer["threads"]) == THREADS_MAX
        assert {thread["verdict"] for thread in answer["threads"]} == {"complete"}
        assert answer["threads"][0]["main"]
    assert is_untouched(target.pid)
    assert target.release() == 0


@pytest.mark.since((2, 3), "Thread#name")
def test_thread_names(ruby, start, rbdump):
    target = start(ruby, "states.rb", "0")
    names = [thread["name"] for thread in current(dump(rbdump, target.pid)) if not thread["main"]]
    told = [as_text(subject["name"]) for subject in target.ready["threads"] if subject["key"] != b"main"]
    # Beside the subjects there is the watcher.
    assert sorted(names, key=str) == sorted([*told, "watcher"], key=str)
    assert {"\u540d\u524d", "second name", None} < set(names)


def check_kernel_threads(answer, ready):
    """Each thread has the kernel thread that the kernel has told it, whatever Ruby says that it is."""
    wanted = {as_text(subject["key"]): subject for subject in ready["threads"] if as_text(subject["key"]) in ready["tasks"]}
    assert len(wanted) == len(ready["tasks"])
    # Which kernel thread Ruby tells is not what it is to be found by.
    found = {key: thread_of(answer, {**subject, "tid": None})["tid"] for key, subject in wanted.items()}
    assert found == ready["tasks"]
    assert ready["tasks"]["main"] == answer["pid"]


def test_kernel_threads(ruby, start, rbdump):
    target = start(ruby, "states.rb", "0")
    assert len(target.ready["tasks"]) == 7
    check_kernel_threads(dump(rbdump, target.pid), target.ready)


@pytest.mark.skipif(os.geteuid() != 0, reason="pid namespaces need root")
@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
@pytest.mark.since((3, 1), "a thread that knows its kernel thread")
def test_kernel_threads_of_a_pid_namespace(ruby, start, rbdump, tmp_path, mode):
    """What they are called here, also where nothing but Ruby's own note tells which they are."""
    enter = tmp_path / "enter"
    enter.write_text(f'#!/bin/sh\nexec unshare --pid --fork --kill-child --mount-proc {ruby.path} "$@"\n')
    enter.chmod(0o755)
    target = start(dataclasses.replace(ruby, path=str(enter)), "states.rb", "0")
    assert status(target.pid, "NSpid").split()[-1] == "1"
    check_kernel_threads(dump(rbdump, target.pid, *mode), target.ready)


def test_kernel_threads_after_fork(ruby, start, rbdump):
    """In a child process: some Rubies go on to tell its parent's kernel threads for theirs."""
    target = start(ruby, "forked.rb")
    answer = dump(rbdump, target.ready["pid"])
    assert len(target.ready["tasks"]) == 3
    check_kernel_threads(answer, target.ready)
    for subject in target.ready["threads"]:
        assert not difference(rbdumps_frames(thread_of(answer, {**subject, "tid": None})), rubys_frames(subject))
    assert len(current(answer)) == 4
    assert {thread["verdict"] for thread in answer["threads"]} == {"complete"}
    assert target.release() == 0


@pytest.mark.long
def test_one_busy_thread_is_running(ruby, start, rbdump):
    target = start(ruby, "states.rb", "1")

    def is_running():
        (busy,) = busy_threads(dump(rbdump, target.pid))
        assert busy["state"] in BUSY
        return busy["state"] == "running"

    # Until the watcher has come to rest the two take turns.
    wait_until(is_running, "the only busy thread runs")
    (busy,) = busy_threads(dump(rbdump, target.pid))
    labels = [frame["label"].rpartition("#")[2] for frame in busy["frames"]]
    assert labels[0] == "spin"
    assert labels[-1] == "block (2 levels) in <main>"
    assert 13 <= busy["frames"][0]["line"] <= 17
    assert is_untouched(target.pid)


def start_with_jit(start, ruby, jit, *arguments):
    """A target whose Ruby runs its JIT. 3.2's MJIT ends some with a bug of its own, before it is ready."""
    for _ in range(10):
        try:
            return start(ruby, *arguments, flags=ruby.jits[jit])
        except EOFError as error:
            if jit != "mjit" or "[BUG] Stack consistency error" not in str(error):
                raise
    raise AssertionError(f"{jit} never starts")


@pytest.mark.long
@pytest.mark.parametrize("jit", ["yjit", "zjit", "rjit", "mjit"])
def test_line_of_what_a_jit_runs(ruby, jit, start, rbdump):
    """Machine code does not say where it is: the frame says so, and where its code begins."""
    if jit not in ruby.jits:
        note_not_applicable(f"a busy thread in code of {jit.upper()} on {ruby.id}: not built in")
        return
    target = start_with_jit(start, ruby, jit, "states.rb", "2")

    def running():
        return [thread for thread in busy_threads(dump(rbdump, target.pid)) if thread["state"] == "running"]

    (busy,) = wait_until(running, "a busy thread runs")
    spin, caller = busy["frames"][:2]
    assert spin["label"].rpartition("#")[2] == "spin"
    assert (spin["path"], spin["line"], spin["first_line"], spin["reason"]) == ("states.rb", None, 10, "pc-outside")
    assert (caller["line"], "first_line" in caller) == (34, False)
    wait_until(
        lambda: re.search(
            r"^ {4}states\.rb:in '(Object#)?spin' .*\[line not known; the code of this frame begins at line 10\]",
            run(rbdump, "-p", target.pid).stdout,
            re.M,
        ),
        "it runs again",
    )
    assert target.release() == 0


@pytest.mark.long
def test_busy_threads_take_turns(ruby, start, rbdump):
    """At most one runs, the other waits; and both keep running."""
    target = start(ruby, "states.rb", "2")
    seen = []

    def one_runs_one_waits():
        answer = dump(rbdump, target.pid)
        busy = busy_threads(answer)
        assert len(busy) == 2
        seen.append({thread["state"] for thread in busy})
        assert seen[-1] <= BUSY
        assert [thread["state"] for thread in current(answer)].count("running") <= 1
        assert all(thread["verdict"] == "complete" for thread in busy)
        return seen[-1] == BUSY

    wait_until(one_runs_one_waits, "one runs and one waits")


@pytest.mark.any_ruby
def test_running_target_goes_on(ruby, start, rbdump):
    target = start(ruby, "states.rb", "1")
    for arguments in ([], ["--no-stop"]):
        dump(rbdump, target.pid, *arguments)
        wait_until(lambda: "R" in task_states(target.pid), "the busy thread runs on")
        assert is_untouched(target.pid)
    assert target.release() == 0


def test_what_sleeps_sleeps_on(ruby, start, rbdump):
    """A dump wakes no thread that waits in a system call: to the program it is as if nobody had looked."""
    target = start(ruby, "states.rb", "0")
    asleep = target.ready["tasks"].values()
    wait_until(lambda: {status(target.pid, "State", task)[0] for task in asleep} == {"S"}, "all sleep")
    before = [schedstat(target.pid, task).switches for task in asleep]
    for _ in range(5):
        check(dump(rbdump, target.pid), target, ruby)
    assert [schedstat(target.pid, task).switches for task in asleep] == before


def system_call(pid, task):
    return pathlib.Path(f"/proc/{pid}/task/{task}/syscall").read_text().split()[0]


@pytest.mark.target("waits.rb")
@pytest.mark.any_ruby
def test_few_files(ruby, start, rbdump):
    """A thread that is left asleep costs a file: where they run out, a dump stops it. With too few there is no dump."""
    target = start(ruby, "waits.rb")
    for files in (*range(5, 24), 32, 40):
        for limit in (f"{files}:{files}", f"{files}:"):
            done = run("prlimit", f"--nofile={limit}", rbdump, "-p", target.pid, "--json")
            if files < 16 and limit.endswith(str(files)):
                assert (done.returncode, done.stdout) == (2, "")
                assert done.stderr.startswith(f"rbdump: only {files} files may be open, but rbdump needs at least 16"), done.stderr
            else:
                assert done.returncode == 0, done
                check(json.loads(done.stdout), target, ruby)
            wait_until(lambda: is_untouched(target.pid), "it goes on")


# x86_64: epoll_wait, epoll_pwait.
EPOLL_WAITS = ("232", "281")

WITH_FIDDLE = [ruby for ruby in RUBIES if has_fiddle(ruby)][-1:]


@pytest.mark.parametrize("busy", [0, 2], ids=["at-rest", "beside-threads-that-run"])
@pytest.mark.parametrize("with_fiddle", WITH_FIDDLE, ids=lambda ruby: ruby.id)
def test_call_that_a_stop_would_end(with_fiddle, rbdump, tmp_path, busy):
    """epoll_wait(2) returns EINTR to the C code that has called it if its thread is stopped: it goes on, whoever looks."""
    with Running(with_fiddle, "survival/foreign_wait.rb", str(busy)) as target:
        tid = int(target.first_line)
        wait_until(lambda: system_call(target.pid, tid) in EPOLL_WAITS, "it waits for the event, not for the GVL")
        before = schedstat(target.pid, tid).switches
        for _ in range(20):
            dump(rbdump, target.pid)
        for mode in ("paused", "unpaused"):
            done = run(rbdump, "record", "-p", target.pid, "-d", 0.5, "--mode", mode, "-o", tmp_path / mode)
            assert done.returncode == 0, done.stderr
        done = run(rbdump, "experiment", "-p", target.pid, "-d", 1)
        assert done.returncode == 0, done.stderr
        assert schedstat(target.pid, tid).switches == before
        assert target.finish() == "1\n"


@pytest.mark.target("waits.rb")
@pytest.mark.parametrize("mode", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_stopped_target_stays_stopped(ruby, start, rbdump, mode):
    target = start(ruby, "waits.rb")
    assert dump(rbdump, target.pid, *mode)["stopped"] is False
    os.kill(target.pid, signal.SIGSTOP)
    wait_until(lambda: task_states(target.pid) == {"T"}, "it has stopped")
    answer = dump(rbdump, target.pid, *mode)
    check(answer, target, ruby, mode="unpaused" if mode else "paused")
    assert answer["stopped"] is True
    # A thread that is let go passes through the kernel once more on its way back to where it was stopped.
    wait_until(lambda: task_states(target.pid) == {"T"}, "it is stopped as before")
    assert status(target.pid, "TracerPid") == "0"
    os.kill(target.pid, signal.SIGCONT)
    wait_until(lambda: "T" not in task_states(target.pid), "it goes on")
    assert target.release() == 0


def collecting_places():
    """(Ruby, C function) to stop in. rb_gc_mark is exported by every Ruby; nothing of sweeping is."""
    for ruby in RUBIES:
        yield pytest.param(ruby, "rb_gc_mark", id=f"{ruby.id}-mark")
        if ruby.has_debug:
            # gc.c of v1_9_3_551, v2_0_0_648: slot_sweep; v2_1_10: gc_before_sweep; since v2_2_0: gc_sweep_step.
            sweep = "slot_sweep" if ruby.series < (2, 1) else "gc_before_sweep" if ruby.series < (2, 2) else "gc_sweep_step"
            yield pytest.param(ruby, sweep, id=f"{ruby.id}-sweep")
        else:
            note_not_applicable(f"stopping in the sweep of {ruby.id}: gdb cannot find it without debug info")


@pytest.mark.parametrize("collector, function", collecting_places())
def test_in_the_middle_of_a_collection(collector, function, start, rbdump):
    """gdb lets the target run into that function, and leaves it stopped there."""
    target = start(collector, "garbage.rb")
    assert dump(rbdump, target.pid)["gc"]["running"] is False
    stop_in(target.pid, function, lambda: target.tell("collect"))
    assert status(target.pid, "TracerPid") == "0"

    for arguments in ([], ["--no-stop"]):
        answer = dump(rbdump, target.pid, *arguments)
        assert answer["gc"]["running"] is True
        assert {thread["verdict"] for thread in answer["threads"]} == {"complete"}
        # What Ruby itself showed at that line before the collection, with GC.start on top.
        collecting, *below = rbdumps_frames(thread_of(answer, {"key": b"main"}))
        # It is written in Ruby from 2.7 on, which does not show from 4.0 on.
        assert collecting[0] == ("<internal:gc>" if (2, 7) <= collector.series < (4, 0) else "garbage.rb")
        assert collecting[3] in ("start", "GC.start")
        expected = rubys_frames({"frames": target.ready["here"]})
        # The line of the outermost frame is that of the second call.
        assert not difference(below[:-1], expected[:-1])
        assert below[-1][3] == expected[-1][3] == "<main>"
        (beside,) = [subject for subject in target.ready["threads"] if subject["key"] == b"beside"]
        assert not difference(rbdumps_frames(thread_of(answer, beside)), rubys_frames(beside))

    assert task_states(target.pid) == {"T"}
    os.kill(target.pid, signal.SIGCONT)
    assert target.line() == b"collected"
    assert dump(rbdump, target.pid)["gc"]["running"] is False
    assert target.release() == 0


VFORK = """
#include <unistd.h>
int vfork_for(int fd) { char c; if (vfork() == 0) { read(fd, &c, 1); _exit(0); } return 7; }
"""


# An extension is begun with the GVL held. One of a Ruby that is being developed tells which it was made for.
VFORK_RUNNING = """
#include <unistd.h>
unsigned long long ruby_abi_version(void) { return ABI; }
void Init_vfork_running(void) { char c; if (vfork() == 0) { read(0, &c, 1); _exit(0); } }
"""


def only_child(pid):
    """The only child of a process; None if it has none yet."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if len(children) == 1 else None


def is_in_vfork(pid):
    """Whether a thread waits in vfork(2): it has a child. A thread that waits for a disk has the same state."""
    children = [(task / "children").read_text() for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    return any(children) and "D" in task_states(pid)


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize("inside", [False, True], ids=["here", "pid-namespace"])
@pytest.mark.since((2, 3), "Thread#name")
def test_running_thread_that_cannot_be_stopped(ruby, rbdump, tmp_path, inside):
    """One in vfork(2) that holds the GVL: of all that is known, it could go on while its stack is copied."""
    if inside and os.geteuid() != 0:
        note_not_applicable("a pid namespace: needs root")
        return
    (tmp_path / "vfork.c").write_text(VFORK_RUNNING)
    library = tmp_path / "vfork_running.so"
    config = "begin; require 'rbconfig'; print RbConfig::CONFIG['ruby_version']; rescue LoadError; end"
    abi = subprocess.check_output([ruby.path, "--disable-gems", "-e", config]).decode().partition("+")[2] or "0"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-DABI={abi}", "-o", library, tmp_path / "vfork.c"], check=True)
    script = "Thread.new { Thread.current.name = 'vforks'; require ARGV[0] }.join; exit 7"
    command = [ruby.path, "--disable-gems", "-e", script, library]
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", *command] if inside else command, stdin=subprocess.PIPE
    ) as started:
        pid = wait_until(lambda: only_child(started.pid), "it is started") if inside else started.pid
        wait_until(lambda: not has_ended(pid) and is_in_vfork(pid), "it is in vfork")
        answer = dump(rbdump, pid, status=1)
        told = {thread["name"]: (thread["state"], thread["verdict"], thread["reason"]) for thread in answer["threads"]}
        assert told.pop("vforks") == ("running", "torn", "not-stopped")
        assert {(verdict, reason) for _, verdict, reason in told.values()} == {("complete", None)}
        started.stdin.write(b"x")
        started.stdin.close()
        assert started.wait(30) == 7


@pytest.mark.skipif(not shutil.which("gcc") or not os.path.exists("/usr/bin/ruby"), reason="needs gcc and Debian's Ruby")
def test_thread_that_cannot_be_stopped(rbdump, tmp_path):
    """One in vfork(2) is in an uninterruptible sleep. It is not waited for, and not caught when it wakes up."""
    (tmp_path / "vfork.c").write_text(VFORK)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "vfork.so", tmp_path / "vfork.c"], check=True)
    script = (
        "require 'fiddle'; f = Fiddle::Function.new(Fiddle.dlopen(ARGV[0])['vfork_for'], [Fiddle::TYPE_INT], "
        "Fiddle::TYPE_INT); r, w = IO.pipe; puts w.fileno; $stdout.flush; exit f.call(0)"
    )
    with subprocess.Popen(
        ["/usr/bin/ruby", "-e", script, tmp_path / "vfork.so"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as target:
        assert target.stdout.readline()
        wait_until(lambda: is_in_vfork(target.pid), "it is in vfork")
        answer = dump(rbdump, target.pid)
        assert answer["pause_us"] < 400_000
        (thread,) = answer["threads"]
        assert [frame["label"] for frame in thread["frames"]] == ["call", "<main>"]
        assert (thread["waits"]["syscall"]["name"], thread["waits"]["syscall"]["number"]) == ("vfork", 58)
        # It ends as it would have, with rbdump gone or not.
        target.stdin.write(b"x")
        target.stdin.close()
        assert target.wait(30) == 7


WOKEN = """
reads = Thread.new { Thread.current.name = "reads"; IO.pipe[0].read }
Thread.pass until reads.status == "sleep"
puts "ready"
$stdout.flush
loop { reads.wakeup }
"""


@pytest.mark.since((2, 3), "names of threads")
def test_thread_that_is_woken_while_it_reads(ruby, rbdump):
    """Thread#wakeup makes it runnable, though it goes on to wait outside of the GVL: no layout is refused for that."""
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", WOKEN], stdout=subprocess.PIPE) as target:
        try:
            assert target.stdout.readline() == b"ready\n"
            for _ in range(6):
                done = run(rbdump, "-p", target.pid, "--json")
                assert done.returncode in (0, 1), done.stderr
                assert "reads" in {thread["name"] for thread in json.loads(done.stdout)["threads"]}
        finally:
            target.kill()
