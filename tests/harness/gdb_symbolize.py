"""Inside gdb: what gdb says of addresses. `gdb … -ex 'python FILE = "…"' -x gdb_symbolize.py`.

FILE has one address a line, in hexadecimal; for each, a line of JSON is printed.
"""

import json
import re

import gdb

SYMBOL = re.compile(r"^(?P<name>.*?)(?: \+ (?P<offset>\d+))? in section (?P<section>\S+)(?: of (?P<file>.*))?$")
LINE = re.compile(r'^Line (\d+) of "(.*)" (?:starts|is) at address')


def symbol(address):
    """Of `info symbol`: name and offset, or None."""
    said = gdb.execute(f"info symbol {address:#x}", to_string=True).strip()
    match = SYMBOL.match(said)
    return (match["name"], int(match["offset"] or 0), match["section"]) if match else None


def line(address):
    """Of `info line`: file as the compiler was given it, and line, or None."""
    match = LINE.match(gdb.execute(f"info line *{address:#x}", to_string=True))
    return (match[2], int(match[1])) if match else None


def full_name(address):
    symtab = gdb.find_pc_line(address).symtab
    return symtab.fullname() if symtab else None


def functions(address):
    """The functions inlined at an address, innermost first, and the one that they were inlined into."""
    chain, block = [], gdb.block_for_pc(address)
    while block and not block.is_global and not block.is_static:
        if block.function:
            chain.append(block.function.linkage_name)
        block = block.superblock
    return chain


gdb.execute("set width 0")
gdb.execute("set print demangle off")
with open(FILE, encoding="ascii") as addresses:  # noqa: F821
    for word in addresses:
        at = int(word, 16)
        print(
            json.dumps(
                {
                    "address": at,
                    "symbol": symbol(at),
                    "line": line(at),
                    "full_name": full_name(at),
                    "functions": functions(at),
                }
            )
        )
