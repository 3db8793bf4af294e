"""Golden cores: made once, of Rubies that need not be here, and read by the layouts of offsets.d/ alone."""

import re
import subprocess

import pytest
from harness.core import forget_pointers, read_core
from harness.dump import run, says_version
from harness.golden import GOLDEN, check_golden, golden_told, unpack_golden

NOT_RUBY = 3
CORES = sorted(GOLDEN.glob("*.core.zst"))


def test_there_are_cores():
    assert [path.name for path in CORES] == ["2.7.core.zst", "3.1.core.zst", "3.3.core.zst", "3.4.core.zst"]


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.name.removesuffix(".core.zst"))
def test_golden_core(path, rbdump, tmp_path, monkeypatch):
    """Every thread and frame as Ruby told it; no executable, no symbol, no debug info."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = golden_told(path.name.removesuffix(".core.zst"))
    answer = read_core(rbdump, path, "--ruby-version", expected["version"])
    check_golden(answer, expected)
    assert answer["layout"]["source"] == "version"


# Who says which Ruby it is: since 3.3 its own data has its description; else layouts are told apart by the self-test.
SOURCES = {
    "2.7": ("fits", ["2.7.0 2.7.8"]),
    "3.1": ("fits", ["3.1.0 3.1.4"]),
    "3.3": ("memory", None),
    "3.4": ("memory", None),
}


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.name.removesuffix(".core.zst"))
def test_golden_core_of_no_known_version(path, rbdump, tmp_path, monkeypatch):
    """The same is shown if nobody says which Ruby it is, and it is said how that was found out."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    series = path.name.removesuffix(".core.zst")
    version = golden_told(series)["version"]
    answer = read_core(rbdump, path)
    assert (answer["ruby_version_source"], answer["ruby_versions_fit"]) == SOURCES[series]
    assert says_version(answer, version)
    given = read_core(rbdump, path, "--ruby-version", version)
    assert given["ruby_version_source"] == ("given" if SOURCES[series][0] == "fits" else "memory")
    assert given["threads"] == answer["threads"]


def test_what_a_heap_says(rbdump, tmp_path, monkeypatch):
    """
    A text of rbconfig.rb is a hint: the user knows better, and it may be about another Ruby. Two that do not agree tell
    nothing.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    core = unpack_golden("2.7", tmp_path)
    content = bytearray(core.read_bytes())
    # Room in the middle of memory that nothing has written to: the last there is.
    room = content.rindex(bytes(1024)) + 256

    def say(at, version):
        text = f"ruby lib version ({version}) doesn't match executable version (".encode()
        content[at : at + len(text)] = text
        core.write_bytes(content)

    say(room, "2.7.5")
    answer = read_core(rbdump, core)
    assert (answer["ruby_version"], answer["ruby_version_source"]) == ("2.7.5", "memory")

    def told_as_given():
        answer = read_core(rbdump, core, "--ruby-version", "2.7.4")
        assert answer["ruby_version_source"] == "given"
        check_golden(answer, golden_told("2.7"))

    def told_as_fits():
        answer = read_core(rbdump, core)
        assert (answer["ruby_version_source"], answer["ruby_versions_fit"]) == SOURCES["2.7"]

    told_as_given()
    say(room + 256, "3.3.8")
    told_as_fits()
    told_as_given()
    for other in ["3.3.8", "2.6.3", "9.9.9"]:
        say(room, other)
        say(room + 256, other)
        told_as_fits()
        told_as_given()


def test_several_layouts_fit(rbdump, tmp_path, monkeypatch):
    """All that show the same are named. If one does not, none is shown: which is right cannot be known."""
    path = next(path for path in CORES if path.name.startswith("2.7"))
    text = (GOLDEN.parent.parent / "offsets.d/2.7.4-x86_64.layout").read_text()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RBDUMP_OFFSETS_D", str(tmp_path))
    other = re.sub(r"^versions .*\n", "", text, flags=re.M).replace("\nversion 2.7.4\n", "\nversion 2.7.99\n")
    (tmp_path / "other.layout").write_text(other)
    answer = read_core(rbdump, path)
    assert answer["ruby_versions_fit"] == ["2.7.99", "2.7.0 2.7.8"]
    first = run(rbdump, "--core", path).stdout.splitlines()[0]
    assert "ruby 2.7.99 or 2.7.0 to 2.7.8 (the core does not name the release" in first

    # More fit than are compared.
    for patch in range(90, 98):
        (tmp_path / f"{patch}.layout").write_text(other.replace("\nversion 2.7.99\n", f"\nversion 2.7.{patch}\n"))
    done = run(rbdump, "--core", path)
    assert (done.returncode, done.stdout) == (NOT_RUBY, "")
    assert "the layouts for 2.7.99, 2.7.97, " in done.stderr and "fit, and other layouts fit, too; rbdump cannot compare so many layouts;" in done.stderr
    for patch in range(90, 98):
        (tmp_path / f"{patch}.layout").unlink()

    # A layout that does not know of threads' names: it fits, too.
    other = re.sub(r"^(digest|member rb_thread_struct.name) .*\n", "", other, flags=re.M)
    other = re.sub(r"^end (\d+)$", lambda end: f"end {int(end[1]) - 1}", other, flags=re.M)
    (tmp_path / "other.layout").write_text(other)
    done = run(rbdump, "--core", path)
    assert (done.returncode, done.stdout) == (NOT_RUBY, "")
    assert "the layouts for 2.7.99, 2.7.0 to 2.7.8 fit, but give different results" in done.stderr


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.name.removesuffix(".core.zst"))
def test_golden_core_tells_nothing_of_its_maker(path):
    """Paths of neutral folders only, and no environment."""
    content = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True, timeout=60).stdout
    assert not [word for word in (b"/root", b"/home", b"/tmp/", b"/nix/", b"HOME=", b"PATH=/", b"USER=") if word in content]


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.name.removesuffix(".core.zst"))
def test_core_without_thread_pointers(path, rbdump, tmp_path, monkeypatch):
    """All threads and frames; each with the native thread that it had, or with none: never with another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    series = path.name.removesuffix(".core.zst")
    expected = golden_told(series)
    before = read_core(rbdump, path, "--ruby-version", expected["version"])
    core = unpack_golden(series, tmp_path)
    assert forget_pointers(core) > 1
    answer = read_core(rbdump, core, "--ruby-version", expected["version"])
    check_golden(answer, expected)
    assert [{**thread, "tid": None, "waits": None} for thread in answer["threads"]] == [
        {**thread, "tid": None, "waits": None} for thread in before["threads"]
    ]
    known = {thread["thread"]: thread["tid"] for thread in before["threads"]}
    tids = {thread["thread"]: thread["tid"] for thread in answer["threads"]}
    calls = {thread["tid"]: thread["waits"]["syscall"] for thread in before["threads"]}
    # These cores lack most pages of a stack, and so what joins a pthread_t to a stack pointer: test_core_frames.py has
    # whole ones.
    assert all(tid in (known[thread], None) for thread, tid in tids.items())
    assert all(thread["waits"]["syscall"] == (calls[thread["tid"]] if thread["tid"] else None) for thread in answer["threads"])
