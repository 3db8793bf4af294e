#!/usr/bin/env python3
"""Makes layout_fields.h and layout_fields.c from fields.def.

usage: fields.py FIELDS_DEF OUTPUT_FOLDER

The header has one enum a kind of entry (S_ structs, F_ members, E_ enumerators, C_ constants, Y_ symbols,
P_ functions, W_ windows) in the order of fields.def, and LAYOUT_FIELDS_ASKED, which is another for every other list of
things to look for; the source the tables of `struct layout_spec` (layout/layout.h) by
these ids. An id is its letter and the names as fields.def spells them: F_cfp_iseq, E_tLAST_OP_ID.

fields.def is read strictly: whatever is not understood is an error with its line number, and nothing is written.
"""

import hashlib
import os
import re
import sys
from dataclasses import dataclass

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
NEEDS = ("required", "optional")

# kind: (letter of its ids, word in C names)
KINDS = {
    "struct": ("S", "struct"),
    "member": ("F", "member"),
    "enumerator": ("E", "enumerator"),
    "constant": ("C", "constant"),
    "symbol": ("Y", "symbol"),
    "function": ("P", "function"),
    "window": ("W", "window"),
}


class Invalid(Exception):
    """A line of fields.def that cannot be understood."""

    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


@dataclass
class Entry:
    """One entry of fields.def; for a member, names are STRUCT.PATH, the struct's alternatives being the outer loop."""

    kind: str
    ident: str
    names: list
    label: str
    purpose: str
    required: bool
    parent: "Entry | None" = None


class Fields:
    """The content of fields.def: entries by kind, each in file order, and the lists of `anyof`."""

    def __init__(self):
        self.entries = {kind: [] for kind in KINDS}
        self.anyof = []
        self._idents = set()
        self._names = set()

    def add(self, line, entry):
        if entry.ident in self._idents:
            raise Invalid(line, f"{entry.label} is there twice")
        self._idents.add(entry.ident)
        for name in entry.names:
            if (entry.kind, name) in self._names:
                raise Invalid(line, f"{entry.kind} {name} is there twice")
            self._names.add((entry.kind, name))
        self.entries[entry.kind].append(entry)

    def member(self, line, label):
        for entry in self.entries["member"]:
            if entry.label == label:
                return entry
        raise Invalid(line, f"anyof: no field {label}")


def alternatives(line, text, pattern):
    names = text.split("|")
    for name in names:
        if not pattern.fullmatch(name):
            raise Invalid(line, f"not a name: {name!r}")
    return names


def take(line, text, count, form):
    """The first `count` words of a line and the rest of it, neither empty."""
    words = text.split(None, count)
    if len(words) != count + 1:
        raise Invalid(line, f"expected `{form}`")
    return words


def need(line, word):
    if word not in NEEDS:
        raise Invalid(line, f"expected `required` or `optional`, not {word!r}")
    return word == "required"


def parse(text):
    """Reads fields.def; raises Invalid."""
    fields = Fields()
    struct = None
    anyof = []
    for line, raw in enumerate(text.split("\n"), 1):
        content = raw.rstrip()
        if not content or content.startswith("#"):
            continue
        if "\t" in content or not content.isprintable():
            raise Invalid(line, "tabs and control characters are not allowed")
        if content.startswith(" "):
            if struct is None:
                raise Invalid(line, "a field without a struct above it")
            field, paths, word, purpose = take(line, content, 3, "  FIELD PATH NEED  PURPOSE")
            alternatives(line, field, NAME)
            names = [f"{s}.{p}" for s in struct.names for p in alternatives(line, paths, PATH)]
            alias = struct.label
            fields.add(
                line,
                Entry("member", f"F_{alias}_{field}", names, f"{alias}.{field}", purpose, need(line, word), struct),
            )
            continue
        kind = content.split(None, 1)[0]
        if kind != "struct":
            struct = None
        if kind == "struct":
            words = content.split()
            if len(words) != 4:
                raise Invalid(line, "expected `struct ALIAS NAME[|NAME…] NEED`")
            alternatives(line, words[1], NAME)
            struct = Entry(
                "struct", f"S_{words[1]}", alternatives(line, words[2], NAME), words[1], "", need(line, words[3])
            )
            fields.add(line, struct)
        elif kind in ("enumerator", "constant", "symbol"):
            _, name, word, purpose = take(line, content, 3, f"{kind} NAME NEED  PURPOSE")
            names = alternatives(line, name, NAME)
            letter = KINDS[kind][0]
            fields.add(line, Entry(kind, f"{letter}_{names[0]}", names, names[0], purpose, need(line, word)))
        elif kind in ("function", "window"):
            _, name, purpose = take(line, content, 2, f"{kind} NAME PURPOSE")
            alternatives(line, name, NAME)
            letter = KINDS[kind][0]
            fields.add(line, Entry(kind, f"{letter}_{name}", [name], name, purpose, False))
        elif kind == "anyof":
            labels = content.split()[1:]
            if len(labels) < 2:
                raise Invalid(line, "expected `anyof FIELD FIELD…`")
            anyof.append((line, labels))
        else:
            raise Invalid(line, f"unknown kind {kind!r}")
    fields.anyof = [[fields.member(line, label) for label in labels] for line, labels in anyof]
    for kind, entries in fields.entries.items():
        if not entries:
            raise Invalid(line, f"the file ends without any {kind}")
    return fields


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def asked(fields):
    """A digest of what is looked for: not of its order, its ids, or what it is for."""
    lines = sorted(f"{kind} {'|'.join(entry.names)}" for kind, entries in fields.entries.items() for entry in entries)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def header(fields):
    out = ["/* Made by gen/fields.py from gen/fields.def. */", "#ifndef RBDUMP_LAYOUT_FIELDS_H"]
    out += ["#define RBDUMP_LAYOUT_FIELDS_H", "", f'#define LAYOUT_FIELDS_ASKED "{asked(fields)}"', ""]
    for kind, (_, word) in KINDS.items():
        out.append(f"enum layout_{word}_id {{")
        for entry in fields.entries[kind]:
            comment = entry.purpose or " or ".join(entry.names)
            out.append(f"\t{entry.ident}, /* {comment} */")
        out += [f"\tLAYOUT_{word.upper()}S", "};", ""]
    out += ["#endif", ""]
    return "\n".join(out)


def source(fields):
    out = ["/* Made by gen/fields.py from gen/fields.def. */", '#include "layout/layout.h"', ""]
    for kind, (_, word) in KINDS.items():
        for entry in fields.entries[kind]:
            names = ", ".join(quoted(name) for name in entry.names)
            out.append(f"static const char *const names_{entry.ident}[] = {{{names}, NULL}};")
        out.append("")
        out.append(f"const struct layout_spec layout_{word}_specs[LAYOUT_{word.upper()}S] = {{")
        for entry in fields.entries[kind]:
            parent = entry.parent.ident if entry.parent else "-1"
            required = "true" if entry.required else "false"
            out.append(
                f"\t[{entry.ident}] = {{names_{entry.ident}, {quoted(entry.label)}, "
                f"{quoted(entry.purpose)}, {required}, {parent}}},"
            )
        out += ["};", ""]
    out.append("const int layout_anyof[] = {")
    for members in fields.anyof:
        out.append("\t" + ", ".join(member.ident for member in members) + ", -1,")
    out += ["\t-1,", "};", ""]
    return "\n".join(out)


def main(argv):
    if len(argv) != 3:
        sys.stderr.write("usage: fields.py FIELDS_DEF OUTPUT_FOLDER\n")
        return 64
    path, folder = argv[1:]
    try:
        with open(path, encoding="utf-8") as file:
            fields = parse(file.read())
    except Invalid as error:
        sys.stderr.write(f"{path}:{error.line}: {error}\n")
        return 1
    except (OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"{path}: {error}\n")
        return 1
    for name, text in (("layout_fields.h", header(fields)), ("layout_fields.c", source(fields))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
