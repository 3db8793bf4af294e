"""How long a command takes, and how much memory."""

import subprocess
import sys
import typing

# A process that is begun counts what it was begun by: that must be small, unlike the one that the tests run in.
MEASURE = """
import os, sys, time
null = os.open(os.devnull, os.O_WRONLY)
begin = time.monotonic()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, time.monotonic() - begin, usage.ru_utime + usage.ru_stime)
"""


class Usage(typing.NamedTuple):
    status: int
    errors: str
    mib: float  # the most memory that it had
    seconds: float
    cpu_seconds: float


def measured(*command, output="/dev/null"):
    """Runs a command to its end; its standard output goes to a file."""
    measuring = [sys.executable, "-Ic", MEASURE, output, *command]
    done = subprocess.run([str(word) for word in measuring], capture_output=True, text=True, timeout=120, check=True)
    status, kib, seconds, cpu_seconds = done.stdout.split()
    return Usage(int(status), done.stderr, int(kib) / 1024, float(seconds), float(cpu_seconds))
