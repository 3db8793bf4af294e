#!/usr/bin/env python3
"""Puts the layouts of many releases into a folder, one file for those that are the same.

usage: layout_ranges.py [--rbdump FILE] [--repository FOLDER] [--configuration NAME] -d FOLDER INPUT...

INPUT is what `rbdump --gen-offsets` reads: a Ruby with debug info, or an object that layout_from_source.py has kept.
The layout of each is made, for every build of its version. Patch releases that follow each other, and whose facts are
the same in every line, become one file that claims that range (`versions FIRST LAST`). It is the layout of the one of
them that was named first: name first those that were built, and tested. A release that was not given is claimed by
none, though its neighbours may be alike. Inputs of one release must agree; of these, one whose description has the
revision stands for it.

Up to 2.0.0 a release is a patch level (1.9.3p551): those that are the same become a file that claims the levels from
the first to the last (`levels FIRST LAST`). That with the newest has the name VERSION-ARCH.layout, which is the first
that rbdump looks at.

FOLDER/releases says what was compared: a line for each release, with its tag in Ruby's repository, that tag's commit
and day, and the digest of its layout's facts. The tag of a release that is not in it yet is looked up in --repository,
a clone of https://github.com/ruby/ruby; what an input says of its revision must be that commit.

What was configured otherwise than by default, and has other facts for that, is given by itself, with --configuration:
its files say so (`configuration NAME`), in their names, too, and what was compared is in FOLDER/releases-NAME.

What FOLDER has for the versions of these series, in that configuration, is replaced; layouts for one build stay.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")
LEVEL = re.compile(r"ruby [0-9.]+p([0-9]+) ")
REVISION = re.compile(r" revision ([0-9a-f]{10,})\)")
RELEASES_HEAD = "# What was compared (gen/layout_ranges.py): release, tag, its commit, its day, digest of the facts\n"

# A line of FOLDER/releases. The release is a tuple of numbers: (3, 4, 5), or (1, 9, 3, 551).
Origin = collections.namedtuple("Origin", "tag commit day")


class Failed(Exception):
    """One sentence."""


class Layout:
    def __init__(self, source, text):
        self.source = source
        self.text = text
        lines = text.splitlines()
        # The last line has the number of facts, which stand above it; all else but the first is the header.
        facts = len(lines) - 1 - int(lines[-1].removeprefix("end "))
        self.header = dict(line.split(" ", 1) for line in lines[:facts])
        self.facts = lines[facts:-1]
        self.release = self._release()

    @property
    def digest(self):
        return self.header["digest"]

    @property
    def version(self):
        return self.release[:3]

    @property
    def revision(self):
        """As the description has it, if it does; before git, it was a number."""
        found = REVISION.search(self.header.get("description", ""))
        return found and found[1]

    def _release(self):
        version = VERSION.fullmatch(self.header["version"])
        if not version:
            raise Failed(f"{self.source}: {self.header['version']} is no release, and in no range")
        release = tuple(map(int, version.groups()))
        if release > (2, 0, 0):
            return release
        level = LEVEL.match(self.header.get("description", ""))
        if not level:
            raise Failed(f"{self.source}: its description has no patch level, which a release of {dotted(release)} is")
        return (*release, int(level[1]))

    def claiming(self, first, last, origin, configuration):
        """Its text, with the range and the configuration that it is for, and where it comes from."""
        text = self.text
        version, digest = f"version {self.header['version']}\n", f"digest {self.digest}\n"
        if configuration:
            text = text.replace("description ", f"configuration {configuration}\ndescription ", 1)
        more = f"origin {origin.tag} {origin.commit}\n"
        if len(first) > 3:
            more = f"levels {first[3]} {last[3]}\n{more}"
        elif first != last:
            text = text.replace(version, f"{version}versions {dotted(first)} {dotted(last)}\n", 1)
        return text.replace(digest, digest + more, 1)


def dotted(release):
    """3.4.5, 1.9.3p551"""
    return ".".join(map(str, release[:3])) + "".join(f"p{level}" for level in release[3:])


def parsed(release):
    return tuple(map(int, re.split("[.p]", release)))


def make(rbdump, path):
    done = subprocess.run(
        [rbdump, "--gen-offsets", path, "--any-build", "-o", "-"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Failed(done.stderr.strip() or f"{rbdump} --gen-offsets {path} ended with {done.returncode}")
    return Layout(path, done.stdout)


def by_release(layouts):
    """One for each release, in the order in which releases were named; those of one release agree."""
    found = {}
    for layout in layouts:
        other = found.setdefault(layout.release, layout)
        if other.digest != layout.digest:
            differing = sorted(set(other.facts) ^ set(layout.facts))
            raise Failed(
                f"{other.source} and {layout.source} are both {dotted(layout.release)}, and differ: {differing[0]}"
            )
        if layout.revision and not other.revision:
            found[layout.release] = layout
    return found


def follows(release, before):
    """Of patch levels, any may be the next: few of them were released."""
    if len(release) > 3:
        return release[:3] == before[:3]
    return before == (*release[:2], release[2] - 1)


def grouped(found):
    """[[layouts that are the same, of releases that follow each other]]"""
    groups = []
    for release in sorted(found):
        layout, before = found[release], groups[-1][-1] if groups else None
        if before and follows(release, before.release) and before.digest == layout.digest:
            groups[-1].append(layout)
        else:
            groups.append([layout])
    return groups


# ---- where they come from


def list_of(folder, configuration):
    return folder / ("releases" + (f"-{configuration}" if configuration else ""))


def read_releases(path):
    """{release: (Origin, digest)}"""
    lines = path.read_text().splitlines() if path.exists() else []
    words = [line.split() for line in lines if not line.startswith("#")]
    return {parsed(release): (Origin(*origin), digest) for release, *origin, digest in words}


def look_up(release, repository):
    """The tag that a release has; None if there is none."""
    numbers = list(map(str, release))
    for tag in ("v" + "_".join(numbers), "v" + ".".join(numbers)):
        done = subprocess.run(
            ["git", "-C", repository, "log", "-1", "--format=%H %cs", f"refs/tags/{tag}", "--"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return Origin(tag, *done.stdout.split())
    return None


def origin_of(layout, known, repository):
    release = layout.release
    origin = known[release][0] if release in known else repository and look_up(release, repository)
    if not origin:
        raise Failed(f"the tag of {dotted(release)} is not known: name a clone of Ruby's repository with --repository")
    if layout.revision and not origin.commit.startswith(layout.revision):
        raise Failed(f"{layout.source} is of revision {layout.revision}, and {origin.tag} is {origin.commit}")
    return origin


def write_releases(path, kept, found, origins):
    lines = {release: (*origin, digest) for release, (origin, digest) in kept.items()}
    lines |= {release: (*origins[release], layout.digest) for release, layout in found.items()}
    text = "".join(" ".join((dotted(release), *lines[release])) + "\n" for release in sorted(lines))
    path.write_text(RELEASES_HEAD + text)


# ---- files


def name_of(chosen, group, groups, configuration):
    """The file for a group; among those of one version, the newest has no patch level in its name."""
    newer = [other for other in groups if other[0].version == chosen.version and other[0].release > group[0].release]
    suffix = f"-{configuration}" if configuration else ""
    return f"{dotted(chosen.release if newer else chosen.version)}-{chosen.header['arch']}{suffix}.layout"


def is_replaced(path, series, configuration):
    """Whether a file of the folder is for the versions of these series, in that configuration."""
    version = VERSION.match(path.name)
    if not version or tuple(map(int, version.groups()[:2])) not in series:
        return False
    if re.fullmatch(r".*-[0-9a-f]{2,12}\.layout", path.name):
        return False  # for one build
    theirs = re.search(r"^configuration (.*)$", path.read_text(), re.M)
    return (theirs and theirs[1]) == configuration


def write(layouts, folder, repository, configuration):
    found = by_release(layouts)
    order = list(found)  # as they were named
    known = read_releases(list_of(folder, configuration))
    # Tags and commits are the same, however it was configured.
    tags = read_releases(folder / "releases") | known
    origins = {release: origin_of(layout, tags, repository) for release, layout in found.items()}
    groups = grouped(found)
    texts = {}
    for group in groups:
        chosen = min(group, key=lambda layout: order.index(layout.release))
        name = name_of(chosen, group, groups, configuration)
        first, last = group[0].release, group[-1].release
        texts[name] = chosen.claiming(first, last, origins[chosen.release], configuration)
        print(f"{dotted(first)} to {dotted(last)}: {name}, of {len(group)}")
    series = {release[:2] for release in found}
    for path in folder.glob("*.layout"):
        if is_replaced(path, series, configuration):
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)
    kept = {release: line for release, line in known.items() if release[:2] not in series}
    write_releases(list_of(folder, configuration), kept, found, origins)


def main():
    parser = argparse.ArgumentParser(
        usage="layout_ranges.py [--rbdump FILE] [--repository FOLDER] -d FOLDER INPUT...",
        description=__doc__.split("\n", maxsplit=1)[0],
    )
    parser.add_argument("--rbdump", default=ROOT / "build/rbdump", metavar="FILE")
    parser.add_argument("--repository", metavar="FOLDER", help="a clone of Ruby's repository, for the tags")
    parser.add_argument("--configuration", metavar="NAME", help="what they were configured for, in lower-case letters")
    parser.add_argument("-d", dest="folder", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    arguments = parser.parse_args()
    try:
        layouts = [make(arguments.rbdump, path) for path in arguments.inputs]
        write(layouts, arguments.folder, arguments.repository, arguments.configuration)
    except (Failed, OSError) as problem:
        print(f"layout_ranges.py: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
