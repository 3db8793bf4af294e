#!/usr/bin/env python3
"""Makes flamegraph_page.c, the page of the flame graph as C strings, from the files of this folder.

usage: embed.py OUTPUT_FOLDER

page.html is the template: {{STYLE}}, {{SCRIPT}} and {{POLICY}} are filled in here, {{DATA}} is where the page is cut in
two. The policy allows the one script and the one style by their hashes, and nothing else: whatever is in the data, it
is not run, and the page asks no network for anything.
"""

import base64
import hashlib
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("model.js", "colors.js", "graph.js", "text.js", "page.js", "functions.js", "controls.js")
PLACEHOLDER = re.compile(r"\{\{([A-Z]+)\}\}")


class Invalid(Exception):
    """A file of this folder cannot be part of the page."""


def read(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    if "\r" in text or "\0" in text:
        raise Invalid(f"{name}: an HTML parser would change it, and its hash")
    return text


def script():
    text = '\n"use strict";\n(() => {\n' + "\n".join(read(name) for name in SCRIPTS) + "})();\n"
    if re.search(r"<(/?script|!--)", text, re.IGNORECASE):
        raise Invalid("the script has the end of a script in it")
    return text


def style():
    text = "\n" + read("flamegraph.css")
    if "</" in text:
        raise Invalid("the style has the end of an element in it")
    return text


def source_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def page():
    """What comes before the data, and what comes behind it."""
    parts = {"SCRIPT": script(), "STYLE": style(), "DATA": "\0"}
    parts["POLICY"] = (
        f"default-src 'none'; script-src {source_hash(parts['SCRIPT'])}; style-src {source_hash(parts['STYLE'])}; "
        "base-uri 'none'; form-action 'none'"
    )
    used = []

    def part(match):
        used.append(match[1])
        return parts[match[1]]

    text = PLACEHOLDER.sub(part, read("page.html"))
    if sorted(used) != sorted(parts):
        raise Invalid(f"page.html has {used}, not each of {sorted(parts)} once")
    return text.split("\0")


def c_character(byte):
    if byte in b'"\\?':
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def c_string(name, text):
    lines = (f'\t"{"".join(map(c_character, line.encode()))}\\n"' for line in text.split("\n"))
    literal = "\n".join(lines)
    return f"const char {name}[] =\n{literal.removesuffix(chr(92) + 'n' + chr(34))}\";\n"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: embed.py OUTPUT_FOLDER")
    try:
        head, tail = page()
    except Invalid as error:
        sys.exit(f"embed.py: {error}")
    output = pathlib.Path(sys.argv[1]) / "flamegraph_page.c"
    output.write_text(
        "/* Made by dumper/render/flamegraph/embed.py: do not edit. */\n"
        '#include "render/flamegraph_page.h"\n\n'
        + c_string("flamegraph_page_head", head)
        + "\n"
        + c_string("flamegraph_page_tail", tail),
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
