"""
Rubies in roots of their own: each folder in $RBDUMP_TEST_ROOTS that has /usr/bin/ruby (tests/roots/build makes some).

A root is used in a mount namespace that a process of ours keeps: there it has /proc, /tmp and the targets under the
same paths as here, and outside of it nothing is mounted. Rubies, and rbdumps, are scripts that enter.
"""

import atexit
import dataclasses
import os
import pathlib
import subprocess
import tempfile

from harness.rubies import Ruby, probe
from harness.target import TARGETS

# Keeps a root's mount namespace until its standard input ends.
KEEP = """
root=$1 targets=$2
mkdir -p "$root$targets"
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind /tmp "$root/tmp"
mount --bind "$targets" "$root$targets"
echo ready
exec cat
"""
# What enters it, and runs the rest of its command line there. As a container has it, the old root is gone, and so are
# the processes outside: it is process 1.
ENTER = 'exec nsenter --mount=/proc/{keeper}/ns/mnt'
# The folder that it was in may not be there.
RUN = """cd "$0" 2>/dev/null || cd /
	exec {program} "$@"' "$PWD" "$@"
"""
CHROOT = "{enter} chroot {root} sh -uc '" + RUN
CONTAINER = """{enter} unshare --mount --pid --fork --kill-child sh -euc '
	cd {root}
	pivot_root . mnt
	umount -l /mnt
	mount -t proc proc /proc
	""" + RUN


@dataclasses.dataclass(frozen=True)
class Root:
    """A folder that is a root, and what keeps its mounts."""

    folder: pathlib.Path
    keeper: int
    scripts: pathlib.Path

    def script(self, name, text, program):
        """A script that runs a program of that path, and its arguments, in this root."""
        path = self.scripts / f"{self.folder.name}-{name}"
        enter = ENTER.format(keeper=self.keeper)
        path.write_text("#!/bin/sh\n" + text.format(enter=enter, root=self.folder, program=program) + "\n")
        path.chmod(0o755)
        return str(path)

    def ruby(self, place, text):
        script = self.script(f"{place}-ruby", text, "/usr/bin/ruby")
        found = probe(f"{self.folder.name}-{place}", script)
        return RubyInRoot(found.id, script, found.version, str(self.folder / found.elf[1:]), root=self, place=place)

    def rbdump(self, place, ours):
        """The rbdump for Rubies of a place: ours, looking in from outside, or the root's own."""
        if place == "container":
            return ours  # it has mounts of its own: nothing needs to be entered to be outside of it
        if place == "chroot":
            return self.script("outer-rbdump", '{enter} --wd="$PWD" {program} "$@"', ours)
        return self.script("inner-rbdump", CHROOT, "/rbdump/build/rbdump")


@dataclasses.dataclass(frozen=True)
class RubyInRoot(Ruby):
    root: Root = None
    place: str = ""  # "chroot" and "container", looked at from outside; "within", by the rbdump that was built there


# Where a Ruby and rbdump are, and how the former gets there.
PLACES = {"chroot": CHROOT, "container": CONTAINER, "within": CHROOT}


def kept_roots():
    """The roots that there are, ready to be entered for as long as this process runs."""
    folders = sorted(pathlib.Path(os.environ["RBDUMP_TEST_ROOTS"]).resolve().iterdir())
    scripts = tempfile.TemporaryDirectory(prefix="rbdump-roots-")
    atexit.register(scripts.cleanup)
    for folder in folders:
        if not os.path.lexists(folder / "usr/bin/ruby"):
            continue
        keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-euc", KEEP, "sh", folder, TARGETS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        atexit.register(keeper.communicate)
        assert keeper.stdout.readline() == b"ready\n"
        yield Root(folder, keeper.pid, pathlib.Path(scripts.name))


def find_rubies_in_roots():
    """Each root's Ruby, in each place that there is for it."""
    return [root.ruby(place, text) for root in kept_roots() for place, text in PLACES.items()]
