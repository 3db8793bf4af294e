"""Rubies of which there are only sources, configured, to make layouts from."""

import dataclasses
import os
import pathlib

from harness.rubies import Ruby, cache_folder, find_rubies

TESTS = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Source:
    id: str
    path: pathlib.Path  # a tree, or an object that gen/layout_from_source.py has kept
    configured: pathlib.Path | None = None  # where it was configured, if not in the tree
    ruby: Ruby | None = None  # what was built of it

    def build(self):
        return self.configured or self.path


def of_the_list():
    """Debian's sources, which tests/rubies/build has unpacked, and configured."""
    rubies = {ruby.id: ruby for ruby in find_rubies()}
    for line in (TESTS / "rubies/list").read_text().splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        folder, configured = (cache_folder() / kind / words[0] for kind in ("src", "configured"))
        if (folder / ".unpacked").exists() and configured.exists():
            yield Source(words[0], folder, configured, rubies.get(words[0]))


def find_sources():
    """Those, and what is in the folder $RBDUMP_TEST_SOURCES: configured trees, and objects (NAME.o)."""
    found = list(of_the_list())
    more = os.environ.get("RBDUMP_TEST_SOURCES")
    for path in sorted(pathlib.Path(more).iterdir()) if more else []:
        if path.suffix == ".o" or (path / "vm_core.h").exists():
            found.append(Source(path.name.removesuffix(".o"), path))
    return found
