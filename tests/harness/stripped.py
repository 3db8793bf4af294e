"""Copies of Rubies without any symbol table and debug info."""

import contextlib
import dataclasses
import re
import subprocess

from harness.core import Moved
from harness.rubies import Ruby, probe


@dataclasses.dataclass(frozen=True)
class Stripped:
    """A copy of a Ruby with nothing in it that is not needed to run."""

    ruby: Ruby
    moved: Moved
    original: str  # the file that was stripped, and holds the virtual machine

    @property
    def environment(self):
        return self.moved.environment


def strip(moved):
    files = [moved.path, *(path for path in (moved.folder / "lib").iterdir() if not path.is_symlink())]
    subprocess.run(["strip", "--strip-all", "--remove-section=.gnu_debuglink", *files], check=True, timeout=60)
    for file in files:
        sections = subprocess.run(["readelf", "-SW", file], capture_output=True, text=True, check=True, timeout=60).stdout
        assert not re.search(r"\.(symtab|debug_\w+|gnu_debuglink)\b", sections)


@contextlib.contextmanager
def stripped_copy(ruby, folder):
    """A copy of the Ruby at ruby.path, in a folder; deleted afterwards."""
    moved = Moved(ruby, folder)
    try:
        strip(moved)
        yield Stripped(dataclasses.replace(ruby, path=moved.path), moved, probe(ruby.id, ruby.path).elf)
    finally:
        moved.delete()
