"""gdb and a process that it waits for: gdb sets its breakpoints, and only then is the process told to go on."""

import os
import subprocess
import threading

from harness.debugger import GDB
from harness.process import task_states, wait_until


def run_gdb(pid, arguments, go, environment=None, seconds=120):
    """
    Attaches gdb, which is to print a line "ready" once it waits for what comes; then calls `go()`, which is to make the
    process go there. Gives what gdb said when it has ended by itself; one that takes longer than `seconds` is killed.
    """
    with subprocess.Popen(
        [*GDB, "-p", str(pid), *arguments],
        env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="backslashreplace",
    ) as gdb:  # fmt: skip
        limit = threading.Timer(seconds, gdb.kill)
        limit.start()
        try:
            said = []
            for line in gdb.stdout:
                said.append(line)
                if line == "ready\n":
                    break
            assert said[-1:] == ["ready\n"], f"gdb was not ready: {''.join(said)}"
            assert not any(line.endswith("not defined.\n") for line in said), f"nowhere to stop: {''.join(said)}"
            go()
            said += gdb.stdout.read()
            status = gdb.wait(60)
        finally:
            limit.cancel()
            if gdb.poll() is None:
                gdb.kill()
    said = "".join(said)
    assert status == 0, f"gdb ended with {status}: {said}"
    return said


def leave_stopped(pid, arguments, go):
    """The same with arguments that make gdb stop the process by SIGSTOP and detach: it is stopped, and nobody traces it."""
    said = run_gdb(pid, arguments, go)
    wait_until(lambda: task_states(pid) == {"T"}, said)


def stop_in(pid, function, go, then=()):
    """Leaves it stopped where a thread of it first enters a C function, or after the gdb commands of `then`."""
    commands = ["set pagination off", f"break {function}", "echo ready\\n", "continue", *then]
    commands += [f"shell kill -STOP {pid}", "detach"]
    leave_stopped(pid, [word for command in commands for word in ("-ex", command)], go)
