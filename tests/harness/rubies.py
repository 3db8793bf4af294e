"""Which Rubies there are to test against."""

import dataclasses
import functools
import os
import pathlib
import subprocess

# Says what a Ruby is, and which file of it holds the virtual machine: libruby if it is loaded, else itself.
PROBE = """
maps = File.read("/proc/self/maps").lines.map { |line| line.split(" ", 6)[5].to_s.chomp }.uniq
exe = File.readlink("/proc/self/exe")
puts RUBY_VERSION, maps.find { |path| File.basename(path).start_with?("libruby") } || exe
"""

# Flags that turn a JIT on, and those that make it compile what runs for the first or second time. MJIT has gcc do it,
# which takes long; its flags have had other names until 3.0, and 3.1.
JITS = (
    ("yjit", ("--yjit", "--yjit-call-threshold=1")),
    ("zjit", ("--zjit", "--zjit-call-threshold=2", "--zjit-num-profiles=1")),
    ("rjit", ("--rjit", "--rjit-call-threshold=1")),
    ("mjit", ("--mjit", "--mjit-wait", "--mjit-call-threshold=20")),
    ("mjit", ("--mjit", "--mjit-wait", "--mjit-min-calls=20")),
    ("mjit", ("--jit", "--jit-wait", "--jit-min-calls=20")),
)
JIT_NAMES = ("yjit", "zjit", "rjit", "mjit")


@dataclasses.dataclass(frozen=True)
class Ruby:
    id: str  # for test ids: the series, "debian", or the name of a folder in $RBDUMP_TEST_RUBIES
    path: str  # of the executable
    version: str  # what it says itself: "3.4.5"
    elf: str  # of the file that holds the virtual machine: the executable or libruby
    shared: str | None = None  # of a second build of the same source, with libruby

    @property
    def series(self):
        return tuple(int(part) for part in self.version.split(".")[:2])

    @functools.cached_property
    def has_debug(self):
        """Whether the file that holds the virtual machine has debug info in it."""
        sections = subprocess.run(["readelf", "-SW", self.elf], capture_output=True, text=True, check=True, timeout=60)
        return " .debug_info" in sections.stdout

    @functools.cached_property
    def jits(self):
        """The JITs that it has and can use here: their flags by their names."""
        return {name: flags for name, flags in JITS if self._can_use(name, flags)}

    @property
    def has_yjit(self):
        return "yjit" in self.jits

    def _can_use(self, name, flags):
        code = f"exit(defined?(RubyVM::{name.upper()}) && RubyVM::{name.upper()}.enabled? || false)"
        done = subprocess.run(
            [self.path, "--disable-gems", *flags, "-e", code], capture_output=True, timeout=60, check=False
        )
        return done.returncode == 0 and not done.stderr


def probe(ruby_id, path, shared=None):
    """The Ruby at `path`, or None if nothing that runs is there."""
    if not os.access(path, os.X_OK):
        return None
    answer = subprocess.run(
        [path, "--disable-gems", "-e", PROBE], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    return Ruby(ruby_id, str(path), answer[0], answer[1], shared)


def cache_folder():
    """Where tests/rubies/build keeps what it has built."""
    if "RBDUMP_RUBIES_CACHE" in os.environ:
        return pathlib.Path(os.environ["RBDUMP_RUBIES_CACHE"])
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "rbdump" / "rubies"


@functools.cache
def find_rubies():
    """All of them, the built ones first, each once."""
    found = []
    for folder in sorted(cache_folder().glob("[0-9]*")):
        if folder.name.endswith("-shared") or not (folder / ".done").exists():
            continue
        shared = folder.with_name(folder.name + "-shared")
        has_shared = (shared / ".done").exists()
        found.append(probe(folder.name, folder / "bin/ruby", str(shared / "bin/ruby") if has_shared else None))
    found.append(probe("debian", pathlib.Path("/usr/bin/ruby")))
    more = os.environ.get("RBDUMP_TEST_RUBIES")
    if more:
        for folder in sorted(pathlib.Path(more).iterdir()):
            found.append(probe(folder.name, folder / "bin/ruby"))
    return [ruby for ruby in found if ruby]
