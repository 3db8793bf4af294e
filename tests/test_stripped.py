"""Rubies without any symbol table and debug info: every frame as Ruby tells it, C functions by name, from offsets.d/ alone."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import resource
import subprocess

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import check, dump, rbdumps_frames, run
from harness.layouts import make_layout, shipped_for
from harness.process import is_untouched, wait_until_it_reads
from harness.stripped import stripped_copy
from harness.target import needs
from test_fibers import look_at_rest

ROOT = pathlib.Path(__file__).parent.parent
SCRIPTS = ["blocks.rb", "bodies.rb", "cfuncs.rb", "evals.rb", "methods.rb", "multiline.rb", "name_rules.rb", "names.rb"]
SCRIPTS += ["oldest.rb", "ractor.rb", "rescues.rb", "svar.rb", "threads.rb", "waits.rb"]
ROOTS = ["rb_cObject", "ruby_current_vm_ptr", "ruby_global_symbols"]


def builds():
    for ruby in RUBIES:
        yield pytest.param((ruby, False), id=ruby.id)
        if ruby.shared:
            yield pytest.param((ruby, True), id=f"{ruby.id}-shared")


@pytest.fixture(scope="module", params=list(builds()))
def build(request):
    """(Ruby, whether it is the build with libruby, which has no libraries of Ruby's)"""
    return request.param


@pytest.fixture(scope="module")
def stripped(build, tmp_path_factory):
    ruby, shared = build
    if shared:
        ruby = dataclasses.replace(ruby, path=ruby.shared)
    with stripped_copy(ruby, tmp_path_factory.mktemp(ruby.id)) as copy:
        yield copy


@pytest.fixture(autouse=True)
def empty_home(monkeypatch, tmp_path):
    """Nobody has looked at a Ruby before: what is known is what comes with rbdump."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rbdump/by-digest"


@pytest.fixture(scope="module")
def layouts_folder(stripped, rbdump, tmp_path_factory):
    if shipped := shipped_for(stripped.ruby.version):
        return shipped.parent
    note_not_applicable(f"{stripped.ruby.id} stripped, from offsets.d/: none for {stripped.ruby.version}; one is made for it")
    return make_layout(stripped.original, rbdump, tmp_path_factory.mktemp("made"))


@pytest.fixture(autouse=True)
def layouts(layouts_folder, monkeypatch):
    """The folder where the layout of the stripped Ruby must come from."""
    monkeypatch.setenv("RBDUMP_OFFSETS_D", str(layouts_folder))
    return layouts_folder


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.removesuffix(".rb"))
def test_frames(build, stripped, layouts, start, rbdump, script):
    ruby = stripped.ruby
    if ruby.series < needs(script) or (script == "names.rb" and build[1]):
        return
    target = start(ruby, script, environment=stripped.environment)
    answer = dump(rbdump, target.pid)
    check(answer, target, ruby)
    assert answer["layout"]["source"] == "version"
    assert pathlib.Path(answer["layout"]["file"]).parent == layouts
    assert all(frame["label"] for thread in answer["threads"] for frame in thread["frames"])
    check(dump(rbdump, target.pid, "--no-stop"), target, ruby, mode="unpaused")
    assert is_untouched(target.pid)
    assert target.release() == 0


@pytest.mark.long
@pytest.mark.parametrize("script", ["fibers_suspended.rb", "fiber_scheduler.rb"], ids=lambda script: script.removesuffix(".rb"))
def test_suspended_fibers(build, stripped, start, rbdump, tmp_path, script):
    """Live, and in a core."""
    ruby = stripped.ruby
    if ruby.series < needs(script):
        return
    # A libruby that is elsewhere does not find its own extensions.
    places = subprocess.run(
        [build[0].path, "--disable-gems", "-e", 'print $:.join(":")'], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    target = start(ruby, script, environment={**stripped.environment, "RUBYLIB": places})
    for mode in ("paused", "core"):
        look_at_rest(rbdump, target, mode, tmp_path, ruby)
    assert target.release() == 0


# ---- the roots, found without any symbol


def symbols(elf):
    """Addresses of the roots as the file's own symbol tables have them, as far as they do."""
    found = {}
    for flags in (["-D"], []):
        listed = subprocess.run(["nm", *flags, elf], capture_output=True, text=True, check=False, timeout=60).stdout
        for line in listed.splitlines():
            words = line.split()
            if len(words) == 3 and words[2].split("@")[0] in ROOTS:
                found[words[2].split("@")[0]] = int(words[0], 16)
    return found


@pytest.fixture(scope="module")
def roots_probe():
    path = ROOT / "build" / ("san" if os.environ.get("SAN") == "1" else "") / "tests/probes/roots"
    assert path.exists(), f"{path} is not there: run make probes"
    return str(path)


def cpu_time_of_children():
    """Of those that were waited for, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_search(stripped, start, rbdump, roots_probe, tmp_path):
    """It finds what the symbol table says, in a few system calls and less than 50 ms of a CPU, its start included."""
    target = start(stripped.ruby, "cfuncs.rb", environment=stripped.environment)
    layout = dump(rbdump, target.pid)["layout"]["file"]
    found, times = [], []
    for _ in range(5):
        before = cpu_time_of_children()
        done = subprocess.run(
            [roots_probe, str(target.pid), layout], capture_output=True, text=True, timeout=60, check=True
        )
        times.append(cpu_time_of_children() - before)
        found.append(json.loads(done.stdout))
    known = symbols(stripped.original)
    assert "rb_cObject" in known
    with open(f"/proc/{target.pid}/mem", "rb") as memory:

        def word(address):
            memory.seek(address + found[0]["bias"])
            return memory.read(8)

        # Any variable will do that has the class Object, or points to the VM.
        for name in ("rb_cObject", "ruby_current_vm_ptr"):
            assert name not in known or word(found[0][name]) == word(known[name])
    for answer in found:
        assert answer["ruby_global_symbols"] == known.get("ruby_global_symbols", answer["ruby_global_symbols"])
        assert answer["calls"] < 30
    if os.environ.get("SAN") != "1":
        assert 0 < min(times) < 0.05, times


def kept_roots(cache):
    """The file in which the roots of the one file that was looked at are kept."""
    (path,) = cache.glob("*/*.roots")
    return path


def test_roots_are_kept(stripped, start, rbdump, empty_home):
    target = start(stripped.ruby, "cfuncs.rb", environment=stripped.environment)
    check(dump(rbdump, target.pid), target, stripped.ruby)
    kept = kept_roots(empty_home)
    first, identity, *facts, last = kept.read_text().splitlines()
    assert kept.parent.name == stripped.moved.build_id
    files = [pathlib.Path(stripped.moved.path), *(stripped.moved.folder / "lib").glob("libruby*")]
    assert kept.stem in [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    assert (first, identity, last) == ("rbdump-roots 1", f"build-id {stripped.moved.build_id}", f"end {len(facts)}")
    known = symbols(stripped.original)
    found = {name: int(address, 16) for _, name, address in map(str.split, facts)}
    assert found["ruby_global_symbols"] == known.get("ruby_global_symbols", found["ruby_global_symbols"])
    # What the file itself tells is not kept.
    exported = subprocess.run(["nm", "-D", stripped.original], capture_output=True, text=True, check=True, timeout=60).stdout
    assert not [name for name in found if re.search(rf"\b{name}$", exported, re.M)]
    assert found.keys() | set(re.findall(r"\w+$", exported, re.M)) >= set(ROOTS)
    before = kept.stat()
    check(dump(rbdump, target.pid), target, stripped.ruby)
    assert kept.stat() == before or kept.stat().st_mtime_ns == before.st_mtime_ns


def hostile_roots(right, identity):
    """What may stand in the file of kept roots: (what it is, content)."""
    address = re.search(r"0x([0-9a-f]+)", right)[1]
    yield "empty", ""
    yield "no file of that kind", "garbage\n" * 20
    yield "not text", "rbdump-roots 1\0\n"
    yield "another format", right.replace("roots 1", "roots 2")
    yield "another build", right.replace(identity, identity[::-1])
    yield "cut short", right[: right.rindex("end ")]
    yield "a wrong count", re.sub(r"end \d+", "end 9", right)
    yield "more behind it", right + "more\n"
    yield "one twice", re.sub(r"(symbol .*\n)", r"\1\1", right, count=1)
    yield "another order", re.sub(r"((?:symbol .*\n)+)", lambda m: "".join(sorted(m[1].splitlines(True), reverse=True)), right)
    yield "an unknown name", re.sub(r"symbol \w+", "symbol something", right, count=1)
    yield "a number beyond 64 bits", right.replace(address, "f" * 17)
    yield "the kernel's half", right.replace(address, "ffffffff80000000")
    yield "an address before the file", right.replace(f"0x{address}", "0x0")
    yield "odd", right.replace(address, f"{int(address, 16) + 1:x}")
    yield "the word behind", right.replace(address, f"{int(address, 16) + 8:x}")
    yield "all the same", re.sub(r"0x[0-9a-f]+", f"0x{address}", right)
    yield "too long", right + "x" * 100000


def test_kept_roots_that_are_wrong(stripped, start, rbdump, empty_home):
    """Whatever the file says, the answer is the same, and the file is right afterwards."""
    target = start(stripped.ruby, "cfuncs.rb", environment=stripped.environment)
    wait_until_it_reads(target.pid)
    right_answer = [rbdumps_frames(thread) for thread in dump(rbdump, target.pid)["threads"]]
    kept = kept_roots(empty_home)
    right = kept.read_text()
    for what, content in hostile_roots(right, stripped.moved.build_id):
        if content == right:
            continue  # there is only one root to keep
        kept.write_text(content)
        answer = dump(rbdump, target.pid)
        assert [rbdumps_frames(thread) for thread in answer["threads"]] == right_answer, what
        assert kept.read_text() == right, what
    kept.unlink()
    os.mkfifo(kept)
    check(dump(rbdump, target.pid), target, stripped.ruby)
    assert kept.read_text() == right
    kept.unlink()
    kept.mkdir()
    check(dump(rbdump, target.pid), target, stripped.ruby)
    # And no file that was meant to replace it. The other one has the digest of the Ruby (store/known_files.h).
    assert {path.name for path in kept.parent.iterdir()} <= {kept.name, "files"}


def test_cache_that_cannot_be_written_to(stripped, start, rbdump, empty_home):
    target = start(stripped.ruby, "cfuncs.rb", environment=stripped.environment)
    empty_home.parent.write_text("a file where a folder should be\n")
    check(dump(rbdump, target.pid), target, stripped.ruby)
    done = run(rbdump, "-p", target.pid)
    assert (done.returncode, done.stderr) == (0, "")
