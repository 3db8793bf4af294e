"""
rbdump --core, given a core that is packed, damaged or cut short, a file that is none, or arguments that do not fit: it shows
what is there, or says in one sentence why it cannot.
"""

import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import typing

import pytest
from conftest import RUBIES
from harness.core import (
    Notes,
    check_all,
    copy_of_targets,
    data_extents,
    gcore_of,
    kill_for_core,
    patch,
    read_core,
    running,
    sparse_copy,
)
from harness.dump import run
from harness.golden import check_golden, golden_told, unpack_golden
from harness.kernel_cores import WHY_NOT, by_the_kernel

FAILED, NOT_RUBY, USAGE = 2, 3, 64


class Whole(typing.NamedTuple):
    """A core to be damaged."""

    core: pathlib.Path
    version: str
    told_by: str  # who says that it is of this version
    check: typing.Callable  # of what rbdump says of it


# A small one that is always here; and one of the kernel, which writes holes. gcore's would be large to copy.
WHOLE = ["golden"] + ([] if WHY_NOT else ["kernel"])


@pytest.fixture(scope="module", params=WHOLE)
def whole(request, rbdump, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    if request.param == "golden":
        core, told = unpack_golden("3.4", folder), golden_told("3.4")
        with pytest.MonkeyPatch.context() as patched:
            # Another test may have left the layout of that very build in the session's.
            patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
            yield Whole(core, told["version"], "according to Ruby's own data", lambda answer: check_golden(answer, told))
        return
    place = copy_of_targets(folder)
    with running(rbdump, RUBIES[-1].path, "waits.rb", cwd=place) as target:
        core = kill_for_core(target, place, signal.SIGABRT)
    yield Whole(core, RUBIES[-1].version, "according to Ruby's own constants", lambda answer: check_all(answer, target, RUBIES[-1]))


def said_well(done):
    """Stacks, or one sentence that says why not: never a crash, nor a word of a sanitizer."""
    if done.returncode in (0, 1):
        return done.stderr == "" and done.stdout != ""
    return done.returncode in (FAILED, NOT_RUBY) and re.fullmatch(r"rbdump: [^\n]+\n", done.stderr) and not done.stdout


def test_packed(whole, rbdump, tmp_path):
    core = whole.core
    packed = tmp_path / "core.zst"
    subprocess.run(["zstd", "-q", core, "-o", packed], check=True, timeout=120)
    plain, unpacked = read_core(rbdump, core), read_core(rbdump, packed)
    whole.check(unpacked)
    assert unpacked["threads"] == plain["threads"]
    done = run(rbdump, "--core", packed, env=dict(os.environ, TMPDIR=str(tmp_path / "none")))
    assert (done.returncode, done.stdout) == (FAILED, "") and "TMPDIR" in done.stderr

    # Cut short, it is read as far as it goes; damaged, it is refused.
    content = packed.read_bytes()
    for length in [4, 5, 20, len(content) // 2, len(content) - 1]:
        packed.write_bytes(content[:length])
        assert said_well(run(rbdump, "--core", packed)), length
    packed.write_bytes(content[:1000] + bytes(1000) + content[2000:])
    done = run(rbdump, "--core", packed)
    assert done.returncode == FAILED and said_well(done) and "zstd" in done.stderr


@pytest.mark.long
def test_packed_bomb(rbdump, tmp_path):
    """Little more is unpacked than a core says it has, and of what is none, little."""
    limit = 32 << 20

    def read(content, *arguments):
        (tmp_path / "bomb").write_bytes(content + b"x" * (4 * limit))
        subprocess.run(["zstd", "-qf", tmp_path / "bomb"], check=True, timeout=60)
        return run(
            rbdump, "--core", tmp_path / "bomb.zst", *arguments,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )  # fmt: skip

    done = read(unpack_golden("3.4", tmp_path).read_bytes(), "--json")
    assert done.returncode == 0
    check_golden(json.loads(done.stdout), golden_told("3.4"))
    done = read(b"")
    assert done.returncode == FAILED and said_well(done) and "not an ELF file" in done.stderr


@pytest.mark.parametrize("packer", ["xz", "gzip", "lz4"])
def test_other_packers_are_named(rbdump, tmp_path, packer):
    magic = {"xz": b"\xfd7zXZ\0", "gzip": b"\x1f\x8b\x08\0", "lz4": b"\x04\x22\x4d\x18"}[packer]
    (tmp_path / "core").write_bytes(magic + bytes(100))
    done = run(rbdump, "--core", tmp_path / "core")
    assert done.returncode == FAILED and f"decompress it first ({packer} -dc FILE > CORE)" in done.stderr


@pytest.mark.long
def test_cut_short(whole, rbdump, tmp_path):
    """
    At every boundary of its headers, and in between: what is there is shown, and what is said to be complete is as in
    the whole; or it is said that nothing can be, and that the core is cut short.
    """
    core = whole.core
    stacks = collections.defaultdict(list)
    for thread in read_core(rbdump, core)["threads"]:
        stacks[thread["thread"]].append(thread["frames"])
    copy = sparse_copy(core, tmp_path / "core")
    notes = Notes(core)
    chosen = random.Random(1)
    lengths = {0, 1, 3, 4, 16, 63, 64, 65, notes.headers_end - 1, notes.headers_end, notes.headers_end + 1}
    for _, offset, size in notes.found[:12] + notes.found[-3:]:
        lengths |= {offset - 12, offset - 1, offset, offset + size // 2, offset + size}
    extents = data_extents(core)
    lengths |= {end - 1 for _, end in extents[:40]} | {start + 1 for start, _ in extents[:40]}
    size = os.path.getsize(core)
    lengths |= {chosen.randrange(size) for _ in range(40)}
    # At the end of a core is little but the native stack of the main thread, which no frame is on.
    shown = {size - lacking for lacking in (4097, 20_000, 65_536)}
    statuses = set()
    for length in sorted(lengths | shown, reverse=True):
        os.truncate(copy, length)
        done = run(rbdump, "--core", copy, "--json")
        assert said_well(done), (length, done)
        if done.returncode in (0, 1):
            answer = json.loads(done.stdout)
            assert "cut short" in "".join(answer["core"]["lacks"]), length
            complete = [thread for thread in answer["threads"] if thread["verdict"] == "complete"]
            for thread in complete:
                assert thread["frames"] in stacks[thread["thread"]], (length, thread)
            assert complete or length not in shown, length
        else:
            assert length not in shown, (length, done.stderr)
            assert "cut short" in done.stderr or length < 64, (length, done.stderr)
            assert not re.search("ending|starting|cannot read this Ruby", done.stderr), (length, done.stderr)
        statuses.add(done.returncode)
    assert {FAILED, NOT_RUBY} <= statuses


# The golden one's file is nowhere.
FLIPPED = [("golden", False)] + ([] if WHY_NOT else [("kernel", True), ("kernel", False)])


@pytest.mark.long
@pytest.mark.parametrize(
    ("whole", "with_file"),
    FLIPPED,
    indirect=["whole"],
    ids=[f"{name}-{'with' if with_file else 'without'}-file" for name, with_file in FLIPPED],
)
def test_flipped_bytes(whole, rbdump, tmp_path, with_file, times):
    """Headers, notes and memory with a few bytes changed. Which ones: by seed."""
    core = whole.core
    copy = sparse_copy(core, tmp_path / "core")
    if not with_file:
        # The path of every file that was mapped is another one.
        notes = Notes(copy)
        offset, size = notes.first(0x46494C45)
        with open(copy, "rb") as file:
            file.seek(offset)
            content = file.read(size)
        patch(copy, offset, content.replace(b"/usr/", b"/rsu/").replace(b"/bin/", b"/nib/").replace(b"/lib/", b"/bil/"))
    arguments = [] if with_file else ["--ruby-version", whole.version]
    assert run(rbdump, "--core", copy, *arguments).returncode == 0
    extents = data_extents(copy)
    headers_end = Notes(copy).headers_end
    notes_end = max(offset + size for _, offset, size in Notes(copy).found)
    for seed in range(times(100, 240)):
        chosen = random.Random(seed)
        before = []
        for _ in range(chosen.choice([1, 1, 2, 8])):
            kind = chosen.randrange(4)
            if kind == 0:
                at = chosen.randrange(headers_end)
            elif kind == 1:
                at = chosen.randrange(headers_end, notes_end)
            else:
                start, end = chosen.choice(extents)
                at = chosen.randrange(start, end)
            value = bytes([chosen.choice([0, 0x7F, 0xFF, chosen.randrange(256)])])
            before.append((at, patch(copy, at, value)))
        done = run(rbdump, "--core", copy, "--json", *arguments)
        assert said_well(done), (seed, before, done)
        for at, value in reversed(before):
            patch(copy, at, value)
    assert run(rbdump, "--core", copy, *arguments).returncode == 0


def test_no_core_at_all(rbdump, tmp_path):
    def refused(path, words, *arguments):
        done = run(rbdump, "--core", path, *arguments)
        assert said_well(done) and done.returncode == FAILED and words in done.stderr, done

    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("a core\n")
    os.mkfifo(tmp_path / "fifo")
    header = bytearray(open(rbdump, "rb").read(4096))
    header[16] = 4  # ET_CORE
    (tmp_path / "headers").write_bytes(header)
    header[18] = 40  # EM_ARM
    (tmp_path / "arm").write_bytes(header)
    refused(tmp_path / "none", "No such file")
    refused(tmp_path / "empty", "not an ELF file")
    refused(tmp_path / "text", "not an ELF file")
    refused(tmp_path / "fifo", "not a regular file")
    refused(tmp_path, "not a regular file")
    refused(rbdump, "not a core")
    refused(tmp_path / "headers", "the threads' registers are missing: the file was cut short")
    refused(tmp_path / "arm", "not the core of an x86_64 process")


@by_the_kernel
def test_core_of_another_program(place, rbdump, tmp_path):
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path) as process:
        process.process = process  # as a target has it
        core = kill_for_core(process, tmp_path, signal.SIGABRT)
    done = run(rbdump, "--core", core)
    assert done.returncode == NOT_RUBY and said_well(done) and "does not seem to be the core of a Ruby" in done.stderr


def test_core_of_another_program_that_is_gone(rbdump, tmp_path):
    """Nothing tells that it was no Ruby: its own file is not here, and nothing in the core has another's name."""
    program = shutil.copy(shutil.which("sleep"), tmp_path / "program")
    with subprocess.Popen([program, "60"]) as process:
        try:
            with gcore_of(process.pid, tmp_path) as core:
                os.unlink(program)
                done = run(rbdump, "--core", core)
        finally:
            process.kill()
    assert done.returncode == NOT_RUBY and said_well(done)
    assert "the program may not be Ruby at all" in done.stderr


def test_executable_that_is_none(whole, rbdump, tmp_path):
    core = whole.core
    for file, words in [(tmp_path / "none", "No such file"), (tmp_path, "not a regular file"), (core, "is not the file that ran")]:
        done = run(rbdump, "--core", core, file)
        assert done.returncode == FAILED and said_well(done) and words in done.stderr, done


def test_version_that_is_not_its(whole, rbdump):
    done = run(rbdump, "--core", whole.core, "--ruby-version", "1.2.3")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert f"the core is from Ruby {whole.version} ({whole.told_by}), but --ruby-version gives 1.2.3" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--core"],
        ["--core", "a", "b", "c"],
        ["--core", "a", "-p", "1"],
        ["--core", "a", "--no-stop"],
        ["--core", "a", "--force"],
        ["-p", "1", "--ruby-version", "3.4.5"],
        ["--core", "a", "-g", "b"],
        ["--core", "a", "--ruby-version", "3.4"],
        ["--core", "a", "--ruby-version", "3.4.5p51"],
        ["--core", "a", "--ruby-version", "../x"],
        ["--core", "a", "--ruby-version", ""],
    ],
    ids=" ".join,
)
def test_usage(rbdump, arguments):
    done = run(rbdump, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1)


def test_usage_of_what_goes_with_a_core(rbdump):
    done = run(rbdump, "--gen-offsets", "a", "--offsets", "b")
    assert done.returncode == USAGE
    assert "--json, --offsets, --nearest, --time-limit and --no-stop cannot be used with --gen-offsets" in done.stderr
