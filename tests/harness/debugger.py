"""
gdb, as each test runs it: it reads no settings of the user, asks no server for debug info, and keeps its index of a Ruby's
debug info in the session's cache, since it needs most of its time to make that.
"""

import os
import subprocess
import threading

# Without an index. With one, gdb finds no struct of which it meets a declaration before the definition.
PLAIN_GDB = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
GDB = [*PLAIN_GDB, "-iex", "set index-cache enabled on"]


class Debugger:
    """A gdb that stays: it reads the debug info of a Ruby once, and looks at one of its processes after the other."""

    END = "--- that was all"

    def __init__(self, script, errors, seconds=120):
        """Loads a script of commands. `errors` is the path of a file for what it writes to standard error."""
        self.seconds = seconds  # for any one look
        self.errors = open(errors, "w+", errors="backslashreplace")
        settings = ("set prompt", "set style enabled off", "set confirm off", "set width 0", "set height 0")
        plain = [word for word in GDB if word != "-batch"]
        self.process = subprocess.Popen(
            [*plain, "-q", *(word for line in settings for word in ("-iex", line)), "-x", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, errors="backslashreplace",
        )  # fmt: skip
        self._run()

    def look(self, pid, *lines):
        """What it says to commands while it is attached to a process."""
        return self._run(f"attach {pid}", *lines, "detach")

    def _run(self, *lines):
        told = self.errors.seek(0, os.SEEK_END)
        self.process.stdin.write("".join(f"{line}\n" for line in (*lines, f"echo \\n{self.END}\\n")))
        self.process.stdin.flush()
        said = []
        limit = threading.Timer(self.seconds, self.process.kill)
        limit.start()
        try:
            while said[-1:] != [self.END + "\n"]:
                said.append(self.process.stdout.readline())
                assert said[-1], f"gdb ended, or took longer than {self.seconds} s: {''.join(said)}"
        finally:
            limit.cancel()
        self.errors.seek(told)
        return subprocess.CompletedProcess(lines, 0, "".join(said[:-1]), self.errors.read())

    def close(self):
        """Ends it."""
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(30)
        self.process.stdout.close()
        self.errors.close()
