"""Rubies in unusual files: linked into another program, static, deleted, replaced, in a file system of their own."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import RUBIES, note_not_applicable
from harness.core import Moved
from harness.dump import check, dump, run
from harness.process import is_untouched
from harness.target import TARGETS, Target

HERE = pathlib.Path(__file__).parent
NOT_RUBY = 3
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces and capabilities need root")


# ---- linked into another program

LINKS = {
    "pie": ["-pie", "-rdynamic"],
    "no-pie": ["-no-pie", "-rdynamic"],
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


@pytest.fixture(scope="module", params=list(archives()))
def embedded(request, tmp_path_factory):
    """A Ruby whose executable is a program of another name, and how that was linked."""
    ruby, archive, how = request.param
    program = tmp_path_factory.mktemp("embedded") / "server"
    libraries = subprocess.run(
        [ruby.path, "--disable-gems", "-rrbconfig", "-e", 'print RbConfig::CONFIG["MAINLIBS"]'],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout.split()  # fmt: skip
    linked = subprocess.run(
        ["gcc", "-Wl,-S", "-Wl,--build-id", *LINKS[how], "-o", program, HERE / "embedded/main.c", archive, *libraries],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert linked.returncode == 0, linked.stderr
    yield dataclasses.replace(ruby, path=str(program), elf=str(program), shared=None), how
    program.unlink()


@pytest.mark.parametrize("script", ["cfuncs.rb", "threads.rb"])
def test_embedded(embedded, start, rbdump, script):
    ruby, how = embedded
    symbols = subprocess.run(["nm", "-D", ruby.path], capture_output=True, text=True, timeout=60, check=False).stdout
    assert bool(re.search(r"\bruby_version$", symbols, re.M)) == (how in ("pie", "no-pie"))
    target = start(ruby, script)
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


UNPRIVILEGED = ["setpriv", "--bounding-set=-sys_admin,-checkpoint_restore", "--inh-caps=-sys_admin,-checkpoint_restore"]


def dump_without_map_files(rbdump, pid):
    """As who may trace, and may not open what is mapped by its address: by /proc/PID/exe and /proc/PID/root."""
    wrapper = [*UNPRIVILEGED, rbdump]
    done = subprocess.run(
        [*wrapper, "-p", str(pid), "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    return done


@needs_root
def test_executable_deleted_and_no_map_files(ruby, rbdump, tmp_path):
    """/proc/PID/exe is the file that runs, whatever has its name."""
    if pathlib.Path(ruby.elf).name.startswith("libruby"):
        note_not_applicable(f"{ruby.id}: its virtual machine is not in its executable")
        return
    import json

    with moved_target(ruby, tmp_path, "cfuncs.rb") as (moved, copy, target):
        pathlib.Path(moved.path).unlink()
        shutil.copy("/usr/bin/true", moved.path)
        done = dump_without_map_files(rbdump, target.pid)
        assert (done.returncode, done.stderr) == (0, "")
        check(json.loads(done.stdout), target, copy)


# ---- a file system of its own


@needs_root
@pytest.mark.parametrize("privileged", [True, False], ids=["map_files", "root"])
def test_other_mount_namespace(ruby, start, rbdump, tmp_path, privileged):
    """A container: its root is another, in which other files have the names that are there outside."""
    import json

    moved = Moved(ruby, tmp_path)
    hidden = tmp_path / "root"
    hidden.mkdir()
    outside = tmp_path / "moved/bin/ruby"
    # Within, the root is a folder that only this process sees; the path of Ruby there is nothing, or another file, here.
    script = tmp_path / "enter"
    script.write_text(
        f"""#!/bin/sh
set -e
mount --make-rprivate /
mount -t tmpfs none {hidden}
mkdir -p {hidden}/app {hidden}/proc {hidden}/tmp {hidden}/targets
for folder in bin lib lib64 usr etc dev; do
	if [ -L /$folder ]; then cp -a /$folder {hidden}/$folder; else mkdir {hidden}/$folder; mount --rbind /$folder {hidden}/$folder; fi
done
cp -a {moved.folder}/. {hidden}/app/
mount --bind {TARGETS} {hidden}/targets
mount -t proc none {hidden}/proc
for folder in "$@"; do break; done
exec chroot {hidden} /bin/sh -c 'cd /targets; exec /app/bin/ruby "$@"' sh "$@"
"""
    )
    script.chmod(0o755)
    inside = dataclasses.replace(ruby, path=str(script))
    environment = {"LD_LIBRARY_PATH": "/app/lib"}
    wrapper = tmp_path / "unshared"
    wrapper.write_text(f'#!/bin/sh\nexec unshare -m {script} "$@"\n')
    wrapper.chmod(0o755)
    target = start(dataclasses.replace(inside, path=str(wrapper)), "cfuncs.rb", environment=environment)
    assert outside.exists() and not pathlib.Path("/app").exists()
    if privileged:
        done = run(rbdump, "-p", target.pid, "--json")
    else:
        done = dump_without_map_files(rbdump, target.pid)
    assert (done.returncode, done.stderr) == (0, "")
    check(json.loads(done.stdout), target, ruby)
    assert target.release() == 0


# ---- not made with glibc


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
    assert re.fullmatch(r"rbdump: process \d+ is no Ruby: .*\n", done.stderr), done.stderr
