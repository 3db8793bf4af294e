"""Native frames in dumps, and what gdb says of the same stacks."""

import json
import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).resolve().parent / "gdb_stacks.py"


def gdb_stacks(*arguments):
    """gdb's native stack of each thread: tid → [(pc, name, inlined)], the innermost first. `arguments`: gdb's."""
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *map(str, arguments), "-x", SCRIPT],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return of_gdb(done.stdout)


def of_gdb(said):
    """The same of what SCRIPT has printed in a gdb that stays."""
    threads = [json.loads(line) for line in said.splitlines() if line.startswith('{"tid"')]
    return {thread["tid"]: [tuple(frame) for frame in thread["frames"]] for thread in threads}


def native(thread):
    """The native functions of a thread."""
    return [frame for frame in thread["frames"] if frame["kind"] == "native" and not frame["lost"]]


def lost(thread):
    """Why its native stack could not be followed."""
    return [frame["lost"] for frame in thread["frames"] if frame["kind"] == "native" and frame["lost"]]


def of_ruby(thread):
    """Its frames without the native ones."""
    return [frame for frame in thread["frames"] if frame["kind"] != "native"]


def addresses(thread):
    """Where its native functions are, without those that are inlined."""
    return [int(frame["address"], 16) for frame in native(thread) if not frame["inlined"]]


def is_suspended(thread):
    return bool(thread["fiber"]) and not thread["fiber"]["current"]


def check_against_gdb(answer, stacks):
    """Each thread's native stack is the one that gdb has found, and nothing was lost."""
    for thread in answer["threads"]:
        assert lost(thread) == [], thread["name"]
        assert "unplaced" not in thread, thread["name"]
        if not is_suspended(thread):
            expected = [pc for pc, _, inlined in stacks[thread["tid"]] if not inlined]
            assert addresses(thread) == expected, thread["name"]
