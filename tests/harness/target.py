"""Ruby processes that are dumped: programs of tests/targets/."""

import contextlib
import json
import os
import pathlib
import selectors
import shutil
import subprocess
import tempfile

from harness.process import Bound, family, ids_inside, innermost, wait_until_one_reads

TARGETS = pathlib.Path(__file__).resolve().parent.parent / "targets"


# The oldest series that every target runs on that does not say otherwise.
OLDEST = (2, 3)

# Of malloc's arenas: the heap, and one that is mapped. By default, nearly each thread has one of 64 MB of its own, of which little
# is used: all of it is in the cores that gdb writes, 1 GB and more.
ARENAS = {"MALLOC_ARENA_MAX": "2"}


def header(script, word):
    """What the comment at the top of a target says behind `word:`, a list."""
    values = []
    for line in (TARGETS / script).read_text().splitlines():
        if not line.startswith("#"):
            break
        if line.startswith(f"# {word}:"):
            values.append(line.split(":", 1)[1].strip())
    return values


def needs(script):
    """The oldest series that a target runs on."""
    wanted = header(script, "needs")
    return tuple(int(part) for part in wanted[0].split(".")) if wanted else OLDEST


def from_hex(value):
    """Strings of a target's JSON are in hex, since they may be any bytes: gives bytes."""
    if isinstance(value, str):
        return bytes.fromhex(value)
    if isinstance(value, list):
        return [from_hex(item) for item in value]
    if isinstance(value, dict):
        return {key: from_hex(item) for key, item in value.items()}
    return value


class Target:
    """
    A running target. Once made, all its subjects are at their still points, and `ready` is what it says of them. Its
    watcher (targets/still.rb) is at rest, too, except with many-to-many threads.
    Its first argument is a folder that is its own. End it with release() or close(). `cwd` is a copy of the folder of
    targets, for what it may leave behind; `environment` is added to its own.
    """

    def __init__(self, ruby_path, script, *arguments, flags=(), timeout=180, cwd=TARGETS, environment=None):
        self.script = script
        self.folder = tempfile.mkdtemp(prefix="rbdump-target-")
        self.errors = open(os.path.join(self.folder, "stderr"), "w+b")
        self.timeout = timeout
        self._rest = b""
        wanted = dict(item.split("=", 1) for item in header(script, "env"))
        self.process = subprocess.Popen(
            [ruby_path, "--disable-gems", *flags, script, self.folder, *arguments],
            cwd=cwd,
            env=os.environ | ARENAS | wanted | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            bufsize=0,
        )
        self.pid = self.process.pid
        try:
            self.ready = from_hex(json.loads(self.line()))
            if innermost(self.pid) != self.pid:
                self.pid = innermost(self.pid)
                self.tell_ids_from_here()
            # A thread that waits with many-to-many threads has no kernel thread, so none is in read(2).
            if "RUBY_MN_THREADS" not in (environment or {}) and "Still.watch" in (TARGETS / script).read_text():
                wait_until_one_reads(family(self.pid))
        except BaseException:
            self.close()
            raise

    def line(self):
        """The next line of standard output, waited for."""
        bound = Bound(self.timeout)  # from now: a debugger may have held it before
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(bound.left()):
                    raise TimeoutError(f"{self.script} said nothing in time; on standard error: {self.complaints()}")
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise EOFError(f"{self.script} ended too early: {self.complaints()}")
                self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def tell_ids_from_here(self):
        """It is in a pid namespace of its own: what it says of its threads, with the ids that they have here."""
        ids = ids_inside(self.pid)
        for subject in [*self.ready["threads"], *([self.ready["ractor"]] if "ractor" in self.ready else [])]:
            subject["tid"] = subject["tid"] and ids[subject["tid"]]
        self.ready["tasks"] = {key: ids[task] for key, task in self.ready["tasks"].items()}

    def tell(self, line):
        """Writes a line to standard input."""
        self.process.stdin.write(line.encode() + b"\n")

    def complaints(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="backslashreplace")

    def release(self):
        """Lets it end by itself, and gives its exit status."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(self.timeout)  # from now: tests of other targets may have come between
        self.close()
        return status

    def close(self):
        """Ends it, however it stands."""
        if self.process.poll() is None:
            self.process.kill()  # ends a stopped process as well
            self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)
