"""Looks up Ruby's types in gdb's debug info: structs, members, enumerators, addresses.

Everything is looked up by Ruby's own names, when it is needed. If this Ruby lacks the wanted thing, the result is None,
not 0: callers check whether a member exists, and so choose between algorithms.
"""

from typing import NamedTuple, Optional

import gdb


class Member(NamedTuple):
    """The position of a member in its struct. For a bitfield, the shift is the number of its lowest bit in its first
    byte."""

    offset: int  # bytes from the start of the struct
    size: int  # bytes; 0 for a flexible array
    shift: int  # bits
    width: int  # bits; 0 if the member is not a bitfield


# With an index, gdb can miss a struct that it has first met as a declaration. A function of the file that defines the
# struct makes gdb read this file.
_FUNCTION_BESIDE = {"st_table_entry": "rb_st_foreach"}

_RECORDS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)


def find_struct(name: str) -> Optional[gdb.Type]:
    """The struct or union with the tag NAME. If no type has this tag, the struct or union with the typedef NAME."""
    found = _lookup_struct(name)
    if found is None and name in _FUNCTION_BESIDE and gdb.lookup_global_symbol(_FUNCTION_BESIDE[name]) is not None:
        found = _lookup_struct(name)
    return found


def _lookup_struct(name):
    for kind in ("struct ", "union ", ""):
        try:
            found = gdb.lookup_type(kind + name).strip_typedefs()
        except gdb.error:
            continue
        if found.code in _RECORDS and found.sizeof > 0:
            return found
    # In a Ruby with YJIT, opaque types of Rust have the same names, and the size 0. gdb may have found one of them.
    for symbol in gdb.lookup_static_symbols(name, gdb.SYMBOL_STRUCT_DOMAIN):
        found = symbol.type.strip_typedefs() if symbol.type else None
        if found is not None and found.code in _RECORDS and found.sizeof > 0:
            return found
    return None


def _find_field(record: gdb.Type, name: str):
    """A pair: the field NAME, and its offset in bits from the start of RECORD. The field belongs to RECORD itself, or
    to an anonymous member of RECORD."""
    for field in record.fields():
        if not hasattr(field, "bitpos"):
            continue
        if field.name == name:
            return field, field.bitpos
        inner = field.type.strip_typedefs()
        if not field.name and inner.code in _RECORDS:
            found = _find_field(inner, name)
            if found:
                return found[0], field.bitpos + found[1]
    return None


def find_member(record: gdb.Type, path: str) -> Optional[Member]:
    """The position of a member in RECORD. PATH is written as in C, but without the variable: `as.heap.len`."""
    bits = 0
    field = None
    for name in path.split("."):
        if field is not None:
            record = field.type.strip_typedefs()
        if record.code not in _RECORDS:
            return None
        found = _find_field(record, name)
        if not found:
            return None
        field = found[0]
        bits += found[1]
    if field.bitsize:
        shift = bits % 8
        return Member(bits // 8, (shift + field.bitsize + 7) // 8, shift, field.bitsize)
    return Member(bits // 8, field.type.strip_typedefs().sizeof, 0, 0)


def find_constant(name: str) -> Optional[gdb.Value]:
    """The value of an enumerator, or of a `static const` variable that is not in memory."""
    symbol = gdb.lookup_static_symbol(name) or gdb.lookup_global_symbol(name)
    if symbol is None or not (symbol.is_constant or symbol.is_variable):
        return None
    try:
        return symbol.value()
    except (gdb.error, TypeError):
        return None


def find_address(name: str) -> Optional[int]:
    """The address of the global variable NAME: in memory if gdb has a process or a core, otherwise in the ELF file."""
    try:
        return int(gdb.parse_and_eval("&" + name))
    except gdb.error:
        return None


def has_function(name: str) -> bool:
    """Whether the C function NAME has code: either separate code, or code that is inlined in other functions."""
    try:
        return bool(gdb.decode_line(name)[1])
    except gdb.error:
        return False


class Types:
    """The functions above, with a cache. The cache is valid as long as gdb's symbol files stay the same."""

    def __init__(self):
        self._structs = {}
        self._members = {}
        self._constants = {}
        self._addresses = {}
        self._functions = {}

    @staticmethod
    def _once(cache, key, find):
        if key not in cache:
            cache[key] = find()
        return cache[key]

    @property
    def words(self):
        """Says, for messages, where the values come from."""
        return "this Ruby's debug info"

    def struct(self, name):
        """The struct named NAME. If NAME contains several names, separated by "|": the first struct that exists."""

        def find():
            return next((found for found in map(find_struct, name.split("|")) if found is not None), None)

        return self._once(self._structs, name, find)

    def size(self, name):
        record = self.struct(name)
        return record.sizeof if record is not None else None

    def member(self, struct, *paths) -> Optional[Member]:
        """The member at the first of PATHS that exists in STRUCT. PATHS: the paths of the member in different releases of
        Ruby."""

        def find():
            record = self.struct(struct)
            if record is None:
                return None
            return next((m for m in (find_member(record, path) for path in paths) if m), None)

        return self._once(self._members, (struct, paths), find)

    def constant(self, name) -> Optional[int]:
        def find():
            value = find_constant(name)
            return int(value) if value is not None else None

        return self._once(self._constants, name, find)

    def address(self, name) -> Optional[int]:
        return self._once(self._addresses, name, lambda: find_address(name))

    def function(self, name) -> bool:
        return self._once(self._functions, name, lambda: has_function(name))
