#!/usr/bin/python3
"""Whether the C sources keep to dumper/floors: a folder includes only those below it that it names.

tests/floors.py [--graph]: prints each include that goes elsewhere, each pair of modules (x.c and x.h) that need each
other, each file or line that is too long, and each edge that is allowed and not used; the exit status is then 1. --graph prints
the folders, lowest first, with how many includes go to which."""

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLOORS = ROOT / "dumper/floors"
LINES_MAX = 600
WRITTEN = {".c", ".h", ".py", ".rb", ".js", ".css", ".md"}
COLUMNS_MAX = 128  # clang-format leaves comments as they are; a tab counts 8
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)
GENERATED = {"layout_fields.h", "profile.pb-c.h", "stacks.skel.h"}


def allowed():
    """{folder: the folders that it may include}, lowest first"""
    floors = {}
    for line in FLOORS.read_text().splitlines():
        if line and not line.startswith("#"):
            folder, below = line.split(":")
            floors[folder] = below.split()
    return floors


def folder_of(path):
    """The folder of a source, as `floors` has it: below dumper/, or gen; what lies in dumper/ itself is `main`."""
    parent = path.relative_to(ROOT).parent
    return "main" if parent == pathlib.Path("dumper") else str(parent).removeprefix("dumper/")


def sources():
    return sorted([*ROOT.glob("dumper/**/*.[ch]"), *ROOT.glob("gen/*.[ch]")])


def includes(path, wrong):
    """The sources of ours that a source includes, however that is written; what is generated is not among them."""
    for quoted, other in INCLUDE.findall(path.read_text()):
        name = quoted or other
        places = [base / name for base in (path.parent, ROOT / "dumper", ROOT) if (base / name).is_file()]
        if places:
            yield places[0].resolve()
        elif quoted and name not in GENERATED:
            wrong.append(f"{path.relative_to(ROOT)}: there is no {name}")


def circles(edges):
    """The sets of modules that all need each other (Tarjan's strongly connected components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in edges[module]:
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in list(edges):
        if module not in index:
            visit(module)
    return found


def written():
    """Everything in the tree that people write, and read: sources, scripts and documents; tables.md is made of reports."""
    for folder in (".", "bench", "doc", "dumper", "gdb-scripts", "gen", "tests"):
        for path in sorted((ROOT / folder).glob("*" if folder == "." else "**/*")):
            if path.suffix in WRITTEN and path.name != "tables.md" and "node_modules" not in path.parts:
                yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="store_true", help="print the folders and their edges")
    options = parser.parse_args()
    floors, wrong = allowed(), []
    used, modules = collections.defaultdict(collections.Counter), collections.defaultdict(set)
    order = list(floors)
    for folder, below in floors.items():
        for other in below:
            if other not in floors or order.index(other) >= order.index(folder):
                wrong.append(f"{FLOORS.relative_to(ROOT)}: {folder} is not above {other}")
    for path in sources():
        folder, name = folder_of(path), path.relative_to(ROOT)
        if folder not in floors:
            wrong.append(f"{name}: the folder is not in {FLOORS.relative_to(ROOT)}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line.expandtabs(8)) > COLUMNS_MAX:
                wrong.append(f"{name}:{number}: more than {COLUMNS_MAX} columns")
        for included in includes(path, wrong):
            other = folder_of(included)
            if included.with_suffix("") != path.with_suffix(""):
                modules[path.with_suffix("")].add(included.with_suffix(""))
            if other == folder:
                continue
            used[folder][other] += 1
            if other not in floors[folder]:
                wrong.append(f"{name}: includes {included.relative_to(ROOT)}, and {folder} is not to know {other}")
    for path in written():
        lines = path.read_text().count("\n")
        if lines > LINES_MAX:
            wrong.append(f"{path.relative_to(ROOT)}: {lines} lines; no file has more than {LINES_MAX}")
    for folder, below in floors.items():
        wrong += [f"{FLOORS.relative_to(ROOT)}: {folder} does not include {other}" for other in below if not used[folder][other]]
    for circle in circles(modules):
        wrong.append("these need each other: " + ", ".join(str(module.relative_to(ROOT)) for module in circle))
    if options.graph:
        for folder in floors:
            print(f"{folder}:", *(f"{other}({used[folder][other]})" for other in order if used[folder][other]))
    for line in wrong:
        print(line, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
