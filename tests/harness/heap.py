"""Ruby's heap: what a program says of its own objects, and what rbdump says of them."""

import collections
import contextlib
import json
import pathlib
import struct
import subprocess

from conftest import note_not_applicable
from harness.dump import run

HERE = pathlib.Path(__file__).parent.parent / "targets/heap"
ROW = struct.Struct("<5Q")
EDGE = struct.Struct("<2Q")
TYPES = (
    "NONE OBJECT CLASS MODULE FLOAT STRING REGEXP ARRAY HASH STRUCT BIGNUM FILE DATA MATCH COMPLEX RATIONAL "
    "x NIL TRUE FALSE SYMBOL FIXNUM UNDEF x x x IMEMO NODE ICLASS ZOMBIE MOVED x"
).split()

# Up to 2.2, there is no T_IMEMO, and the types behind it are one more.
OLD_TYPES = [*TYPES[:26], "x", "x", *TYPES[27:31]]

# One object as Ruby tells it. `klass` is the name of its class; None if it is internal, or its class has no name.
Truth = collections.namedtuple("Truth", "address type klass anonymous slot_size size")


def has_constants(ruby):
    """Whether rbdump finds what constants refer to: in 2.3 and 2.4, no layout has their tables."""
    if not (2, 3) <= ruby.series < (2, 5):
        return True
    note_not_applicable(f"what constants keep on {ruby.id}: no layout of 2.3 and 2.4 has their tables")
    return False


def build(folder):
    """The extension that tells all objects."""
    path = folder / "truth.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-w", "-o", path, HERE / "truth.c"], check=True, timeout=60)
    return path


class Objects:
    """A program with objects of every type, which has told all of them and does nothing more."""

    def __init__(self, ruby, extension, script="objects.rb", flags=(), references=False):
        self.process = subprocess.Popen(
            [ruby.path, *flags, "--disable-gems", HERE / script, extension, str(int(references))],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.pid = self.process.pid
        self.series = ruby.series
        self.has_debug = ruby.has_debug
        self.types = TYPES if ruby.series >= (2, 3) else OLD_TYPES

    def __enter__(self):
        try:
            self._read()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _read(self):
        out = self.process.stdout
        first = out.readline()
        assert first, self.process.stderr.read().decode()
        names = {}
        for _ in range(int(first)):
            address, name = out.readline().decode().rstrip("\n").split(" ", 1)
            names[int(address)] = name or None
        count = int(out.readline())
        data = out.read(count * ROW.size)
        self.slots = count
        self.objects = []
        for address, flags, klass, slot_size, size in ROW.iter_unpack(data):
            if flags & 31:
                self.objects.append(
                    Truth(address, f"T_{self.types[flags & 31]}", names.get(klass), klass and klass not in names, slot_size, size)
                )

        self.references = collections.defaultdict(list)
        for pair in EDGE.iter_unpack(out.read(int(out.readline()) * EDGE.size)):
            self.references[pair[0]].append(pair[1])

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()


def heap(rbdump, *arguments, status=0):
    """`rbdump heap --json`, parsed."""
    done = run(rbdump, "heap", "--json", *arguments)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


@contextlib.contextmanager
def leaking(ruby, extension, rbdump, folder, *arguments):
    """The program that leaks, after it has; and what --json said before, with these arguments."""
    with subprocess.Popen(
        [ruby.path, "--disable-gems", HERE / "leaks.rb", extension], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            before = folder / "before.json"
            before.write_text(run(rbdump, "heap", "--json", *arguments, program.pid).stdout)
            program.stdin.write(b"\n")
            program.stdin.flush()
            assert program.stdout.readline() == b"done\n"
            yield program, before
        finally:
            program.kill()


def written(lines):
    """What -f objspace has written: the objects by their addresses. Each reference leads to a line, as tools expect."""
    parsed = [json.loads(line) for line in lines]
    roots = [one["root"] for one in parsed if one["type"] == "ROOT"]
    assert len(roots) == len(set(roots))
    addresses = {one["address"] for one in parsed if one["type"] != "ROOT"}
    assert {ref for one in parsed for ref in one.get("references", ())} <= addresses
    return {int(one["address"], 16): one for one in parsed if one["type"] not in ("ROOT", "NONE", "SHAPE")}
