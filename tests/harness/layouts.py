"""The layouts of offsets.d/, and what a layout says of itself."""

import re
import subprocess

from harness.synthetic import ROOT

SHIPPED = sorted((ROOT / "offsets.d").glob("*-x86_64.layout"))


def header(text, word):
    """A line of the header, without its first word; None if it is not there."""
    found = re.search(rf"^{word} (.*)$", text, re.M)
    return found and found[1]


def release(version):
    return tuple(int(part) for part in version.split("."))


def claimed(text):
    """The first and the last release that a layout is for."""
    first, last = (header(text, "versions") or " ".join([header(text, "version")] * 2)).split(" ")
    return release(first), release(last)


def shipped_for(version):
    """The layout that is shipped for a release; None if there is none."""
    ranges = {path: claimed(path.read_text()) for path in SHIPPED}
    found = [path for path, (first, last) in ranges.items() if first <= release(version) <= last]
    assert len(found) <= 1, f"{version} is claimed by {found}"
    return found[0] if found else None


def make_layout(elf, rbdump, folder):
    """Makes the layout of a Ruby as one that is shipped is made, from a file with its debug info. Gives the folder."""
    command = [rbdump, "--gen-offsets", elf, "--any-build", "-o", folder / "made.layout"]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    return folder
