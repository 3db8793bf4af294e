"""
Recordings that are small and ask for much memory: what report must bound (doc/recording.md has the format). Each asks for
several times the 64 MB of LOW_LIMIT; those of UNDER_ANY_LIMIT also of the 256 MB that are the default.
"""

import functools
import json
import subprocess

FRAME = 16 << 20
LOW_LIMIT = 64  # MB
UNDER_ANY_LIMIT = ("frames", "head", "spans", "threads")  # they are made, and refused, in a second
MAGIC = b"rbdump recording 1\n"
HEAD = {"tool": "rbdump", "mode": "paused", "start_s": 1, "start_ns": 0, "rate": 99.0, "command": None}


def number(value):
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def signed(value):
    return number(value * 2 if value >= 0 else -value * 2 - 1)


def string(value):
    return number(len(value) + 1) + value


def record(kind, payload):
    return kind + number(len(payload)) + payload


HEADER = MAGIC + record(b"H", json.dumps(HEAD).encode())
PROCESS = record(b"P", number(0) + number(7) + number(1) + number(9) + number(0) + string(b"ruby") + string(b"3.4.5") * 2)
THREAD = record(b"T", bytes([0, 0]) + number(7) + bytes([1, 1, 0]))
START = HEADER + PROCESS + THREAD


def function(name):
    return record(b"F", bytes([0, 0, 2]) + string(name) * 2 + string(b"/a.rb") * 2)


def frames(count, first=0):
    return record(b"L", bytes([0]) + b"".join(b"\0" + signed(line) for line in range(first, first + count)))


def span(node):
    """Of thread 0, on the CPU; a millisecond after the last."""
    return number(0) + number(0) + number(1000) + number(1) + bytes([0]) + number(node)


def parts(make, count, at_once=4096):
    """So many records one by one, as the frames of a file that they would fill."""
    part = []
    for i in range(count):
        part.append(make(i))
        if len(part) == at_once:
            yield b"".join(part)
            part = []
    yield b"".join(part)


def of_functions():
    yield START
    yield from parts(lambda i: function(b"%100d" % i), 300_000)


def of_long_names():
    yield START
    yield from parts(lambda i: function(b"%1048576d" % i), 80, 16)


def of_frames():
    """The same one, that has a number anew each time."""
    yield START + function(b"f")
    for _ in range(10):
        yield record(b"L", b"\0" + bytes(20_000_000))


def of_nodes(chains=40, depth=131_000, first_line=0):
    """Stacks as deep as may be, that have nothing in common; a span of each."""
    yield START + function(b"f") + frames(chains, first_line)
    for chain in range(chains):
        rest = (b"\1" + number(chain)) * (depth - 1)
        yield (
            record(b"N", b"\0" + number(chain * depth + 1) + number(chain) + rest)
            + record(b"R", b"\0" + span((chain + 1) * depth))
        )


def of_threads():
    """Whose number begins again and again: without a tid each is a thread of its own."""
    yield START
    thread = record(b"X", b"\0") + record(b"T", bytes([0, 0, 0, 1, 0, 0]))
    for _ in range(100):
        yield thread * 100_000


def of_processes():
    yield HEADER
    tail = number(0) + number(0) + number(0) + number(0) + string(b"") + b"\0\0"
    yield from parts(lambda i: record(b"P", number(i) + tail), 1_000_000)


def of_spans():
    yield START
    for _ in range(100):
        yield record(b"R", b"\0" + span(0) * 100_000)


def of_one_record():
    """A record of a later version, as long as may be, in each of two frames."""
    yield START
    yield record(b"?", bytes(60 << 20)) * 2
    yield record(b"?", bytes(60 << 20)) * 2


def of_head():
    yield MAGIC + record(b"H", b'{"command":[' + b"[]," * (20 << 20) + b"0]}")


BOMBS = {name[3:]: make for name, make in list(globals().items()) if name.startswith("of_")}


def write(path, make):
    """Packs what it yields, in frames of so many parts as a reader unpacks at once."""
    with path.open("wb") as file:
        waiting = b""
        for part in make():
            if waiting and len(waiting) + len(part) > FRAME:
                file.write(pack(waiting))
                waiting = b""
            waiting += part
        file.write(pack(waiting))
    return path


def pack(data):
    return subprocess.run(["zstd", "-qc", "-1"], input=data, stdout=subprocess.PIPE, check=True, timeout=120).stdout


def write_nodes(path, chains, depth, first_line=0):
    return write(path, functools.partial(of_nodes, chains, depth, first_line))
