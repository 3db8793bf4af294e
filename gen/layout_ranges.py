#!/usr/bin/env python3
"""Puts the layouts of many releases into a folder, one file for those that are the same.

usage: layout_ranges.py [--rbdump FILE] -d FOLDER INPUT...

INPUT is what `rbdump --gen-offsets` reads: a Ruby with debug info, or an object that layout_from_source.py has kept.
The layout of each is made, for every build of its version. Patch releases that follow each other, and whose facts are
the same in every line, become one file that claims that range (`versions FIRST LAST`). It is the layout of the one of
them that was named first: name first those that were built, and tested. A release that was not given is claimed by
none, though its neighbours may be alike. Two inputs of one version must agree.

What FOLDER has for the versions of these series is replaced; layouts for one build stay.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FACTS = ("size", "member", "enumerator", "constant", "function")
RELEASE = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")


class Failed(Exception):
    """One sentence."""


class Layout:
    def __init__(self, source, text):
        self.source = source
        self.text = text
        lines = text.splitlines()
        self.header = dict(line.split(" ", 1) for line in lines if line.split(" ", 1)[0] not in (*FACTS, "end"))
        self.facts = [line for line in lines if line.split(" ", 1)[0] in FACTS]
        release = RELEASE.fullmatch(self.header["version"])
        if not release:
            raise Failed(f"{source}: {self.header['version']} is no release, and in no range")
        self.version = tuple(map(int, release.groups()))

    @property
    def series(self):
        return self.version[:2]

    def name(self):
        return f"{self.header['version']}-{self.header['arch']}.layout"

    def claiming(self, first, last):
        """Its text, with the range that it is for."""
        if first == last:
            return self.text
        line = f"version {self.header['version']}\n"
        return self.text.replace(line, f"{line}versions {dotted(first)} {dotted(last)}\n", 1)


def dotted(version):
    return ".".join(map(str, version))


def make(rbdump, path):
    done = subprocess.run(
        [rbdump, "--gen-offsets", path, "--any-build", "-o", "-"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    return Layout(path, done.stdout)


def by_version(layouts):
    """One for each version; those of one version agree."""
    found = {}
    for layout in layouts:
        other = found.setdefault(layout.version, layout)
        if other.facts != layout.facts:
            differing = sorted(set(other.facts) ^ set(layout.facts))
            raise Failed(
                f"{other.source} and {layout.source} are both {dotted(layout.version)}, and differ: {differing[0]}"
            )
    return found


def grouped(found):
    """[[layouts that are the same, of releases that follow each other]]"""
    groups = []
    for version in sorted(found):
        layout, before = found[version], groups[-1][-1] if groups else None
        if before and before.version == (*version[:2], version[2] - 1) and before.facts == layout.facts:
            groups[-1].append(layout)
        else:
            groups.append([layout])
    return groups


def write(layouts, folder):
    found = by_version(layouts)
    order = list(found.values())  # as they were named
    texts = {}
    for group in grouped(found):
        chosen = min(group, key=order.index)
        texts[chosen.name()] = chosen.claiming(group[0].version, group[-1].version)
        print(f"{dotted(group[0].version)} to {dotted(group[-1].version)}: {chosen.name()}, of {len(group)}")
    for path in folder.glob("*.layout"):
        release = RELEASE.match(path.name)
        is_for_a_build = re.fullmatch(r".*-[0-9a-f]{2,12}\.layout", path.name)
        if release and not is_for_a_build and tuple(map(int, release.groups()[:2])) in {v[:2] for v in found}:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)


def main():
    parser = argparse.ArgumentParser(
        usage="layout_ranges.py [--rbdump FILE] -d FOLDER INPUT...", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument("--rbdump", default=ROOT / "build/rbdump", metavar="FILE")
    parser.add_argument("-d", dest="folder", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    arguments = parser.parse_args()
    try:
        write([make(arguments.rbdump, path) for path in arguments.inputs], arguments.folder)
    except (Failed, OSError) as problem:
        print(f"layout_ranges.py: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
