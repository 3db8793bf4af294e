"""The layouts of offsets.d/: which releases they claim, and that they say what those releases' sources say."""

import functools
import re
import shutil
import subprocess
import sys

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import check, dump, run
from harness.layouts import SHIPPED, claimed, header, release, shipped_for
from harness.sources import find_sources
from harness.stripped import stripped_copy
from harness.synthetic import ROOT, compile_program, facts
from harness.target import Target

SOURCES = find_sources()
FROM_SOURCE = ROOT / "gen/layout_from_source.py"
RANGES = ROOT / "gen/layout_ranges.py"
FAILED, NOT_RUBY = 2, 3

if not SOURCES:
    note_not_applicable("layouts from sources: tests/rubies/build has unpacked none, and $RBDUMP_TEST_SOURCES is not set")


def generated(rbdump, elf):
    done = run(rbdump, "--gen-offsets", elf, "--any-build", "-o", "-")
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def from_source(rbdump, source):
    """The layout of a Ruby that was not built."""
    if source.path.suffix == ".o":
        return generated(rbdump, source.path)
    done = subprocess.run(
        [sys.executable, FROM_SOURCE, source.path, "--build", source.build(), "--rbdump", rbdump, "-o", "-"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- what is claimed


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_says_what_it_is_for(path):
    text = path.read_text()
    first, last = claimed(text)
    assert first[:2] == last[:2] and first <= release(header(text, "version")) <= last
    assert path.name == f"{header(text, 'version')}-x86_64.layout"
    assert header(text, "build-id") is None
    assert not re.search(r"[ =]/", text), "a path of the machine that it was made on"


def test_no_release_is_claimed_twice():
    ranges = sorted(claimed(path.read_text()) for path in SHIPPED)
    assert all(before[1] < after[0] for before, after in zip(ranges, ranges[1:]))


def test_neighbours_differ():
    """Two files of one series, one after the other, are two because they say different things."""
    ranges = sorted((claimed(path.read_text()), facts(path.read_text())) for path in SHIPPED)
    for ((_, last), before), ((first, _), after) in zip(ranges, ranges[1:]):
        assert (*last[:2], last[2] + 1) != first or before != after


# ---- sources


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.id)
def test_claimed_and_sources_agree(source, rbdump):
    """The file that claims a release says what the release's sources say."""
    text = from_source(rbdump, source)
    version = header(text, "version")
    shipped = shipped_for(version)
    if not shipped:
        note_not_applicable(f"{source.id}: no layout is shipped for {version}")
        return
    assert facts(text) == facts(shipped.read_text())


@pytest.mark.parametrize("source", [source for source in SOURCES if source.configured], ids=lambda source: source.id)
def test_from_source_is_as_built(source, rbdump):
    """Every size, member, enumerator and constant of a built Ruby is what its sources give, and no other."""
    built = [ruby for ruby in RUBIES if ruby.id == source.id and ruby.has_debug]
    if not built:
        note_not_applicable(f"{source.id}: it was not built")
        return
    text = from_source(rbdump, source)
    assert facts(text) == facts(generated(rbdump, built[0].elf))
    assert header(text, "build-id") is None
    assert header(text, "source") == "sources.o"
    assert header(text, "version") == built[0].version
    assert not re.search(r"[ =]/", text), "a path of the machine that it was made on"


def headers_only(source, folder):
    """A copy of a tree that has nothing but headers, and what is included by them."""
    for path in [path for end in ("h", "inc", "dmyh") for path in source.path.rglob(f"*.{end}")]:
        copy = folder / path.relative_to(source.path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("source", [source for source in SOURCES if source.configured], ids=lambda source: source.id)
def test_from_headers(source, rbdump, tmp_path):
    """What no header has is named; with the sources that have it, the layout says what it has as the whole tree does."""

    def make(*arguments):
        return subprocess.run(
            [sys.executable, FROM_SOURCE, tree, "--build", source.build(), "--rbdump", rbdump, "-o", "-", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    tree = headers_only(source, tmp_path)
    done = make()
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "is missing" in done.stderr
    done = make(*[f"--unit={source.path / name}" for name in ("st.c", "iseq.c", "gc.c", "vm_backtrace.c")])
    assert done.returncode == 0, done.stderr
    whole = from_source(rbdump, source)
    assert set(facts(done.stdout)) <= set(facts(whole))
    assert header(done.stdout, "version") == header(whole, "version")


def test_what_is_no_tree(rbdump, tmp_path):
    def refused(words):
        done = subprocess.run(
            [sys.executable, FROM_SOURCE, tmp_path, "--rbdump", rbdump, "-o", "-"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (FAILED, "")
        assert words in done.stderr and "Traceback" not in done.stderr

    refused("there is no vm_core.h in it")
    (tmp_path / "vm_core.h").touch()
    refused("configure it")
    (tmp_path / "include/ruby").mkdir(parents=True)
    (tmp_path / "include/ruby/config.h").touch()
    (tmp_path / "version.c").write_text("#error no version here\n")
    refused("no version here")


# ---- ranges


@pytest.fixture
def programs(tmp_path):
    """Makes programs of a Ruby that never was, of any patch level, and with packed structs or not."""
    whole = {}

    def make(patch, packed=False):
        if packed not in whole:
            folder = tmp_path / f"packed-{packed}"
            folder.mkdir()
            flags = ["-fpack-struct=4"] if packed else []
            whole[packed] = compile_program(folder, "-gdwarf-5", "-O1", *flags).read_bytes()
        path = tmp_path / f"ruby-{patch}-{packed}"
        path.write_bytes(whole[packed].replace(b"9.8.7", f"9.8.{patch}".encode()))
        return path

    return make


def put(rbdump, folder, *inputs):
    return subprocess.run(
        [sys.executable, RANGES, "--rbdump", rbdump, "-d", folder, *inputs],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_ranges(programs, rbdump, tmp_path):
    """The same, another, the same as at first, and one behind a gap; the one that was named first stands for them."""
    folder = tmp_path / "offsets.d"
    folder.mkdir()
    for name in ("9.8.2-x86_64.layout", "9.8.6-x86_64-00ff.layout", "9.7.2-x86_64.layout"):
        (folder / name).write_text("what was there\n")
    inputs = [programs(2), programs(1), programs(3), programs(4, packed=True), programs(5), programs(6), programs(9)]
    done = put(rbdump, folder, *inputs, inputs[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "9.8.1 to 9.8.3: 9.8.2-x86_64.layout, of 3",
        "9.8.4 to 9.8.4: 9.8.4-x86_64.layout, of 1",
        "9.8.5 to 9.8.6: 9.8.5-x86_64.layout, of 2",
        "9.8.9 to 9.8.9: 9.8.9-x86_64.layout, of 1",
    ]
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert texts.pop("9.8.6-x86_64-00ff.layout") == texts.pop("9.7.2-x86_64.layout") == "what was there\n"
    assert {name: header(text, "versions") for name, text in texts.items()} == {
        "9.8.2-x86_64.layout": "9.8.1 9.8.3",
        "9.8.4-x86_64.layout": None,
        "9.8.5-x86_64.layout": "9.8.5 9.8.6",
        "9.8.9-x86_64.layout": None,
    }
    for path in inputs:
        version = header(generated(rbdump, path), "version")
        (found,) = [text for text in texts.values() if claimed(text)[0] <= release(version) <= claimed(text)[1]]
        assert facts(found) == facts(generated(rbdump, path))


def test_inputs_that_contradict_each_other(programs, rbdump, tmp_path):
    folder = tmp_path / "offsets.d"
    folder.mkdir()
    done = put(rbdump, folder, programs(1), programs(2), programs(2, packed=True))
    assert (done.returncode, done.stdout, list(folder.iterdir())) == (FAILED, "", [])
    assert "are both 9.8.2, and differ: " in done.stderr
    done = put(rbdump, folder, programs(1), "/bin/true")
    assert (done.returncode, done.stdout, list(folder.iterdir())) == (FAILED, "", [])


# ---- which layout a Ruby gets


@pytest.fixture
def alone(rbdump, tmp_path, monkeypatch):
    """rbdump without the layouts that come with it, and a folder that it looks for them in."""
    folder = tmp_path / "layouts"
    folder.mkdir()
    monkeypatch.setenv("RBDUMP_OFFSETS_D", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return shutil.copy(rbdump, tmp_path / "rbdump"), folder


@pytest.fixture
def stripped(ruby, tmp_path):
    """A target on a copy of a Ruby without symbols and debug info."""
    with stripped_copy(ruby, tmp_path) as copy:
        target = Target(copy.ruby.path, "cfuncs.rb", environment=copy.environment)
        yield target
        target.close()


def layout_for(ruby, first, last, version):
    """The layout of a Ruby, said to be made from another patch level, and for a range of them; None if there is none."""
    path = shipped_for(ruby.version)
    if not path:
        return None
    lines = [line for line in path.read_text().splitlines() if not line.startswith(("version ", "versions "))]
    at = next(number for number, line in enumerate(lines) if line.startswith("source ")) + 1
    return "\n".join([*lines[:at], f"version {version}", f"versions {first} {last}", *lines[at:]]) + "\n"


def near(version, by):
    *series, patch = release(version)
    return ".".join(map(str, [*series, patch + by]))


def test_range_holds_for_a_ruby(ruby, stripped, alone):
    program, folder = alone
    text = layout_for(ruby, near(ruby.version, 0), near(ruby.version, 2), near(ruby.version, 1))
    if not text:
        note_not_applicable(f"{ruby.id}: no layout is shipped for {ruby.version}")
        return
    path = folder / "of-the-next.layout"
    path.write_text(text)
    answer = dump(program, stripped.pid)
    check(answer, stripped, ruby)
    assert (answer["layout"]["source"], answer["layout"]["file"]) == ("version", str(path))


def test_newer_than_any_range(ruby, stripped, alone):
    """Taken neither when it is looked for nor when it is given: nothing says that it is right."""
    program, folder = alone
    text = layout_for(ruby, near(ruby.version, -1), near(ruby.version, -1), near(ruby.version, -1))
    if not text or release(ruby.version)[2] == 0:
        note_not_applicable(f"{ruby.id}: no layout is shipped for {ruby.version}, or no release is before it")
        return
    path = folder / "of-the-one-before.layout"
    path.write_text(text)
    done = run(program, "-p", stripped.pid)
    assert (done.returncode, done.stdout) == (NOT_RUBY, "")
    assert f"of its series, there are layouts up to {near(ruby.version, -1)}" in done.stderr
    done = run(program, "-p", stripped.pid, "--offsets", path)
    assert (done.returncode, done.stdout) == (NOT_RUBY, "")
    assert f"and the process runs {ruby.version}" in done.stderr


def test_version_lists_them(rbdump, alone):
    program, folder = alone
    done = run(program, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"rbdump [0-9.]+\n", done.stdout)
    (folder / "bad.layout").write_text("no layout\n")
    (folder / "one.layout").write_text("rbdump-layout 1\narch x86_64\nsource x\nversion 9.8.7\n")
    (folder / "some.layout").write_text("rbdump-layout 1\narch x86_64\nsource x\nversion 9.8.7\nversions 9.8.0 9.8.10\n")
    (folder / "theirs.layout").write_text("rbdump-layout 1\narch x86_64\nbuild-id 00ff\nsource x\nversion 9.8.7\n")
    lines = [line.split(None, 1) for line in run(program, "--version").stdout.splitlines()[1:]]
    assert lines[0] == ["?", f"?  {folder}/bad.layout: not a layout file: its first line is not `rbdump-layout 1`"]
    assert lines[1:] == [
        ["9.8.7", f"x86_64  {folder}/one.layout"],
        ["9.8.0-9.8.10", f"x86_64  {folder}/some.layout"],
        ["9.8.7", f"x86_64 build 00ff  {folder}/theirs.layout"],
    ]
    # Those that come with it.
    assert all(str(path) in run(rbdump, "--version").stdout for path in SHIPPED)


def test_installed_with_it(tmp_path):
    """make install puts them where rbdump finds them."""
    subprocess.run(
        ["make", "-C", ROOT, "install", f"DESTDIR={tmp_path}", "prefix=/usr"], check=True, capture_output=True, timeout=600
    )
    listed = run(tmp_path / "usr/bin/rbdump", "--version").stdout
    assert all(str(tmp_path / "usr/share/rbdump/offsets.d" / path.name) in listed for path in SHIPPED)
