"""Reads members of structs by name, from gdb's process or core. The positions of the members come from gdb's types
(ruby_types.py) or from a layout file (ruby_layout.py).

Calls no functions of the process, and changes no memory.
"""

import gdb

from ruby_types import Types

MAX_READ = 1 << 20  # the most bytes of one read; no string or table that the scripts read is longer


class Unreadable(Exception):
    """The exception for memory that cannot be read, or that has wrong content. The text of the exception says what is wrong."""


class Memory:
    """Reads memory. If a read fails, raises Unreadable with the address in the text."""

    def __init__(self, types: Types):
        self.types = types
        self._inferior = gdb.selected_inferior()

    def read(self, address, size) -> bytes:
        if not 0 <= size <= MAX_READ:
            raise Unreadable(f"a length of {size} bytes at {address:#x} is not credible")
        try:
            return bytes(self._inferior.read_memory(address, size))
        except (gdb.error, OverflowError, ValueError):
            raise Unreadable(f"cannot read memory at {address:#x}") from None

    def word(self, address) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def member(self, struct, *paths):
        """Like Types.member(), but raises Unreadable if there is no such member."""
        found = self.types.member(struct, *paths)
        if found is None:
            raise Unreadable(f"{self.types.words} has no {struct}.{paths[0]}")
        return found

    def size(self, struct) -> int:
        """Like Types.size(), but raises Unreadable if there is no such struct."""
        found = self.types.size(struct)
        if found is None:
            raise Unreadable(f"{self.types.words} has no {struct}")
        return found

    def has(self, struct, *paths) -> bool:
        return self.types.member(struct, *paths) is not None

    def get(self, address, struct, *paths) -> int:
        """The unsigned value of a member of the STRUCT at ADDRESS."""
        return self.extract(self.member(struct, *paths), lambda offset, size: self.read(address + offset, size))

    def get_signed(self, address, struct, *paths) -> int:
        value, bits = self.get(address, struct, *paths), 8 * self.member(struct, *paths).size
        return value - (1 << bits) if value >> (bits - 1) else value

    @staticmethod
    def extract(member, read) -> int:
        value = int.from_bytes(read(member.offset, member.size), "little")
        return (value >> member.shift) & ((1 << member.width) - 1) if member.width else value

    def constant(self, name) -> int:
        found = self.types.constant(name)
        if found is None:
            raise Unreadable(f"{self.types.words} has no {name}")
        return found

    def address(self, symbol) -> int:
        """Like Types.address(), but raises Unreadable if there is no such variable."""
        found = self.types.address(symbol)
        if found is None:
            raise Unreadable(f"gdb did not find the symbol {symbol}; perhaps gdb has not loaded this Ruby's debug info")
        return found

    def pointer(self, symbol) -> int:
        """The pointer in the global variable SYMBOL."""
        return self.word(self.address(symbol))
