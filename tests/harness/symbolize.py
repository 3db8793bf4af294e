"""What rbdump's symbolizer says of addresses, through tests/probes/symbolize.c, and where the code of a Ruby is."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess

BUILD = pathlib.Path(__file__).resolve().parent.parent.parent / "build"
SECONDS = 120  # for any one command; they take a few


def probe_path(name):
    """Path of a program of tests/probes/ that make has built (with SAN=1 the sanitized one)."""
    path = BUILD / ("san" if os.environ.get("SAN") == "1" else "") / "tests/probes" / name
    assert path.exists(), f"{path} is not there: run make probes"
    return str(path)


def run(*command, **options):
    options = {"stdin": subprocess.DEVNULL, "check": True, **options}
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=SECONDS, **options
    ).stdout


@dataclasses.dataclass(frozen=True)
class Image:
    """The file that holds the virtual machine."""

    elf: str

    @functools.cached_property
    def text(self):
        """Range of .text, as in the file."""
        found = re.search(r"\] \.text +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", run("readelf", "-SW", self.elf))
        start, size = (int(word, 16) for word in found.groups())
        return start, start + size

    @functools.cached_property
    def first_load(self):
        return int(re.search(r"LOAD +0x0+ +0x([0-9a-f]+)", run("readelf", "-lW", self.elf))[1], 16)

    @functools.cached_property
    def shared_addresses(self):
        """Addresses of code that more than one symbol has."""
        seen, shared = {}, set()
        for line in run("readelf", "-sW", self.elf).splitlines():
            words = line.split()
            if len(words) == 8 and words[3] in ("FUNC", "NOTYPE", "IFUNC") and words[6].isdigit():
                address, name = int(words[1], 16), words[7].split("@")[0]
                if self.text[0] <= address < self.text[1] and seen.setdefault(address, name) != name:
                    shared.add(address)
        return sorted(shared)

    def bias(self, pid):
        """What is to be added to an address in the file to have it in the process."""
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split(maxsplit=5)
            if len(words) == 6 and os.path.realpath(words[5]) == os.path.realpath(self.elf):
                assert int(words[2], 16) == 0
                return int(words[0].split("-")[0], 16) - self.first_load
        raise AssertionError(f"{self.elf} is not mapped")


def windows(rbdump, elf):
    """The torn windows that the layout of a Ruby has."""
    lines = run(rbdump, "--gen-offsets", elf, "-o", "-").splitlines()
    found = [line.split() for line in lines if line.startswith("window vm_push_frame ")]
    assert len(found) > 10
    return [(int(words[2], 16), int(words[3], 16)) for words in found]


def ask_rbdump(pid, addresses):
    """What the symbolizer says of a process's addresses."""
    lines = run(
        probe_path("symbolize"), pid, stdin=None, input="".join(f"{address:#x}\n" for address in addresses)
    ).splitlines()
    answers = [json.loads(line) for line in lines[1:]]
    assert [answer["address"] for answer in answers] == addresses
    return answers
