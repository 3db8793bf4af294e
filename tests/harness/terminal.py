"""rbdump on a terminal: what it shows there, and what ^C typed there does."""

import contextlib
import os
import pty
import subprocess


def interrupted(command, until):
    """Runs a command on a terminal, types ^C once `until(what it has shown)`, and returns (exit status, all it has shown)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], [str(word) for word in command], {**os.environ, "TERM": "xterm"})
    shown = b""
    while not until(shown):
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    with contextlib.suppress(OSError):  # what a terminal says when its last writer has closed it
        while more := os.read(terminal, 4096):
            shown += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def shown_on_terminal(command, **environment):
    """What a command shows on a terminal, as bytes."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **environment},
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # EIO: the other side has been closed
                break
            shown += chunk
        process.wait(60)
    os.close(ours)
    return shown
