"""`--native` at random moments of threads that are in many C functions: the stacks are those of gdb, or marked."""

import collections
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest
from harness.debugger import Debugger
from harness.dump import dump
from harness.native import SCRIPT, addresses, is_suspended, lost, of_gdb
from harness.process import task_states, wait_until

MANY = pathlib.Path(__file__).parent / "targets/native/many.rb"
THREADS = 50
LOOKS, LOOKS_OF_SOAK = 3, 400
SECONDS = 3600  # after which the target ends by itself


@pytest.fixture
def gdb(tmp_path):
    debugger = Debugger("/dev/null", tmp_path / "errors")
    yield debugger
    debugger.close()


@pytest.fixture
def many(ruby):
    """The threads, which run."""
    words = [ruby.path, "--disable-gems", MANY, str(THREADS), str(SECONDS)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()
            status = process.wait(60)
        assert status == 0


def compare(rbdump, pid, gdb, counts):
    """Stops the threads wherever they are, and counts the stacks that are as gdb has them, and others. Gives those."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: task_states(pid) == {"T"}, "all its threads are stopped")
    answer = dump(rbdump, pid, "--native=all", status=None)
    stacks = of_gdb(gdb.look(pid, f"source {SCRIPT}").stdout)
    os.kill(pid, signal.SIGCONT)
    differ = []
    for thread in answer["threads"]:
        # One that has just been made, or has ended, has no kernel thread.
        if is_suspended(thread) or thread["tid"] is None:
            continue
        expected = [pc for pc, _, inlined in stacks[thread["tid"]] if not inlined]
        if lost(thread) or "unplaced" in thread:
            counts["marked"] += 1
        elif addresses(thread) == expected:
            counts["same"] += 1
        else:
            differ.append((thread["name"], thread["frames"], stacks[thread["tid"]]))
    return differ


def test_at_random_moments(rbdump, ruby, many, gdb, times):
    moments, counts, looks = random.Random(26), collections.Counter(), times(LOOKS, LOOKS_OF_SOAK)
    for _ in range(looks):
        time.sleep(moments.uniform(0, 0.05))
        assert compare(rbdump, many, gdb, counts) == []
    print(f"{ruby.id}: {dict(counts)}")
    assert counts["same"] >= looks * THREADS * 0.9
    # Of a thread that was just made, for example, there is nothing that tells its caller.
    assert counts["marked"] <= counts.total() * times(0.05, 0.001), counts
