#!/usr/bin/env python3
"""Makes the golden cores: for each Ruby of tests/rubies/list, a small core and what that Ruby said of itself.

usage: make.py [SERIES...]        root, gdb, strace and zstd are needed; rbdump must be built

The target runs in a mount namespace of its own, from /srv/golden, with an empty environment: no path of this machine is
in the core, but for folders that are compiled into Ruby and the kernel's vdso, which are overwritten with others of the same
length. Of gdb's gcore those pages are kept that rbdump reads when Ruby's own file is not there; of its notes, those
that it knows. So SERIES.core.zst is what a core of that process would be that had been written with most of it left
out; SERIES.json says how to read it, and has each thread's frames as Ruby itself told them, before the core was made.
"""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(GOLDEN.parent))

from harness.core import gcore, settle  # noqa: E402
from harness.dump import as_text, run  # noqa: E402
from harness.rubies import find_rubies  # noqa: E402
from harness.target import Target  # noqa: E402

RBDUMP = GOLDEN.parent.parent / "build/rbdump"
SCRIPT = "golden.rb"
PLACE = "/srv/golden"
PAGE = 4096
PT_LOAD, PT_NOTE = 1, 4
CORES = {}  # by path: those that were read

# Registers, files, what the kernel called it, and what killed it: not the vector registers, which are large.
NOTES = {1: "NT_PRSTATUS", 3: "NT_PRPSINFO", 6: "NT_AUXV", 0x46494C45: "NT_FILE", 0x53494749: "NT_SIGINFO"}

# Runs the target as if the machine had nothing but it: its Ruby and its script are below PLACE.
IN_A_PLACE = f"""
set -e
mount -t tmpfs none /srv
mkdir -p {PLACE}/ruby
mount --bind "$RUBY_PREFIX" {PLACE}/ruby
cp "$TARGETS"/still.rb "$TARGETS"/{SCRIPT} {PLACE}
cd {PLACE}
shift 2
exec env -i {PLACE}/ruby/bin/ruby --disable-gems {SCRIPT} {PLACE} "$@"
"""


class Core:
    """A core file of 64 bits: its notes and what memory it has."""

    def __init__(self, path):
        self.content = path.read_bytes()
        self.header = self.content[:64]
        (at,) = struct.unpack_from("<Q", self.header, 32)
        size, count = struct.unpack_from("<HH", self.header, 54)
        self.headers = [struct.unpack_from("<IIQQQQQQ", self.content, at + i * size) for i in range(count)]

    def loads(self):
        """(flags, offset in the file, address, bytes in the file), of what is in it."""
        return [(h[1], h[2], h[3], h[5]) for h in self.headers if h[0] == PT_LOAD and h[5] > 0]

    def notes(self):
        """Those that are kept, as bytes."""
        kept = b""
        for _, _, offset, _, _, length, *_ in (header for header in self.headers if header[0] == PT_NOTE):
            at, end = offset, offset + length
            while at + 12 <= end:
                name, content, kind = struct.unpack_from("<III", self.content, at)
                size = 12 + (name + 3) // 4 * 4 + (content + 3) // 4 * 4
                if kind in NOTES:
                    kept += self.content[at : at + size]
                at += size
        return kept


def pages_read(core, *arguments):
    """Addresses of the pages of a core that rbdump reads: by what it reads of the file."""
    with tempfile.NamedTemporaryFile(mode="r", prefix="rbdump-strace-") as log:
        done = run("strace", "-f", "-y", "-s", "0", "-e", "trace=pread64", "-o", log.name,
                   RBDUMP, "--core", core, *arguments, "--json")  # fmt: skip
        assert done.returncode == 0, done.stderr
        reads = re.findall(rf"pread64\(\d+<{re.escape(str(core))}>, .*, (\d+), (\d+)\) += \d+", log.read())
    pages = set()
    for length, offset in reads:
        for flags, start, address, size in Core.loads(CORES[core]):
            low, high = max(int(offset), start), min(int(offset) + int(length), start + size)
            if low < high:
                first = (address + low - start) // PAGE
                pages |= {(page * PAGE, flags) for page in range(first, (address + high - start - 1) // PAGE + 1)}
    return sorted(pages)



def runs_of(pages):
    """[(flags, address, length)] of pages that follow each other."""
    runs = []
    for page, flags in pages:
        if runs and runs[-1][0] == flags and runs[-1][1] + runs[-1][2] == page:
            runs[-1][2] += PAGE
        else:
            runs.append([flags, page, PAGE])
    return runs


def reduced(core, pages):
    """The bytes of a core that has only those pages."""
    loads = core.loads()
    runs = runs_of(pages)
    notes = core.notes()
    header_size = 56
    notes_at = 64 + header_size * (1 + len(runs))
    memory_at = (notes_at + len(notes) + PAGE - 1) // PAGE * PAGE
    headers = struct.pack("<IIQQQQQQ", PT_NOTE, 4, notes_at, 0, 0, len(notes), 0, 4)
    memory = b""
    for flags, address, length in runs:
        headers += struct.pack("<IIQQQQQQ", PT_LOAD, flags, memory_at + len(memory), address, 0, length, length, PAGE)
        for page in range(address, address + length, PAGE):
            _, offset, start, _ = next(load for load in loads if load[2] <= page < load[2] + load[3])
            memory += core.content[offset + page - start : offset + page - start + PAGE].ljust(PAGE, b"\0")
    header = bytearray(core.header)
    struct.pack_into("<QQ", header, 32, 64, 0)  # program headers follow; no section headers
    struct.pack_into("<HHHHH", header, 54, header_size, 1 + len(runs), 0, 0, 0)
    return (bytes(header) + headers + notes).ljust(memory_at, b"\0") + memory


def without_paths(content, folder):
    """The same with a folder of this machine overwritten, and with what its kernel's vdso tells of where it was built."""
    name = str(folder).encode()
    content = content.replace(name, (b"/srv" + b"/" * len(name))[: len(name)])
    return re.sub(rb"/nix/store/[ -~]*", lambda found: b"/" * len(found[0]), content)


def told(target):
    """What Ruby said of its threads, as text."""
    return [
        {
            "key": as_text(subject["key"]),
            "name": as_text(subject["name"]),
            "state": as_text(subject["state"]),
            "frames": [
                [as_text(path), as_text(absolute), line, as_text(label)]
                for path, absolute, line, label in subject["frames"]
            ],
        }
        for subject in target.ready["threads"]
    ]


def make(ruby, folder):
    prefix = pathlib.Path(ruby.path).parent.parent
    os.environ.update(RUBY_PREFIX=str(prefix), TARGETS=str(GOLDEN.parent / "targets"))
    launcher = folder / "launcher"
    launcher.write_text("#!/bin/sh\nexec unshare --mount /bin/sh -c \"$PLACED\" \"$@\"\n")
    launcher.chmod(0o755)
    os.environ["PLACED"] = IN_A_PLACE
    target = Target(str(launcher), SCRIPT)
    try:
        settle(RBDUMP, target.pid)
        path = gcore(target.pid, folder / "whole")
    finally:
        target.close()
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # which has no layout for this very build
    CORES[path] = Core(path)
    arguments = ["--ruby-version", ruby.version]
    small = folder / "core"
    small.write_bytes(without_paths(reduced(CORES[path], pages_read(path, *arguments)), prefix))
    answers = [json.loads(run(RBDUMP, "--core", core, *arguments, "--json").stdout) for core in (path, small)]
    assert answers[0]["threads"] == answers[1]["threads"]
    subprocess.run(["zstd", "-q", "-f", "--ultra", "-22", small, "-o", GOLDEN / f"{ruby.id}.core.zst"], check=True, timeout=300)
    text = json.dumps({"pid": target.pid, "version": ruby.version, "threads": told(target)}, indent=1)
    (GOLDEN / f"{ruby.id}.json").write_text(text + "\n")
    print(f"{ruby.id}: {small.stat().st_size} bytes, packed {(GOLDEN / f'{ruby.id}.core.zst').stat().st_size}")


def main():
    for ruby in find_rubies():
        if ruby.shared and (not sys.argv[1:] or ruby.id in sys.argv[1:]):
            with tempfile.TemporaryDirectory(prefix="rbdump-golden-") as folder:
                make(ruby, pathlib.Path(folder))


if __name__ == "__main__":
    main()
