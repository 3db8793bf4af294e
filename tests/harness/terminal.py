"""rbdump on a terminal, with ^C typed there."""

import contextlib
import os
import pty


def interrupted(command, until):
    """Runs a command on a terminal, types ^C once `until(what it has shown)`, and returns (exit status, all it has shown)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], [str(word) for word in command])
    shown = b""
    while not until(shown):
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    with contextlib.suppress(OSError):  # what a terminal says when its last writer has closed it
        while more := os.read(terminal, 4096):
            shown += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown
