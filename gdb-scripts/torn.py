"""A command for gdb that shows where in the code the thread of a torn sample was stopped: rb-torn.

    gdb -batch -nx -x torn.py -ex 'rb-torn FILE [N]'

To load the command, `source` this file; `help rb-torn` describes the command. The sample is a line of a torn log that
rbdump has written. The command runs nothing and needs no process. It needs only the file that was running, and debug
info of this file.
"""

import itertools
import json
import os
import re
import struct

import gdb

AROUND = 16  # instructions shown before and after
MAX_LINE = 1 << 20  # characters in a line of the log; a usual line has 3,000
MAX_FUNCTION = 1 << 20  # bytes of code; Ruby's largest function has 60,000
MAX_FRAMES = 10  # Ruby frames shown
MAX_SECTIONS = 1000

SHT_PROGBITS = 1
SHF_EXECINSTR = 4

SECTION = re.compile(r"^\s*(0x[0-9a-f]+) - 0x[0-9a-f]+ is (\S+)(?: in (.*))?$", re.M)
SYMBOL = re.compile(r"^(.*?)(?: \+ (\d+))? in section ")
INSTRUCTION = re.compile(r"^(?:=> |   )(?=(0x[0-9a-f]+)[ :\t])")


def shown(value):
    """A value from the log, as text that is safe to print. The log can contain any characters."""
    if value is None:
        return "?"
    return "".join(c if c.isprintable() else f"\\x{ord(c):02X}" for c in str(value))


def quoted(path):
    return '"' + re.sub(r'(["\\])', r"\\\1", path) + '"'


# ---- the log


def read_sample(path, number):
    """Reads the sample with a given number from a log. The first sample has the number 1."""
    with open(path, encoding="utf-8", errors="backslashreplace") as log:
        for at in itertools.count(1):
            line = log.readline(MAX_LINE)
            if not line:
                raise gdb.GdbError(f"{path} has only {at - 1} samples.")
            if at == number:
                break
    try:
        sample = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise gdb.GdbError(f"{path}: line {number} is not JSON: {problem}") from None
    if not isinstance(sample, dict) or sample.get("schema_version") != 1:
        raise gdb.GdbError(f"{path}: line {number} is not a sample of a torn log (schema 1).")
    return sample


def member(record, name, kind):
    """The value of the member NAME of RECORD if this value has the type KIND, otherwise None."""
    value = record.get(name)
    return value if isinstance(value, kind) else None


def address_of(record, name):
    text = member(record, name, str)
    if not text or not re.fullmatch(r"0x[0-9a-f]{1,16}", text):
        raise gdb.GdbError(f"rb-torn: the sample has no valid {name}")
    return int(text, 16)


# ---- the file


def first_code(path):
    """The name of the first section that contains code, and the address of this section in the ELF file."""
    with open(path, "rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
            raise gdb.GdbError(f"{path} is not a 64-bit ELF file.")
        (start,) = struct.unpack_from("<Q", header, 0x28)
        size, count, names = struct.unpack_from("<HHH", header, 0x3A)
        if size != 64 or not names < count <= MAX_SECTIONS:
            raise gdb.GdbError(f"{path} has no section headers.")
        file.seek(start)
        table = file.read(size * count)
        if len(table) < size * count:
            raise gdb.GdbError(f"{path} is cut short.")
        sections = [struct.unpack_from("<IIQQQQ", table, index * size) for index in range(count)]
        file.seek(sections[names][4])
        strings = file.read(min(sections[names][5], 1 << 16))
        for name, kind, flags, address, _, _ in sections:
            if kind == SHT_PROGBITS and flags & SHF_EXECINSTR:
                return strings[name : strings.find(b"\0", name)].decode("ascii", "replace"), address
    raise gdb.GdbError(f"{path} has no code.")


def same_file(one, other):
    return bool(one and other) and os.path.realpath(one) == os.path.realpath(other)


def load(module):
    """Makes gdb read the file MODULE if gdb has not read this file yet. Returns gdb's objfile."""
    files = [file for file in gdb.objfiles() if file.owner is None and file.is_valid()]
    for file in files:
        if same_file(file.filename, module):
            return file
    if gdb.current_progspace().filename:
        raise gdb.GdbError(
            f"The thread was stopped in {shown(module)}, but gdb has loaded {gdb.current_progspace().filename}. Start "
            "gdb without a file."
        )
    if not os.path.isfile(module):
        raise gdb.GdbError(
            f"The thread was stopped in {shown(module)}, but this file does not exist. If this file is "
            "Ruby's executable or libruby, load a copy of it with `file PATH`."
        )
    gdb.execute(f"file {quoted(module)}", to_string=True)
    for file in gdb.objfiles():
        if same_file(file.filename, module):
            return file
    raise gdb.GdbError(f"gdb cannot read {shown(module)}.")


def file_for(ip, sample):
    """
    The file with the code in which the thread was stopped. If this file contains Ruby, and gdb has loaded a file with
    the sample's build-id, the result is the loaded file. Otherwise: the file at the path in `ip`.
    """
    module, build_id = member(ip, "module", str), member(sample, "build_id", str)
    if module is None:
        raise gdb.GdbError("The thread was stopped in code that is not from a file, for example in JIT code.")
    if not module.startswith("/"):
        raise gdb.GdbError(f"The thread was stopped in {shown(module)}, which is not a file.")
    is_ruby = module == sample.get("elf")
    file = None
    if is_ruby and build_id:
        file = next((file for file in gdb.objfiles() if file.owner is None and file.build_id == build_id), None)
    file = file or load(module)
    if is_ruby and build_id and file.build_id != build_id:
        gdb.write(
            f"rb-torn: {file.filename} is not the file that ran: the build-ids differ ({file.build_id or 'none'}, "
            f"{shown(build_id)}), so the following output may be wrong\n",
            gdb.STDERR,
        )
    return file


def slide(file):
    """The address of a piece of code in gdb, minus its address in FILE. The two addresses can differ if gdb has a
    process or a core."""
    wanted, address = first_code(file.filename)
    for start, name, where in SECTION.findall(gdb.execute("info files", to_string=True)):
        if name == wanted and same_file(where or gdb.current_progspace().filename, file.filename):
            return int(start, 16) - address
    raise gdb.GdbError(f"gdb does not show the load address of {file.filename}.")


# ---- what is shown


def show_head(sample, number):
    words = [sample.get("verdict"), sample.get("reason"), sample.get("oracle")]
    why = ", ".join(dict.fromkeys(shown(word) for word in words if word is not None))
    gdb.write(
        f"sample {number}: {why}; mode {shown(sample.get('mode'))}, process {shown(sample.get('pid'))}, thread "
        f"{shown(sample.get('tid'))}, {shown(sample.get('time'))}\n"
    )
    frames = [frame for frame in member(sample, "frames", list) or [] if isinstance(frame, dict)]
    for frame in frames[:MAX_FRAMES]:
        where = f"{shown(frame.get('path'))}:{shown(frame.get('line'))}"
        gdb.write(f"    {where}:in '{shown(frame.get('label'))}'\n")
    if len(frames) > MAX_FRAMES:
        gdb.write(f"    ({len(frames) - MAX_FRAMES} more frames)\n")


def show_place(ip):
    """Prints what the log says about the place at which the thread was stopped."""
    place = f"{shown(ip['module_address'])} of {shown(ip['module'])}"
    if ip.get("function") is not None:
        place = f"{shown(ip['function'])}+{shown(ip.get('offset'))} ({place})"
    window = f", in the torn window {shown(ip['window'])}" if ip.get("window") else ""
    gdb.write(f"\n{place}{window}\n")
    chain = [inlined for inlined in member(ip, "inlined", list) or [] if isinstance(inlined, dict)]
    for index, inlined in enumerate(chain):
        verb = "at" if index == 0 else "calls it at"
        gdb.write(
            f"    {shown(inlined.get('function'))} {verb} {shown(inlined.get('file'))}:{shown(inlined.get('line'))}\n"
        )


def symbol_at(address):
    """What gdb says of the symbol at ADDRESS, with the name that the file has: demangled, x.constprop.0 is x.constprop."""
    before = gdb.parameter("print demangle")
    gdb.execute("set print demangle off")
    try:
        return SYMBOL.match(gdb.execute(f"info symbol {address:#x}", to_string=True))
    finally:
        gdb.execute(f"set print demangle {'on' if before else 'off'}")


def check_place(ip, address):
    """Warns if gdb finds another function or another offset at ADDRESS than the log says. Returns the offset of ADDRESS
    in the function that gdb finds, or None."""
    match = symbol_at(address)
    found = (match[1], int(match[2] or 0)) if match else (None, None)
    if found != (ip.get("function"), ip.get("offset")):
        said = f"{found[0]}+{found[1]}" if match else "no function"
        gdb.write(
            f"rb-torn: gdb finds {said} at this address, so gdb and rbdump have used different files or different debug"
            " info\n",
            gdb.STDERR,
        )
    return found[1]


def show_source(address):
    symtab_and_line = gdb.find_pc_line(address)
    symtab = symtab_and_line.symtab
    gdb.write("\n")
    if symtab is None:
        gdb.write("The source line is not known: there is no debug info for this code.\n")
    elif os.path.isfile(symtab.fullname()):
        gdb.write(gdb.execute(f"list *{address:#x}", to_string=True))
    else:
        gdb.write(f"The source file does not exist: {shown(symtab.fullname())}:{symtab_and_line.line}\n")


def show_code(address, offset):
    """Prints the instructions around ADDRESS, with an arrow at ADDRESS."""
    architecture = gdb.selected_inferior().architecture()
    low = address
    if offset and offset <= MAX_FUNCTION:
        before = architecture.disassemble(address - offset, address - 1)
        low = before[-AROUND:][0]["addr"]
    last = architecture.disassemble(address, count=AROUND + 1)[-1]
    text = gdb.execute(f"disassemble /s {low:#x},{last['addr'] + last['length']:#x}", to_string=True)
    gdb.write("\n")
    for line in text.splitlines():
        match = INSTRUCTION.match(line)
        if match:
            line = ("=> " if int(match[1], 16) == address else "   ") + line[3:]
        gdb.write(line + "\n")


class Torn(gdb.Command):
    """Show where in the code the thread of a torn sample was stopped: rb-torn FILE [N]

FILE  a torn log (rbdump experiment --torn-log)
N     the number of the line in this log (default: 1)

Shows why the sample is in the log, the function and the offset, the functions that are inlined there, the source, and
the instructions around the address. If gdb has no file yet, rb-torn loads the file that was running. Afterwards,
$rb_torn is the address at which the thread was stopped."""

    name = "rb-torn"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not 1 <= len(words) <= 2 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words[1:]):
            raise gdb.GdbError("Usage: rb-torn FILE [N]")
        try:
            self.show(os.path.expanduser(words[0]), max(1, int(words[1])) if len(words) > 1 else 1)
        except (gdb.error, OSError) as problem:
            raise gdb.GdbError(f"{self.name}: {problem}") from None

    def show(self, path, number):
        sample = read_sample(path, number)
        show_head(sample, number)
        ip = member(sample, "ip", dict)
        if ip is None:
            raise gdb.GdbError(
                "The sample has no registers: it is from an unpaused mode, the thread did not stop in time, or the "
                "sample was lost."
            )
        file = file_for(ip, sample)
        address = address_of(ip, "module_address") + slide(file)
        if address >= 1 << 64:
            raise gdb.GdbError("rb-torn: the sample has no valid module_address")
        show_place(ip)
        gdb.set_convenience_variable("rb_torn", address)
        offset = check_place(ip, address)
        show_source(address)
        show_code(address, offset)


Torn()
