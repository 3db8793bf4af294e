"""Compares a layout file of rbdump with what gdb itself says about the ELF file.

    gdb -batch -nx -x check_layout.py -ex 'check-layout FILE' ELF

ELF is the file from which the layout was made, with its debug info. The exit status is 0 if every line agrees,
otherwise 1. The script takes all names from the layout; it does not know which names rbdump needs.
"""

import os
import re
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from ruby_types import find_address, find_constant, find_member, find_struct, has_function  # noqa: E402

FORMAT = "rbdump-layout 1"
# The kinds of lines in the header, sorted. Some cannot be checked: gdb's Python does not show the producer; `source` is
# only the name of a file; `asked` is about the generator; `digest` is over the lines of the layout itself; `levels`,
# `origin` and `configuration` are about Ruby's repository.
HEADER = (
    "arch", "asked", "build-id", "configuration", "description", "digest", "levels", "origin", "producer", "source",
    "version", "versions",
)  # fmt: skip
ARCHITECTURES = {"x86_64": "i386:x86-64", "aarch64": "aarch64"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z", re.ASCII)
NUMBER = re.compile(r"-?[0-9]{1,20}\Z", re.ASCII)
ADDRESS = re.compile(r"0x[0-9a-f]{1,16}\Z", re.ASCII)
MAX_FILE = 1 << 20
MAX_WINDOW = 1 << 16  # bytes of code; a whole function is smaller


class Difference(Exception):
    """The exception for a wrong line. The text of the exception is what gdb says about this line."""


def number(word):
    if not NUMBER.match(word):
        raise Difference(f"{word} is not a number")
    return int(word)


def address(word):
    if not ADDRESS.match(word):
        raise Difference(f"{word} is not an address")
    return int(word, 16)


def name(word):
    # Names become parts of expressions that gdb evaluates, so only a name is allowed.
    if not NAME.match(word):
        raise Difference(f"{word} is not a name")
    return word


def expect(what, given, computed):
    if given != computed:
        raise Difference(f"gdb says that the {what} is {computed}")


def struct(word):
    found = find_struct(name(word))
    if found is None:
        raise Difference("gdb knows no such struct")
    return found


def check_size(struct_name, size):
    expect("size", number(size), struct(struct_name).sizeof)


def check_member(path, offset, size, *bits):
    struct_name, _, inner = name(path).partition(".")
    found = find_member(struct(struct_name), inner)
    if found is None:
        raise Difference("gdb knows no such member")
    shift = width = 0
    if bits:
        keyword, shift, width = bits
        if keyword != "bits":
            raise Difference(f"the word before the shift should be `bits`, not {keyword}")
    given = (number(offset), number(size), number(str(shift)), number(str(width)))
    if given != tuple(found):
        in_bits = f", shift {found.shift}, width {found.width}" if found.width else ""
        raise Difference(f"gdb says offset {found.offset}, size {found.size}{in_bits}")


def check_constant(constant, value):
    found = find_constant(name(constant))
    if found is None:
        raise Difference("gdb knows no such constant")
    # DWARF does not always say whether an enumerator is signed, so only the bits of its type are compared.
    modulus = 1 << (8 * found.type.sizeof)
    if (number(value) - int(found)) % modulus:
        raise Difference(f"gdb says {int(found)}")


def check_macro(macro, value):
    """Checks the line of a macro. With gdb, this function can only check that no constant has the macro's name."""
    number(value)
    if find_constant(name(macro)) is not None:
        raise Difference("gdb knows a constant with this name")


def check_function(function):
    if not has_function(name(function)):
        raise Difference("gdb knows no such function")


def check_symbol(symbol, at):
    found = find_address(name(symbol))
    if found is None:
        raise Difference("gdb knows no such symbol")
    if found != address(at):
        raise Difference(f"gdb says {found:#x}")


def functions_at(pc):
    """The functions that contain PC, from the most deeply inlined function to the function that is not inlined."""
    block = gdb.block_for_pc(pc)
    found = []
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            found.append(block.function.name)
        block = block.superblock
    return found


def check_window(function, low, high, outermost):
    low, high = address(low), address(high)
    if not low < high <= low + MAX_WINDOW:
        raise Difference(f"the second address should be 1 to {MAX_WINDOW} bytes above the first address")
    for pc in range(low, high):
        chain = functions_at(pc)
        if name(function) not in chain:
            raise Difference(f"gdb says that {pc:#x} is not in {function}")
        if chain[-1] != outermost:
            raise Difference(f"gdb says that {pc:#x} is in {chain[-1]}")


CHECKS = {
    # the first word of a line: how many words can follow it, and the function that checks them
    "size": ((2,), check_size),
    "member": ((3, 6), check_member),
    "enumerator": ((2,), check_constant),
    "constant": ((2,), check_constant),
    "macro": ((2,), check_macro),
    "function": ((1,), check_function),
    "symbol": ((2,), check_symbol),
    "window": ((4,), check_window),
}


def check_fact(line):
    word, *rest = line.split(" ")
    if word not in CHECKS:
        raise Difference("gdb cannot check this kind of fact")
    counts, check = CHECKS[word]
    if len(rest) not in counts:
        raise Difference("the line has the wrong number of words")
    check(*rest)


def places_of(function):
    """Addresses in the code of FUNCTION that gdb knows. At these addresses, FUNCTION or an inlined copy of it begins,
    or a line of the function's source file begins."""
    try:
        begins = gdb.decode_line(function)[1] or ()
    except gdb.error:
        return set()
    tables = {begin.symtab.fullname(): begin.symtab for begin in begins if begin.symtab is not None}
    pcs = {begin.pc for begin in begins}
    for symtab in tables.values():
        pcs.update(entry.pc for entry in symtab.linetable())
    return {pc for pc in pcs if function in functions_at(pc)}


def check_windows_whole(lines):
    """Yields a difference for each address in a function's code that none of the function's windows contains. Looks at
    the addresses that gdb knows, and at the bytes next to each window."""
    windows = {}
    for line in lines:
        words = line.split(" ")
        if words[0] == "window" and len(words) == 5 and NAME.match(words[1]):
            try:
                windows.setdefault(words[1], []).append((address(words[2]), address(words[3])))
            except Difference:
                continue  # reported with the line itself
    for function, ranges in sorted(windows.items()):
        pcs = places_of(function)
        for low, high in ranges:
            pcs.update(pc for pc in (low - 1, high) if function in functions_at(pc))
        for pc in sorted(pcs):
            if not any(low <= pc < high for low, high in ranges):
                yield f"gdb says that {pc:#x} is in {function}, too, but no window contains this address"


def string(symbol):
    """The C string at SYMBOL in the ELF file, or None. The string is read from the symbol's address, because some
    declarations do not have the length of the string."""
    start = find_address(symbol)
    if start is None:
        return None
    try:
        return gdb.Value(start).cast(gdb.lookup_type("char").pointer()).string("utf-8", "backslashreplace")
    except gdb.error:
        return None


def check_header(line):
    """Checks a line of the header. Returns false if gdb cannot check this kind of line."""
    word, _, value = line.partition(" ")
    if word == "arch":
        expect("architecture", ARCHITECTURES.get(value), gdb.selected_inferior().architecture().name())
    elif word == "build-id":
        if value not in [objfile.build_id for objfile in gdb.objfiles()]:
            raise Difference("gdb has not opened a file with this build-id")
    elif word in ("description", "version"):
        expect(word, value, string("ruby_" + word))
    else:
        return False
    return True


def check_file(lines):
    """Returns the number of checked lines, and the differences. Each difference consists of a line and of what gdb says
    about this line."""
    checked, differences = 0, []
    if not lines or lines[0] != FORMAT:
        return checked, [(lines[0] if lines else "", f"not a layout file: the first line should be `{FORMAT}`")]
    facts = [line for line in lines[1:] if line.split(" ")[0] not in HEADER]
    if not facts or facts[-1] != f"end {len(facts) - 1}" or lines[-1] != facts[-1]:
        return checked, [(lines[-1], "the file is cut short: its last line should be `end` and the number of facts")]
    for line in lines[1:-1]:
        try:
            if line.split(" ")[0] in HEADER:
                checked += check_header(line)
                continue
            checked += 1
            check_fact(line)
        except Difference as difference:
            differences.append((line, str(difference)))
        except gdb.error as problem:
            differences.append((line, f"gdb fails: {problem}"))
    differences += [("window", text) for text in check_windows_whole(facts)]
    return checked, differences


class CheckLayout(gdb.Command):
    """Compare a layout file of rbdump with the debug info of the ELF file that is open: check-layout FILE

The command fails if a line differs, so that `gdb -batch -ex 'check-layout FILE' ELF` exits with status 1."""

    def __init__(self):
        super().__init__("check-layout", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        if gdb.selected_inferior().pid:
            raise gdb.GdbError(
                "check-layout: use gdb without a process, because a layout contains the addresses in the ELF file."
            )
        try:
            with open(os.path.expanduser(argument), "rb") as file:
                raw = file.read(MAX_FILE + 1)
        except OSError as problem:
            raise gdb.GdbError(f"check-layout: {argument}: {problem.strerror}") from None
        if len(raw) > MAX_FILE:
            raise gdb.GdbError(f"check-layout: {argument}: too long for a layout file")
        checked, differences = check_file(raw.decode("utf-8", "backslashreplace").splitlines())
        for line, difference in differences:
            gdb.write(f"{line}: {difference}\n")
        summary = f"{checked} lines checked, {len(differences)} differ"
        if differences:
            raise gdb.GdbError(summary)
        gdb.write(summary + "\n")


CheckLayout()
