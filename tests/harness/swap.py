"""Pages of a process that are not in memory."""

import contextlib
import ctypes
import os
import pathlib
import re
import subprocess

SIZE = 256 << 20
PROCESS_MADVISE, MADV_PAGEOUT = 440, 21  # include/uapi/asm-generic/unistd.h, mman-common.h
LIBC = ctypes.CDLL(None, use_errno=True)


class Range(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


@contextlib.contextmanager
def swap(folder):
    """A swap file while that goes on; yields why there is none, or None."""
    path = folder / "swap"
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        os.posix_fallocate(file.fileno(), 0, SIZE)
    made = subprocess.run(["mkswap", path], capture_output=True, text=True, check=False)
    used = subprocess.run(["swapon", path], capture_output=True, text=True, check=False) if made.returncode == 0 else made
    if used.returncode != 0:
        yield used.stderr.strip()
        return
    try:
        yield None
    finally:
        subprocess.run(["swapoff", path], check=True)


def swap_out(pid):
    """Moves all of a process's own memory out; what the process uses comes back."""
    descriptor = os.pidfd_open(pid)
    try:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            found = re.match(r"(\w+)-(\w+) rw-p \w+ 00:00 0", line)
            if found:
                first, end = int(found[1], 16), int(found[2], 16)
                # The kernel may leave pages in that were used just now.
                for _ in range(2):
                    LIBC.syscall(PROCESS_MADVISE, descriptor, ctypes.byref(Range(first, end - first)), 1, MADV_PAGEOUT, 0)
    finally:
        os.close(descriptor)


def swapped_out(pid):
    """In bytes."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmSwap:\s+(\d+) kB", text, re.M)[1]) * 1024
