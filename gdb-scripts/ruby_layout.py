"""Takes the positions of members from a layout file of rbdump, for a Ruby without debug info.

doc/layout-format.md describes the files. LayoutTypes answers the same questions as ruby_types.Types. Types and members
of a layout are named as in Ruby's sources, but a layout has only those that rbdump reads (gen/fields.def).
"""

import os
import re
import stat

import gdb

from ruby_types import Member, find_address

FORMAT = "rbdump-layout 1"
SUFFIX = ".layout"
ARCHITECTURE = "x86_64"
MAX_FILE = 1 << 20
MAX_FILES = 1000  # in a folder
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z", re.ASCII)
NUMBER = re.compile(r"-?[0-9]{1,20}\Z", re.ASCII)
MAX_MEMBER = 1 << 20  # bytes; no struct that rbdump reads is larger
# The kinds of facts that are read, and how many numbers each has.
NUMBERS_OF = {"size": (1,), "member": (2, 4), "enumerator": (1,), "constant": (1,), "macro": (1,), "function": (0,)}


class Refused(Exception):
    """The exception for a layout file that cannot be used. The text of the exception says why."""


class LayoutTypes:
    """The facts of a layout file. This class has all functions of ruby_types.Types. Their descriptions are there."""

    def __init__(self, path):
        self.path = path
        self.header = {}
        self._sizes = {}
        self._members = {}
        self._constants = {}
        self._functions = set()
        self.finders = {}  # functions that find a variable for which gdb has no symbol; see ruby_roots.py
        self._addresses = {}
        lines = _read_lines(path)
        if not lines or lines[0] != FORMAT:
            raise Refused(f"its first line is not `{FORMAT}`")
        facts = 0
        for line in lines[1:-1]:
            word, _, rest = line.partition(" ")
            if word in NUMBERS_OF or word in ("symbol", "window"):
                facts += 1
                self._add_fact(word, rest.split(" "))
            elif not facts:
                self.header[word] = rest
            else:
                facts += 1  # a kind of fact of a newer rbdump
        if lines[-1] != f"end {facts}":
            raise Refused("it is cut short")
        if self.header.get("arch") != ARCHITECTURE:
            raise Refused(f"it is not for {ARCHITECTURE}")

    def _add_fact(self, word, words):
        if word in ("symbol", "window"):
            return  # they are addresses in one ELF file; gdb itself has them, or ruby_roots.py finds them
        name, *rest = words
        if word == "member" and len(rest) == 5 and rest[2] == "bits":
            del rest[2]
        if not NAME.match(name) or len(rest) not in NUMBERS_OF[word] or not all(NUMBER.match(number) for number in rest):
            raise Refused(f"the fact `{word} {name[:80]}` is not valid")
        numbers = [int(number) for number in rest]
        if word == "size":
            self._sizes[name] = numbers[0]
        elif word == "member":
            self._members[name] = _member(name, numbers)
        elif word == "function":
            self._functions.add(name)
        else:
            self._constants[name] = numbers[0]

    @property
    def words(self):
        """Says, for messages, where the values come from."""
        return f"the layout {os.path.basename(self.path)}"

    def struct(self, name):
        """Always returns None, because a layout does not contain types of gdb."""

    def size(self, struct):
        return next((self._sizes[name] for name in struct.split("|") if name in self._sizes), None)

    def member(self, struct, *paths):
        names = (f"{name}.{path}" for path in paths for name in struct.split("|"))
        return next((self._members[name] for name in names if name in self._members), None)

    def constant(self, name):
        return self._constants.get(name)

    def forget_addresses(self):
        """Call this function before the layout is used for another process or core."""
        self._addresses.clear()

    def address(self, name):
        """Like Types.address(). If gdb has no symbol for the variable, but `finders` has a function for it, calls this
        function. The function searches for the variable, and raises Unreadable if the search fails."""
        if name not in self._addresses:
            found = find_address(name)
            if found is None and name in self.finders:
                found = self.finders[name]()
            self._addresses[name] = found
        return self._addresses[name]

    def function(self, name):
        return name in self._functions


def _read_lines(path):
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(MAX_FILE + 1) if stat.S_ISREG(mode) else b""
    except OSError as problem:
        raise Refused(problem.strerror) from None
    if len(raw) > MAX_FILE:
        raise Refused("it is too long for a layout file")
    return raw.decode("utf-8", "backslashreplace").splitlines()


def _member(name, numbers):
    offset, size, shift, width = (*numbers, 0, 0)[:4]
    if not (0 <= offset < MAX_MEMBER and 0 <= size < MAX_MEMBER and 0 <= shift < 8 and 0 <= width <= 64):
        raise Refused(f"the position of {name[:80]} is not valid")
    return Member(offset, size, shift, width)


# ---- which layout fits a Ruby


def _is_safe(path):
    """Whether only the user and root can change a file or folder."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022


def folders():
    """The folders in which the commands look for layouts (dumper/store/folders.h), without folders that other users can
    change."""
    given = [folder for folder in os.environ.get("RBDUMP_OFFSETS_D", "").split(":") if folder]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "offsets.d")
    return [folder for folder in (*given, os.path.join(cache, "rbdump", "offsets.d"), own) if _is_safe(folder)]


def _files(folder):
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))[:MAX_FILES]
    except OSError:
        return []
    return [path for path in (os.path.join(folder, name) for name in names) if _is_safe(path)]


def _numbers(version):
    return [int(number) for number in re.findall(r"[0-9]{1,9}", version)]


def _rank(header, version, build_id):
    """A number: the smaller it is, the better the layout fits. None if the layout is for another Ruby (dumper/store/find.h)."""
    if "build-id" in header:
        return 0 if build_id and header["build-id"] == build_id else None
    if not version:
        return None
    other = 1 if "configuration" in header else 0
    if header.get("version") == version:
        return 2 + other
    first, _, last = header.get("versions", "").partition(" ")
    if first and last and _numbers(first) <= _numbers(version) <= _numbers(last):
        return 4 + other
    return None


def _header(path):
    """The header of a layout file (the lines before the first fact): a dict from the first word of a line to the rest of
    the line."""
    header = {}
    for line in _read_lines(path)[1:]:
        word, _, rest = line.partition(" ")
        if word in NUMBERS_OF or word in ("symbol", "window"):
            break
        header[word] = rest
    return header


def candidates(version, build_id):
    """The paths of the layouts that fit a Ruby. The layout that fits best comes first."""
    found = []
    for place, folder in enumerate(folders()):
        for path in _files(folder):
            try:
                rank = _rank(_header(path), version, build_id)
            except Refused:
                continue
            if rank is not None:
                found.append((rank, place, path))
    return [path for _, _, path in sorted(found)]


# ---- the file that contains Ruby

SECTION = re.compile(r"^\s*(0x[0-9a-f]+) - (0x[0-9a-f]+) is (\S+)(?: in (.+))?$", re.M)
MAX_STRING = 64


class Module:
    """The file that contains Ruby, as gdb has loaded it. `version` is None if the version of this Ruby is not known."""

    def __init__(self):
        sections = [
            (int(low, 16), int(high, 16), name, file or gdb.current_progspace().filename)
            for low, high, name, file in SECTION.findall(gdb.execute("info files", to_string=True))
        ]
        self.version = None
        at = find_address("ruby_version")
        self.file = next((file for low, high, _, file in sections if at is not None and low <= at < high), None)
        if self.file is not None:
            self.version = _version_at(at)
        self.data = [(low, high) for low, high, name, file in sections if file == self.file and name in (".data", ".bss")]

    @property
    def build_id(self):
        names = [(file, file.filename) for file in gdb.objfiles() if file.is_valid() and file.owner is None]
        same = [file for file, name in names if self.file and os.path.realpath(name) == os.path.realpath(self.file)]
        return same[0].build_id if same else None


def _version_at(address):
    try:
        raw = bytes(gdb.selected_inferior().read_memory(address, MAX_STRING)).partition(b"\0")[0]
    except (gdb.error, gdb.MemoryError):
        return None
    return raw.decode("ascii") if re.fullmatch(rb"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}", raw) else None
