"""The layouts of offsets.d/, and what a layout says of itself."""

import pathlib
import re
import shutil
import subprocess

import pytest
from harness.synthetic import ROOT

OFFSETS_D = ROOT / "offsets.d"
# Those for upstream's defaults; and for other configurations, by name: {"setjmp": [path, …]}.
SHIPPED = sorted(OFFSETS_D.glob("*-x86_64.layout"))
CONFIGURATIONS = {
    path.name.removeprefix("releases-"): sorted(OFFSETS_D.glob(f"*-x86_64-{path.name.removeprefix('releases-')}.layout"))
    for path in sorted(OFFSETS_D.glob("releases-*"))
}


def header(text, word):
    """A line of the header, without its first word; None if it is not there."""
    found = re.search(rf"^{word} (.*)$", text, re.M)
    return found and found[1]


def release(version):
    """3.4.5, or 1.9.3p551, as numbers."""
    return tuple(int(part) for part in re.split("[.p]", version))


def claimed(text):
    """The first and the last release that a layout is for."""
    version, levels = header(text, "version"), header(text, "levels")
    if levels:
        return tuple(release(f"{version}p{level}") for level in levels.split(" "))
    return tuple(release(end) for end in (header(text, "versions") or f"{version} {version}").split(" "))


def shipped_for(version):
    """
    The layout that is shipped for a release; None if there is none. A version that has patch levels, but is named
    without one, is the newest of them.
    """
    wanted = release(version)
    ranges = {path: claimed(path.read_text()) for path in SHIPPED}
    if len(wanted) == 3 and wanted <= (2, 0, 0):
        wanted = max([(last, path) for path, (_, last) in ranges.items() if last[:3] == wanted], default=[wanted])[0]
    found = [path for path, (first, last) in ranges.items() if first <= wanted <= last]
    assert len(found) <= 1, f"{version} is claimed by {found}"
    return found[0] if found else None


def release_of(text):
    """The release that a layout was made from."""
    level = re.match(r"ruby [0-9.]+(p[0-9]+) ", header(text, "description") or "")
    return header(text, "version") + (level[1] if level and release(header(text, "version")) <= (2, 0, 0) else "")


def digest_of(text):
    """FNV-1a, 64 bits, of all facts, each with its newline."""
    lines = text.splitlines()
    digest = 0xCBF29CE484222325
    for byte in "".join(f"{line}\n" for line in lines[-1 - int(lines[-1].split(" ")[1]) : -1]).encode():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return f"{digest:016x}"


def compared(configuration=None):
    """What offsets.d/releases says of each release that was compared: {release: (tag, commit, day, digest)}."""
    name = f"releases-{configuration}" if configuration else "releases"
    lines = (OFFSETS_D / name).read_text().splitlines()
    return {words[0]: tuple(words[1:]) for words in (line.split(" ") for line in lines if not line.startswith("#"))}


def make_layout(elf, rbdump, folder):
    """Makes the layout of a Ruby as one that is shipped is made, from a file with its debug info. Gives the folder."""
    command = [rbdump, "--gen-offsets", elf, "--any-build", "-o", folder / "made.layout"]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    return folder


def without_digest(text):
    """A layout as if a person had written it: what is changed in it is then found by its content, or on the target."""
    return re.sub(r"^digest .*\n", "", text, flags=re.M)


def numbers(version):
    return [int(number) for number in version.split(".")]


def holds_for(text, version):
    """Whether a layout is that of a release, or claims a range that it is in (doc/layout-format.md)."""
    if re.search(rf"^version {re.escape(version)}$", text, re.M):
        return True
    claimed = re.search(r"^versions (\S+) (\S+)$", text, re.M)
    return claimed is not None and numbers(claimed[1]) <= numbers(version) <= numbers(claimed[2])


def generate_layout(ruby, rbdump, path):
    """The layout of a Ruby: from its debug info if it has it, else the shipped one for its version."""
    if ruby.has_debug:
        subprocess.run([rbdump, "--gen-offsets", ruby.elf, "-o", path], capture_output=True, timeout=60, check=True)
        return path
    for shipped in SHIPPED:
        if holds_for(shipped.read_text(), ruby.version):
            return pathlib.Path(shutil.copy(shipped, path))
    pytest.fail(f"no layout for {ruby.id}: no debug info, and none is shipped for {ruby.version}")
