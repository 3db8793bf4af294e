"""Rubies of which there are only sources, configured, to make layouts from."""

import dataclasses
import os
import pathlib
import shutil
import subprocess

from harness.rubies import cache_folder

TESTS = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Source:
    id: str
    path: pathlib.Path  # a tree, or an object that gen/layout_from_source.py has kept
    configured: pathlib.Path | None = None  # where it is to be configured, if not in the tree
    flags: tuple = ()  # with which

    def build(self):
        """The folder where it is configured, which is done now if it is not."""
        if not self.configured:
            return self.path
        folder = self.configured
        if not (folder / "Makefile").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            with open(folder / "log", "wb") as log:
                subprocess.run(
                    [self.path / "configure", *self.flags],
                    cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=900, check=True,
                )  # fmt: skip
        return folder


def of_the_list():
    """Debian's sources, which tests/rubies/build has unpacked."""
    for line in (TESTS / "rubies/list").read_text().splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        folder = cache_folder() / "src" / words[0]
        if (folder / ".unpacked").exists():
            flags = ["--disable-install-doc", *(["--enable-yjit"] if "yjit" in words[4:] else [])]
            yield Source(words[0], folder, cache_folder() / "configured" / words[0], tuple(flags))


def find_sources():
    """Those, and what is in the folder $RBDUMP_TEST_SOURCES: configured trees, and objects (NAME.o)."""
    found = list(of_the_list())
    more = os.environ.get("RBDUMP_TEST_SOURCES")
    for path in sorted(pathlib.Path(more).iterdir()) if more else []:
        if path.suffix == ".o" or (path / "vm_core.h").exists():
            found.append(Source(path.name.removesuffix(".o"), path))
    return found
