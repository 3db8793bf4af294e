"""A Ruby whose structs are those of no release: read through its own layout, refused through any other."""

import dataclasses
import re
import subprocess

import pytest
from conftest import note_not_applicable
from harness.core import gcore_of, read_core, settle
from harness.dump import check, dump, run
from harness.layouts import OFFSETS_D, shipped_for, without_digest
from harness.process import is_untouched
from harness.refusals import NOT_RUBY, check_refusal
from harness.rubies import cache_folder, probe
from harness.stripped import stripped_copy

SCRIPTS = ["blocks.rb", "cfuncs.rb", "methods.rb", "multiline.rb", "name_rules.rb", "rescues.rb", "svar.rb", "threads.rb"]
FOLDERS = [path for path in sorted(cache_folder().glob("patched-*")) if (path / ".done").exists()]

if not FOLDERS:
    note_not_applicable("a Ruby with patched structs: tests/rubies/build makes one")


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


@pytest.fixture(scope="module")
def patched(folder):
    return probe(folder.name, folder / "bin/ruby")


@pytest.fixture(autouse=True)
def empty_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def layout(patched, rbdump, tmp_path_factory):
    path = tmp_path_factory.mktemp("patched") / "patched.layout"
    subprocess.run([rbdump, "--gen-offsets", patched.elf, "-o", path], capture_output=True, timeout=60, check=True)
    return path


def fact(text, words):
    return re.search(rf"^{re.escape(words)} (.*)$", text, re.M)[1].split()


def test_it_is_patched(patched, layout):
    """Everything in those structs lies 8 bytes further than in the release."""
    ours, shipped = layout.read_text(), shipped_for(patched.version).read_text()
    for struct in ("rb_control_frame_struct", "rb_thread_struct"):
        members = re.findall(rf"^member ({struct}\.\S+) (\d+)", shipped, re.M)
        assert members
        assert all(int(fact(ours, f"member {name}")[0]) == int(offset) + 8 for name, offset in members)
    size = "size rb_control_frame_struct"
    assert int(fact(ours, size)[0]) == int(fact(shipped, size)[0]) + 8


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.removesuffix(".rb"))
def test_frames(patched, layout, start, rbdump, script):
    target = start(patched, script)
    check(dump(rbdump, target.pid, "--offsets", layout), target, patched)
    check(dump(rbdump, target.pid, "--no-stop", "--offsets", layout), target, patched, mode="unpaused")
    # It finds that out by itself, too.
    answer = dump(rbdump, target.pid)
    check(answer, target, patched)
    assert answer["layout"]["source"] == "generated"
    assert target.release() == 0


def test_core(patched, layout, start, rbdump, tmp_path):
    target = start(patched, "cfuncs.rb")
    settle(rbdump, target.pid)
    with gcore_of(target.pid, tmp_path) as core:
        check(read_core(rbdump, core, "--offsets", layout), target, patched, mode="core")
        # By what was made of the debug info of its Ruby when that was looked at.
        answer = read_core(rbdump, core)
        check(answer, target, patched, mode="core")
        assert answer["layout"]["source"] == "build-id"
        shipped = tmp_path / "shipped.layout"
        shipped.write_text(without_digest(shipped_for(patched.version).read_text()))
        check_refusal(run(rbdump, "--core", core, "--offsets", shipped), NOT_RUBY, "self-test")
    assert target.release() == 0


def test_stripped(patched, layout, start, rbdump, tmp_path, monkeypatch):
    """Without its debug info, that one layout is what makes the difference."""
    with stripped_copy(patched, tmp_path) as copy:
        target = start(copy.ruby, "cfuncs.rb", environment=copy.environment)
        check_refusal(run(rbdump, "-p", target.pid), NOT_RUBY, "self-test", patched.version)
        check_refusal(run(rbdump, "-p", target.pid, "--no-stop"), NOT_RUBY, "self-test", patched.version)
        folder = tmp_path / "own"
        folder.mkdir()
        (folder / "own.layout").write_text(layout.read_text())
        monkeypatch.setenv("RBDUMP_OFFSETS_D", str(folder))
        check(dump(rbdump, target.pid), target, copy.ruby)
        assert target.release() == 0


def test_layouts_of_releases_are_refused(patched, start, rbdump, tmp_path):
    target = start(patched, "waits.rb")
    for shipped in sorted(OFFSETS_D.glob("*.layout")):
        text = without_digest(shipped.read_text())
        disguised = tmp_path / shipped.name
        text = re.sub(r"^(versions|levels) .*\n", "", text, flags=re.M)
        disguised.write_text(re.sub(r"^version .*", f"version {patched.version}", text, flags=re.M))
        check_refusal(run(rbdump, "-p", target.pid, "--offsets", disguised), NOT_RUBY, "self-test")
    assert is_untouched(target.pid)


def test_miniruby(folder, patched, start, rbdump):
    """The Ruby that builds Ruby: another program of the same version, without what is made with its help."""
    miniruby = dataclasses.replace(patched, path=str(folder / "bin/miniruby"), elf=str(folder / "bin/miniruby"))
    target = start(miniruby, "cfuncs.rb")
    check(dump(rbdump, target.pid), target, miniruby)
    assert target.release() == 0
