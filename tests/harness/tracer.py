"""
Traces a thread until standard input ends: `python3 tracer.py TID [stop]`. Prints a line once it does. It stops the thread
only if told to.
"""

import ctypes
import os
import subprocess
import sys

PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
WALL = 0x40000000


class Tracer:
    """A process that does that, until the end."""

    def __init__(self, tid, stop=False):
        self.command = [sys.executable, __file__, str(tid), *(["stop"] if stop else [])]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "traced\n"
        return self

    def __exit__(self, *_):
        self.process.communicate(timeout=30)


def trace(tid, stop):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(PTRACE_SEIZE, tid, None, None) != 0:
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")
    if stop:
        libc.ptrace(PTRACE_INTERRUPT, tid, None, None)
        os.waitpid(tid, WALL)
    print("traced", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    trace(int(sys.argv[1]), sys.argv[2:] == ["stop"])
