"""Core files: made by gdb and by the kernel, changed, and read by rbdump."""

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess

from harness.debugger import GDB
from harness.dump import check, check_thread, run
from harness.process import wait_until
from harness.rubies import probe
from harness.target import TARGETS, Target

CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")
SYS_TGKILL = 234  # x86_64
NT_PRSTATUS = 1
NT_FILE = 0x46494C45
PR_REG, FS_BASE = 112, 21 * 8  # struct elf_prstatus, struct user_regs_struct: x86_64


def gcore(pid, path):
    """gdb's gcore of a process that goes on; as its script of that name, gdb reads no debug info."""
    done = subprocess.run(
        [*GDB, "-readnever", "-p", str(pid), "-ex", f"gcore {path}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert f"Saved corefile {path}" in done.stdout, done.stdout + done.stderr
    return path


@contextlib.contextmanager
def gcore_of(pid, folder):
    """The same, deleted afterwards: they are large."""
    path = pathlib.Path(folder) / f"gcore.{pid}"
    try:
        yield gcore(pid, path)
    finally:
        path.unlink(missing_ok=True)


def settle(rbdump, pid):
    """
    Waits until no thread of a target has the GVL or wants it: one that rests in a call may still be on its way into the
    system call of it (accept tries first, and then waits).
    """

    def settled():
        threads = json.loads(run(rbdump, "-p", pid, "--json").stdout)["threads"]
        return not {"running", "waiting_gvl"} & {thread["state"] for thread in threads}

    wait_until(settled, "no thread wants to run")


@contextlib.contextmanager
def running(rbdump, *arguments, **options):
    """A target at rest."""
    target = Target(*arguments, **options)
    try:
        settle(rbdump, target.pid)
        yield target
    finally:
        target.close()


def no_kernel_cores():
    """Why the kernel writes no core into the folder of the process that dies; None if it does."""
    pattern = CORE_PATTERN.read_text().rstrip("\n")
    if pattern.startswith("|") or "/" in pattern or not pattern:
        return f"core_pattern is {pattern!r}, no plain file name"
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard != resource.RLIM_INFINITY and os.geteuid() != 0:
        return "the hard limit of core files is not unlimited"
    return None


def kill_for_core(target, folder, which, tid=None, ends_by=()):
    """
    Ends a target whose working folder is `folder` by a signal, to one thread if asked for. Gives its core. `ends_by` are
    the signals of which one ends it, if it handles the first.
    """
    resource.prlimit(target.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(SYS_TGKILL, target.pid, tid or target.pid, which) == 0, os.strerror(ctypes.get_errno())
    assert -target.process.wait(60) in (ends_by or [which])
    (core,) = [path for path in pathlib.Path(folder).iterdir() if path.name.startswith("core")]
    return core


def copy_of_targets(folder):
    """A folder that a target can run in and leave a core in."""
    return shutil.copytree(TARGETS, pathlib.Path(folder) / "targets")


def sparse_copy(path, to):
    subprocess.run(["cp", "--sparse=always", path, to], check=True, timeout=60)
    return to


def read_core(rbdump, core, *arguments, status=0, **options):
    """`rbdump --core FILE --json`, with its exit status checked; gives the parsed JSON."""
    done = run(rbdump, "--core", core, *arguments, "--json", **options)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr or done.stdout[:2000]}"
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert (answer["mode"], answer["pause_us"], answer["pauses"]) == ("core", None, 0)
    assert answer["core"]["file"] == str(core)
    return answer


def check_all(answer, target, ruby):
    """Every thread and frame in a core is as its target told, of a ractor too."""
    check(answer, target, ruby, mode="core")
    if "ractor" in target.ready:
        assert not (complaints := check_thread(answer, target.ready["ractor"])), complaints


class Moved:
    """A Ruby in a folder of its own, libruby too, which finds its libraries as before, and can be deleted."""

    def __init__(self, ruby, folder):
        self.folder = pathlib.Path(folder) / "moved"
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "lib").mkdir()
        self.path = str(shutil.copy(os.path.realpath(ruby.path), self.folder / "bin/ruby"))
        # Of a second build of a Ruby, `elf` is that of the first one.
        elf = probe(ruby.id, ruby.path).elf
        self.build_id = build_id(elf)
        if os.path.realpath(elf) != os.path.realpath(ruby.path):
            dynamic = subprocess.run(["readelf", "-dW", elf], capture_output=True, text=True, check=True, timeout=60)
            soname = dynamic.stdout.split("Library soname: [")[1].split("]")[0]
            # As it is installed: a file whose name has the whole version, and a link that is found.
            name = os.path.basename(os.path.realpath(elf))
            shutil.copy(elf, self.folder / "lib" / name)
            if name != soname:
                (self.folder / "lib" / soname).symlink_to(name)
        load_path = subprocess.run(
            [ruby.path, "--disable-gems", "-e", "puts $:"], capture_output=True, text=True, check=True, timeout=60
        ).stdout.split("\n")[:-1]
        self.environment = {"LD_LIBRARY_PATH": str(self.folder / "lib"), "RUBYLIB": ":".join(load_path)}

    def delete(self):
        shutil.rmtree(self.folder)


def build_id(path):
    """None if it has none."""
    notes = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True, timeout=60).stdout
    return notes.split("Build ID: ")[1].split()[0] if "Build ID: " in notes else None


class Notes:
    """Where the notes of a core are in its file: (type, offset of the content, size), in their order."""

    def __init__(self, path):
        self.found = []
        with open(path, "rb") as core:
            header = core.read(64)
            headers_at, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
            core.seek(headers_at)
            headers = core.read(size * count)
            for i in range(count):
                kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", headers, i * size)
                if kind == 4:  # PT_NOTE
                    core.seek(offset)
                    self._read(core.read(length), offset)
        self.headers_end = headers_at + size * count

    def _read(self, notes, offset):
        at = 0
        while at + 12 <= len(notes):
            name, content, kind = struct.unpack_from("<III", notes, at)
            begin = at + 12 + (name + 3) // 4 * 4
            self.found.append((kind, offset + begin, content))
            at = begin + (content + 3) // 4 * 4

    def first(self, kind):
        return next((offset, size) for found, offset, size in self.found if found == kind)


def mappings_of_core(path):
    """The mappings of files, as NT_FILE of a core has them: (start, offset in pages, file)."""
    at, size = Notes(path).first(NT_FILE)
    with open(path, "rb") as core:
        core.seek(at)
        note = core.read(size)
    count = struct.unpack_from("<Q", note)[0]
    names = note[16 + 24 * count :].split(b"\0")
    for i in range(count):
        start, _, offset = struct.unpack_from("<QQQ", note, 16 + 24 * i)
        yield start, offset, os.fsdecode(names[i])


def patch(path, offset, content):
    with open(path, "r+b") as file:
        file.seek(offset)
        before = file.read(len(content))
        file.seek(offset)
        file.write(content)
    return before


def forget_pointers(core):
    """What gdb before 8 wrote: 0 for fs_base in each NT_PRSTATUS. Gives how many there are."""
    found = [offset for kind, offset, _ in Notes(core).found if kind == NT_PRSTATUS]
    for offset in found:
        patch(core, offset + PR_REG + FS_BASE, bytes(8))
    return len(found)


def data_extents(path):
    """The parts of a sparse file that are not holes: [(start, end)]."""
    extents, at = [], 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: a hole up to its end
                break
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            extents.append((start, at))
    return extents
