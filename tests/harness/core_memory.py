"""The memory in a core file, by address: read and changed."""

import contextlib
import struct

from harness.core import patch


class CoreMemory:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as core:
            header = core.read(64)
            at, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
            core.seek(at)
            headers = core.read(size * count)
        loads = [struct.unpack_from("<IIQQQQ", headers, i * size) for i in range(count)]
        self.runs = [(address, length, offset) for kind, _, offset, address, _, length in loads if kind == 1]  # PT_LOAD

    def offset(self, address):
        """Where the byte of an address is in the file; None if it is not there."""
        return next((offset + address - start for start, length, offset in self.runs if start <= address < start + length), None)

    def words(self, address, count):
        with open(self.path, "rb") as core:
            core.seek(self.offset(address))
            return struct.unpack(f"<{count}Q", core.read(8 * count))

    @contextlib.contextmanager
    def changed(self, changes):
        """With other words: {address: word}. Those that are not in the file stay as they are."""
        before = []
        try:
            for address, word in changes.items():
                offset = self.offset(address)
                if offset is not None:
                    before.append((offset, patch(self.path, offset, struct.pack("<Q", word & (1 << 64) - 1))))
            yield
        finally:
            for offset, content in reversed(before):
                patch(self.path, offset, content)
