"""Rubies in unusual files: linked into another program, static, deleted, replaced, in a file system of their own."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import RUBIES, note_not_applicable
from harness.core import Moved
from harness.dump import check, dump, run
from harness.process import is_untouched
from harness.rubies import cache_folder, probe
from harness.stripped import stripped_copy
from harness.target import TARGETS, Target

HERE = pathlib.Path(__file__).parent
NOT_RUBY = 3
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces and capabilities need root")


# ---- linked into another program

LINKS = {
    "pie": ["-pie", "-rdynamic", "-Wl,--strip-debug"],
    "no-pie": ["-no-pie", "-rdynamic", "-Wl,--strip-debug"],
    # Its own symbols are not exported, and it is stripped: nothing in it is called like anything of Ruby's.
    "hidden": ["-pie", "-s"],
    "static": ["-static", "-s"],
}


def archives():
    for ruby in RUBIES:
        archive = pathlib.Path(ruby.path).parent.parent / "lib/libruby-static.a"
        if archive.exists():
            yield from (pytest.param((ruby, archive, how), id=f"{ruby.id}-{how}") for how in LINKS)
        else:
            note_not_applicable(f"{ruby.id} linked into another program: it has no libruby-static.a")


@pytest.fixture(scope="module")
def without_encodings(tmp_path_factory):
    """An environment in which Ruby finds, for its libraries of encodings, ones that need none of its symbols."""
    folder = tmp_path_factory.mktemp("lib")
    for name in ("enc/encdb", "enc/trans/transdb"):
        library = folder / f"{name}.so"
        library.parent.mkdir(exist_ok=True)
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", library],
            input=f"void Init_{library.stem}(void) {{}}\n", text=True, timeout=60, check=True,
        )  # fmt: skip
    return {"RUBYLIB": str(folder)}


@pytest.fixture(scope="module", params=list(archives()))
def embedded(request, tmp_path_factory):
    """A Ruby whose executable is a program of another name, and how that was linked."""
    ruby, archive, how = request.param
    program = tmp_path_factory.mktemp("embedded") / "server"
    libraries = subprocess.run(
        # Where there is nothing of the first, as in 2.4, it is the second.
        [ruby.path, "--disable-gems", "-rrbconfig", "-e",
         'print RbConfig::CONFIG.values_at("MAINLIBS", "LIBS").find { |names| !names.strip.empty? }'],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout.split()  # fmt: skip
    linked = subprocess.run(
        ["gcc", "-Wl,--build-id", *LINKS[how], "-o", program, HERE / "embedded/main.c", archive, *libraries],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert linked.returncode == 0, linked.stderr
    yield dataclasses.replace(ruby, path=str(program), elf=str(program), shared=None), how
    program.unlink()


@pytest.mark.long
@pytest.mark.outer_rubies
@pytest.mark.parametrize("script", ["cfuncs.rb", "threads.rb"])
def test_embedded(embedded, without_encodings, start, rbdump, script):
    ruby, how = embedded
    for flags in ([], ["-D"]):
        listed = subprocess.run(["nm", *flags, ruby.path], capture_output=True, text=True, timeout=60, check=False).stdout
        assert ("ruby_version" in listed) == (how in ("pie", "no-pie"))
    target = start(ruby, script, environment=without_encodings)
    check(dump(rbdump, target.pid), target, ruby)
    answer = dump(rbdump, target.pid)
    check(answer, target, ruby)
    assert f"ruby {ruby.version}" in answer["ruby_description"]
    assert target.release() == 0


# ---- not the file of that name any more


@contextlib.contextmanager
def moved_target(ruby, folder, script):
    moved = Moved(ruby, folder)
    copy = dataclasses.replace(ruby, path=moved.path)
    target = Target(moved.path, script, environment=moved.environment)
    try:
        yield moved, copy, target
        assert target.release() == 0
    finally:
        target.close()


def files_of(moved):
    return [pathlib.Path(moved.path), *(moved.folder / "lib").iterdir()]


def test_deleted(ruby, rbdump, tmp_path):
    with moved_target(ruby, tmp_path, "cfuncs.rb") as (moved, copy, target):
        for file in files_of(moved):
            file.unlink()
        check(dump(rbdump, target.pid), target, copy)
        check(dump(rbdump, target.pid, "--no-stop"), target, copy, mode="unpaused")


def other_ruby(ruby):
    """A Ruby of another version whose virtual machine is in a file of the same kind; None if there is none."""
    is_library = pathlib.Path(ruby.elf).name.startswith("libruby")
    for other in RUBIES:
        if other.version != ruby.version and pathlib.Path(other.elf).name.startswith("libruby") == is_library:
            return other
    return None


def test_replaced_by_another_ruby(ruby, rbdump, tmp_path):
    """As an upgrade does it: what is mapped is the old file, the name is the new one's."""
    with moved_target(ruby, tmp_path, "cfuncs.rb") as (moved, copy, target):
        other = other_ruby(ruby)
        for file in files_of(moved):
            new = shutil.copy((other or ruby).elf if file != files_of(moved)[0] else (other or ruby).path, tmp_path / "new")
            os.rename(new, file)
        answer = dump(rbdump, target.pid)
        check(answer, target, copy)
        assert answer["layout"]["build_id"] == moved.build_id


# For LD_PRELOAD: maps the file that contains Ruby as a whole, too, below and above where it is loaded, before Ruby runs.
MAPS_AGAIN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

__attribute__((constructor)) static void map_again(void)
{
	void *ruby = dlsym(RTLD_DEFAULT, "ruby_version");
	struct stat stat;
	Dl_info info;

	if (!ruby)
		return; /* another program of the test */
	if (!dladdr(ruby, &info))
		abort();
	int fd = open(info.dli_fname, O_RDONLY);
	if (fd < 0 || fstat(fd, &stat) != 0)
		abort();
	for (int64_t away = -(INT64_C(1) << 32); away <= INT64_C(1) << 32; away += INT64_C(1) << 33) {
		char *place = (char *)info.dli_fbase + away;

		if ((intptr_t)place > 1 << 20 &&
		    mmap(place, stat.st_size, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) == MAP_FAILED)
			abort();
	}
}
"""


def test_mapped_twice(ruby, rbdump, tmp_path):
    """As a Ruby does that reports a crash, or a program that reads its own debug info."""
    source, library = tmp_path / "again.c", tmp_path / "again.so"
    source.write_text(MAPS_AGAIN)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    with contextlib.closing(Target(ruby.path, "cfuncs.rb", environment={"LD_PRELOAD": str(library)})) as target:
        maps = [line for line in pathlib.Path(f"/proc/{target.pid}/maps").read_text().splitlines() if line.endswith(ruby.elf)]
        assert sum(line.split()[2] == "00000000" for line in maps) >= 2, maps
        check(dump(rbdump, target.pid), target, ruby)


UNPRIVILEGED = ["setpriv", "--bounding-set=-sys_admin,-checkpoint_restore", "--inh-caps=-sys_admin,-checkpoint_restore"]


def dump_without_map_files(rbdump, pid):
    """As who may trace, and may not open what is mapped by its address: by /proc/PID/exe and /proc/PID/root."""
    return subprocess.run(
        [*UNPRIVILEGED, rbdump, "-p", str(pid), "--json"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@needs_root
def test_executable_deleted_and_no_map_files(ruby, rbdump, tmp_path):
    """/proc/PID/exe is the file that runs, whatever has its name."""
    if pathlib.Path(ruby.elf).name.startswith("libruby"):
        note_not_applicable(f"{ruby.id}: its virtual machine is not in its executable")
        return
    with moved_target(ruby, tmp_path, "cfuncs.rb") as (moved, copy, target):
        pathlib.Path(moved.path).unlink()
        shutil.copy("/usr/bin/true", moved.path)
        done = dump_without_map_files(rbdump, target.pid)
        assert (done.returncode, done.stderr) == (0, "")
        check(json.loads(done.stdout), target, copy)


# ---- a file system of its own


# A root that nobody else sees: Ruby is at /app, and the folders of the system are where they are.
ENTER = """#!/bin/sh
[ -n "$RBDUMP_INSIDE" ] || RBDUMP_INSIDE=1 exec unshare -m "$0" "$@"
set -e
mount --make-rprivate /
mount -t tmpfs none {inside}
mkdir {inside}/app {inside}/proc {inside}/targets
for folder in bin lib lib64 usr etc dev; do
	if [ -L /$folder ]; then cp -a /$folder {inside}; else mkdir {inside}/$folder; mount --rbind /$folder {inside}/$folder; fi
done
cp -a {ruby}/. {inside}/app/
mount --bind {targets} {inside}/targets
mount -t proc none {inside}/proc
cd {inside}
{change_root} /bin/sh -c 'cd /targets; exec /app/bin/ruby "$@"' sh "$@"
"""
CHANGE_ROOT = {"chroot": "exec chroot .", "container": "mkdir old; pivot_root . old; umount -l /old; exec"}


@needs_root
@pytest.mark.parametrize("privileged", [True, False], ids=["map_files", "root"])
@pytest.mark.parametrize("kind", CHANGE_ROOT)
def test_other_mount_namespace(ruby, start, rbdump, tmp_path, kind, privileged):
    """Its root is another, in which other files have the names that are there outside."""
    moved = Moved(ruby, tmp_path)
    inside = tmp_path / "inside"
    inside.mkdir()
    enter = tmp_path / "enter"
    enter.write_text(ENTER.format(inside=inside, ruby=moved.folder, targets=TARGETS, change_root=CHANGE_ROOT[kind]))
    enter.chmod(0o755)
    # Until 2.2 Queue is in a library of its own.
    for folder in moved.environment["RUBYLIB"].split(":"):
        for library in pathlib.Path(folder).glob("thread.*"):
            shutil.copy(library, moved.folder / "lib")
    environment = {"LD_LIBRARY_PATH": "/app/lib", "RUBYLIB": "/app/lib"}
    target = start(dataclasses.replace(ruby, path=str(enter)), "cfuncs.rb", environment=environment)
    assert os.readlink(f"/proc/{target.pid}/exe") == ("/app/bin/ruby" if kind == "container" else f"{inside}/app/bin/ruby")
    assert not pathlib.Path("/app").exists()
    if privileged:
        done = run(rbdump, "-p", target.pid, "--json")
    else:
        done = dump_without_map_files(rbdump, target.pid)
    assert (done.returncode, done.stderr) == (0, "")
    check(json.loads(done.stdout), target, ruby)
    check_source(json.loads(run(rbdump, "-p", target.pid, "--source", "--json").stdout))
    assert target.release() == 0


def check_source(answer):
    """Lines are those of the files in the root folder of the process, where this path is that of another folder."""
    shown = []
    for frame in (frame for thread in answer["threads"] for frame in thread["frames"] if frame["kind"] == "ruby"):
        path = pathlib.PurePath(frame["absolute_path"] or frame["path"])
        if path.parent != pathlib.PurePath("/targets"):
            continue
        lines = (TARGETS / path.name).read_text().splitlines()
        assert frame["source"]["lines"], frame["source"]
        assert all(line["text"] == lines[line["line"] - 1] for line in frame["source"]["lines"])
        shown.append(path.name)
    assert "cfuncs.rb" in shown and not pathlib.Path("/targets").exists()


# ---- configured otherwise than by default

SETJMP = [path for path in sorted(cache_folder().glob("setjmp-*")) if (path / ".done").exists()]

if not SETJMP:
    note_not_applicable("a Ruby with -fcf-protection: tests/rubies/build makes one")


@pytest.fixture(scope="module", params=SETJMP, ids=lambda folder: folder.name)
def setjmp_ruby(request):
    return probe(request.param.name, request.param / "bin/ruby")


@pytest.mark.parametrize("script", ["blocks.rb", "cfuncs.rb", "methods.rb", "threads.rb", "waits.rb", "fibers_suspended.rb"])
def test_setjmp(setjmp_ruby, script, start, rbdump):
    """Stripped, without a build-id: of the layouts for its version, the self-test picks that of its configuration."""
    target = start(setjmp_ruby, script)
    answer = dump(rbdump, target.pid)
    check(answer, target, setjmp_ruby)
    assert answer["layout"]["source"] == "version"
    assert answer["layout"]["file"].endswith("-x86_64-setjmp.layout")
    check(dump(rbdump, target.pid, "--no-stop"), target, setjmp_ruby, mode="unpaused")
    assert target.release() == 0


def test_setjmp_and_the_other_layout(setjmp_ruby, start, rbdump):
    """That for the default configuration is refused."""
    target = start(setjmp_ruby, "cfuncs.rb")
    layout = dump(rbdump, target.pid)["layout"]["file"].replace("-setjmp", "")
    done = run(rbdump, "-p", target.pid, "--offsets", layout)
    assert (done.returncode, done.stdout) == (NOT_RUBY, "")
    assert "self-test" in done.stderr
    assert target.release() == 0


# ---- not made with glibc

MUSL = [path for path in sorted(cache_folder().glob("musl-*")) if (path / ".done").exists()]

if not MUSL:
    note_not_applicable("a Ruby with musl: tests/rubies/build makes one")


@pytest.fixture(scope="module", params=MUSL, ids=lambda folder: folder.name)
def musl_ruby(request):
    return probe(request.param.name, request.param / "bin/ruby")


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """A layout of a build that has no build-id must not be there for others of its version."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("script", ["blocks.rb", "cfuncs.rb", "methods.rb", "threads.rb", "waits.rb"])
def test_musl(musl_ruby, script, start, rbdump, empty_cache):
    headers = subprocess.run(["readelf", "-lW", musl_ruby.elf], capture_output=True, text=True, timeout=60, check=True)
    assert re.search(r"interpreter: \S*/ld-musl-", headers.stdout)
    target = start(musl_ruby, script)
    answer = dump(rbdump, target.pid)
    check(answer, target, musl_ruby)
    assert answer["layout"] == {**answer["layout"], "source": "generated", "build_id": None}
    check(dump(rbdump, target.pid, "--no-stop"), target, musl_ruby, mode="unpaused")
    assert target.release() == 0


def test_musl_stripped(musl_ruby, start, rbdump, empty_cache):
    """Its layout is not that of the same version with glibc; without a build-id nothing is kept."""
    layout = empty_cache / "musl.layout"
    subprocess.run([rbdump, "--gen-offsets", musl_ruby.elf, "-o", layout], capture_output=True, timeout=60, check=True)
    with stripped_copy(musl_ruby, empty_cache) as copy:
        target = start(copy.ruby, "cfuncs.rb", environment=copy.environment)
        done = run(rbdump, "-p", target.pid)
        assert (done.returncode, done.stdout) == (NOT_RUBY, "")
        assert "self-test" in done.stderr
        assert "this Ruby is built with musl, but the layouts that come with rbdump are for glibc" in done.stderr
        check(dump(rbdump, target.pid, "--offsets", layout), target, copy.ruby)
        assert target.release() == 0
    assert not list(empty_cache.glob("rbdump/offsets.d/*"))


@pytest.fixture(scope="module")
def musl_program(tmp_path_factory):
    if not shutil.which("musl-gcc"):
        pytest.skip("musl-gcc is not there")
    folder = tmp_path_factory.mktemp("musl")
    source = folder / "wait.c"
    source.write_text("#include <unistd.h>\nint main(void) { write(1, \"x\", 1); pause(); return 0; }\n")
    subprocess.run(["musl-gcc", "-o", folder / "wait", source], check=True, timeout=60)
    return folder / "wait"


def test_musl_loader(musl_program, rbdump):
    """Its loader is its C library, and has other names: still, what is mapped is found, and is no Ruby."""
    with subprocess.Popen([musl_program], stdout=subprocess.PIPE) as target:
        assert target.stdout.read(1) == b"x"
        done = run(rbdump, "-p", target.pid)
        assert is_untouched(target.pid)
        target.kill()
    assert done.returncode == NOT_RUBY
    assert re.fullmatch(r"rbdump: process \d+ is not a Ruby process: .*\n", done.stderr), done.stderr
