"""What the kernel has; sampling in the kernel: whether it must work here, and what there is of it in the kernel."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

CAP_PERFMON, CAP_BPF = 38, 39
TYPES = pathlib.Path("/sys/kernel/btf/vmlinux")
OLDEST = (5, 15)
# What graph.rb does. On the oldest Ruby, experiments that pause have all of it (test_experiment_verdicts.py).
ON_THE_NEWEST = ["exceptions", "fibers", "tailcalls", "threads", "ractors", "gc"]
VARIANTS = ["deep", "blocks", *(pytest.param(name, marks=pytest.mark.newest_ruby) for name in ON_THE_NEWEST)]


def capabilities():
    """The effective capabilities of this process, as bits."""
    return int(re.search(r"^CapEff:\s*(\w+)", pathlib.Path("/proc/self/status").read_text(), re.M)[1], 16)


def release():
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def numbers_mounts():
    """Whether each mount has a number that no other of this boot has: STATX_MNT_ID_UNIQUE."""
    return release() >= (6, 8)


def why_not():
    """Why the kernel cannot be sampled in here; None if it can, so that a test that fails has found a fault."""
    if release() < OLDEST:
        return f"the kernel is older than {'.'.join(map(str, OLDEST))}"
    if not TYPES.exists():
        return f"there is no {TYPES}"
    if not capabilities() >> CAP_BPF & capabilities() >> CAP_PERFMON & 1:
        return "CAP_BPF and CAP_PERFMON are missing"
    if not in_first_user_namespace():
        return "capabilities of another user namespace are of no use"
    found = subprocess.run(["pkg-config", "--atleast-version=1.0", "libbpf"], check=False).returncode == 0
    if not found or shutil.which("clang") is None or bpftool() is None:
        return "rbdump was built without libbpf, clang or bpftool"
    return None


def is_built_into(rbdump):
    """Whether an rbdump was built with sampling in the kernel: `make demo` builds it without."""
    done = subprocess.run([rbdump, "record", "--mode", "kernel", "-d", "0.01", "-o", "/dev/null", "--", "true"], capture_output=True, text=True, check=False)
    return "was built without" not in done.stderr


def in_first_user_namespace():
    return pathlib.Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]


def bpftool():
    return shutil.which("bpftool") or shutil.which("/usr/sbin/bpftool")


def programs():
    """The ids of the programs on the kernel's side that are rbdump's."""
    done = subprocess.run([bpftool(), "--json", "prog", "show"], capture_output=True, text=True, check=True)
    return {one["id"] for one in json.loads(done.stdout) if one.get("name", "").startswith("on_clock")}


def maps():
    """The tables and rings that are rbdump's: { id: name }."""
    done = subprocess.run([bpftool(), "--json", "map", "show"], capture_output=True, text=True, check=True)
    names = ("rbdump_ring", "processes", "rings", "scratches", "chances")
    return {one["id"]: one["name"] for one in json.loads(done.stdout) if one.get("name", "") in names}


def entries(table):
    """What is in one of the tables: { key: value }, each as a number."""
    done = subprocess.run([bpftool(), "--json", "map", "dump", "id", str(table)], capture_output=True, text=True, check=True)
    return {number(entry["key"]): number(entry["value"]) for entry in json.loads(done.stdout)}


def number(words):
    return int.from_bytes(bytes(int(word, 16) for word in words), "little")
