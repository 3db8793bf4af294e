"""The layouts of offsets.d/: which releases they claim, and that they say what those releases' sources say."""

import datetime
import functools
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import check, dump, run
from harness.layouts import CONFIGURATIONS, SHIPPED, claimed, compared, digest_of, header, release, release_of, shipped_for
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
    assert first[:2] == last[:2] and first <= release(release_of(text)) <= last
    assert path.name in (f"{header(text, 'version')}-x86_64.layout", f"{release_of(text)}-x86_64.layout")
    assert header(text, "build-id") is None
    assert not re.search(r"[ =]/", text), "a path of the machine that it was made on"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_says_where_it_is_from(path):
    """A tag and a commit; the description is that release's own, of its day, and not of the day that it was compiled."""
    text = path.read_text()
    tag, commit, day, _ = compared()[release_of(text)]
    assert header(text, "origin") == f"{tag} {commit}"
    assert tag in (re.sub("[.p]", "_", f"v{release_of(text)}"), f"v{release_of(text)}")
    assert re.fullmatch("[0-9a-f]{40}", commit)
    described = re.fullmatch(
        r"ruby ([0-9.]+)(?:p[0-9]+)? \(([0-9-]{10})(?: revision ([0-9a-f]{10}))?\) (?:\+PRISM )?\[x86_64-linux\]",
        header(text, "description"),
    )
    assert described[1] == header(text, "version")
    apart = datetime.date.fromisoformat(described[2]) - datetime.date.fromisoformat(day)
    assert abs(apart) <= datetime.timedelta(days=3), "of another day than the tag"
    # Until 2.6 a revision was one of Subversion, and is not in the sources.
    assert (described[3] is None) == (claimed(text)[0] < (2, 7))
    assert commit.startswith(described[3] or "")
    assert header(text, "source") and header(text, "asked")


def test_every_claimed_release_was_compared():
    """What each release's own sources or build came to, is what the file says that claims it; and none is left out."""
    releases = {release(name): digest for name, (*_, digest) in compared().items()}
    texts = [path.read_text() for path in SHIPPED]
    for text in texts:
        first, last = claimed(text)
        inside = {one for one in releases if len(one) == len(first) and first <= one <= last}
        if len(first) == 3:
            assert inside == {(*first[:2], patch) for patch in range(first[2], last[2] + 1)}
        assert {first, last} <= inside
        assert {releases.pop(one) for one in inside} == {digest_of(text)}
    assert not releases, "claimed by no file"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_digest_is_of_all_facts(path):
    text = path.read_text()
    assert header(text, "digest") == digest_of(text)
    assert f"end {len(facts(text))}" == text.splitlines()[-1], "a kind of fact that tests do not compare"


def test_no_release_is_claimed_twice():
    ranges = sorted(claimed(path.read_text()) for path in SHIPPED)
    assert all(before[1] < after[0] for before, after in zip(ranges, ranges[1:]))


def test_neighbours_differ():
    """Two files of one series, one after the other, are two because they say different things."""
    ranges = sorted((claimed(path.read_text()), digest_of(path.read_text())) for path in SHIPPED)
    for ((_, last), before), ((first, _), after) in zip(ranges, ranges[1:]):
        follows = first[:3] == last[:3] or first == (*last[:2], last[2] + 1)
        assert not follows or before != after


# ---- other configurations


def test_configurations_are_there():
    """2.7 to 3.4 take _setjmp where they are compiled with -fcf-protection (configure.ac)."""
    assert set(CONFIGURATIONS) == {"setjmp"}
    series = {release(header(path.read_text(), "version"))[:2] for path in CONFIGURATIONS["setjmp"]}
    assert {(2, 7), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)} <= series


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_configuration(configuration):
    """Each file says what it is for, where it is from, and what that release's own sources came to."""
    releases = compared(configuration)
    for path in CONFIGURATIONS[configuration]:
        text = path.read_text()
        version = header(text, "version")
        assert path.name == f"{version}-x86_64-{configuration}.layout"
        assert header(text, "configuration") == configuration
        assert header(text, "digest") == digest_of(text)
        assert header(text, "build-id") is None
        assert not re.search(r"[ =]/", text), "a path of the machine that it was made on"
        first, last = claimed(text)
        inside = {name for name in releases if first <= release(name) <= last}
        assert {release(name) for name in inside} == {(*first[:2], patch) for patch in range(first[2], last[2] + 1)}
        assert {releases[name][-1] for name in inside} == {digest_of(text)}
        assert header(text, "origin") == " ".join(releases[version][:2])
        # The tags are those of the default configuration; the facts are others, of the same members.
        assert all(releases[name][:3] == compared()[name][:3] for name in inside)
        default = facts(shipped_for(version).read_text())
        assert facts(text) != default
        assert {line.split(" ")[1] for line in facts(text)} == {line.split(" ")[1] for line in default}


# ---- sources


def check_as_built(text, source, rbdump):
    """Every size, member, enumerator and constant of a built Ruby is what its sources give, and no other."""
    built = [ruby for ruby in RUBIES if ruby.id == source.id and ruby.has_debug]
    if not built:
        note_not_applicable(f"{source.id}: it was not built")
        return
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


def check_from_headers(whole, source, rbdump, folder):
    """What no header has is named; with the sources that have it, the layout says what it has as the whole tree does."""

    def make(*arguments):
        return subprocess.run(
            [sys.executable, FROM_SOURCE, tree, "--build", source.build(), "--rbdump", rbdump, "-o", "-", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    tree = headers_only(source, folder)
    done = make()
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "is missing" in done.stderr
    done = make(*[f"--unit={source.path / name}" for name in ("st.c", "iseq.c", "gc.c", "vm_backtrace.c")])
    assert done.returncode == 0, done.stderr
    assert set(facts(done.stdout)) <= set(facts(whole))
    assert header(done.stdout, "version") == header(whole, "version")


@pytest.mark.long
@pytest.mark.newest_ruby
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.id)
def test_sources_agree(source, rbdump, tmp_path):
    """
    The file that claims a release says what the release's sources say; and so does what was built of them, and what there is
    without most of them. All in one test: to compile them takes long.
    """
    text = from_source(rbdump, source)
    version = release_of(text)
    shipped = shipped_for(version)
    if shipped:
        assert facts(text) == facts(shipped.read_text())
        assert compared()[version][-1] == header(text, "digest")
    else:
        note_not_applicable(f"{source.id}: no layout is shipped for {version}")
    if source.configured:
        check_as_built(text, source, rbdump)
        check_from_headers(text, source, rbdump, tmp_path)


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


DESCRIPTION = b"ruby 9.8.7 (1999-12-31 a test) [nowhere]"


@pytest.fixture
def programs(tmp_path):
    """Makes programs of a Ruby that never was: of any release, with packed structs or not, with a revision or not."""
    whole = {}

    def make(version, packed=False, revision=""):
        if packed not in whole:
            folder = tmp_path / f"packed-{packed}"
            folder.mkdir()
            flags = ["-fpack-struct=4"] if packed else []
            whole[packed] = compile_program(folder, "-gdwarf-5", "-O1", *flags).read_bytes()
        path = tmp_path / f"ruby-{version}-{packed}-{revision}"
        description = f"ruby {version} (1999{revision and ' revision ' + revision})".encode()
        assert len(description) < len(DESCRIPTION)
        described = whole[packed].replace(DESCRIPTION, description.ljust(len(DESCRIPTION), b"\0"))
        path.write_bytes(described.replace(b"9.8.7", version.split("p")[0].encode()))
        return path

    return make


def commit_of(release):
    return release.replace(".", "").replace("p", "").ljust(40, "0")


def seeded(folder, *releases):
    """A folder in which the tags of some releases are known."""
    folder.mkdir()
    text = "".join(f"{name} v{name} {commit_of(name)} 1999-12-31 0\n" for name in releases)
    (folder / "releases").write_text(f"# a comment\n{text}")
    return folder


def put(rbdump, folder, *inputs):
    return subprocess.run(
        [sys.executable, RANGES, "--rbdump", rbdump, "-d", folder, *inputs],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def listed(folder):
    """{release: the other words of its line}"""
    lines = (folder / "releases").read_text().splitlines()
    assert lines[0].startswith("# ")
    return {words[0]: words[1:] for words in (line.split(" ") for line in lines[1:])}


def test_ranges(programs, rbdump, tmp_path):
    """The same, another, the same as at first, and one behind a gap; the one that was named first stands for them."""
    names = [f"9.8.{patch}" for patch in (2, 1, 3, 4, 5, 6, 9)]
    folder = seeded(tmp_path / "offsets.d", "9.7.2", "9.8.7", *names)
    for name in ("9.8.2-x86_64.layout", "9.8.6-x86_64-00ff.layout", "9.7.2-x86_64.layout"):
        (folder / name).write_text("what was there\n")
    inputs = [programs(name, packed=name == "9.8.4") for name in names]
    done = put(rbdump, folder, *inputs, inputs[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "9.8.1 to 9.8.3: 9.8.2-x86_64.layout, of 3",
        "9.8.4 to 9.8.4: 9.8.4-x86_64.layout, of 1",
        "9.8.5 to 9.8.6: 9.8.5-x86_64.layout, of 2",
        "9.8.9 to 9.8.9: 9.8.9-x86_64.layout, of 1",
    ]
    texts = {path.name: path.read_text() for path in folder.glob("*.layout")}
    assert texts.pop("9.8.6-x86_64-00ff.layout") == texts.pop("9.7.2-x86_64.layout") == "what was there\n"
    assert {name: header(text, "versions") for name, text in texts.items()} == {
        "9.8.2-x86_64.layout": "9.8.1 9.8.3",
        "9.8.4-x86_64.layout": None,
        "9.8.5-x86_64.layout": "9.8.5 9.8.6",
        "9.8.9-x86_64.layout": None,
    }
    said = listed(folder)
    assert list(said) == ["9.7.2", *sorted(names)], "those of another series stay, and one that was not given goes"
    assert said["9.7.2"] == ["v9.7.2", commit_of("9.7.2"), "1999-12-31", "0"]
    for path in inputs:
        version = header(generated(rbdump, path), "version")
        (found,) = [text for text in texts.values() if claimed(text)[0] <= release(version) <= claimed(text)[1]]
        assert facts(found) == facts(generated(rbdump, path))
        assert said[version] == [f"v{version}", commit_of(version), "1999-12-31", digest_of(found)]
        made_from = header(found, "version")
        assert header(found, "origin") == f"v{made_from} {commit_of(made_from)}"


def test_patch_levels(programs, rbdump, tmp_path):
    """Until 2.0.0 a release is a patch level of its version; the newest file has the plain name."""
    names = ["1.9.3p5", "1.9.3p0", "1.9.3p12", "2.0.0p0"]
    folder = seeded(tmp_path / "offsets.d", *names)
    done = put(rbdump, folder, *(programs(name, packed=name == "1.9.3p12") for name in names))
    assert (done.returncode, done.stderr) == (0, "")
    texts = {path.name: path.read_text() for path in folder.glob("*.layout")}
    words = ("version", "levels", "versions")
    assert {name: tuple(header(text, word) for word in words) for name, text in texts.items()} == {
        "1.9.3p5-x86_64.layout": ("1.9.3", "0 5", None),
        "1.9.3-x86_64.layout": ("1.9.3", "12 12", None),
        "2.0.0-x86_64.layout": ("2.0.0", "0 0", None),
    }
    assert header(texts["1.9.3p5-x86_64.layout"], "origin") == f"v1.9.3p5 {commit_of('1.9.3p5')}"
    assert list(listed(folder)) == sorted(names, key=release)
    # They can be read, and are listed so.
    said = subprocess.run(
        [rbdump, "--version"],
        env={"RBDUMP_OFFSETS_D": str(folder)}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    mine = [re.split("  +", line, maxsplit=1) for line in said.stdout.splitlines() if str(folder) in line]
    assert mine == [
        ["1.9.3p12", f"x86_64  {folder}/1.9.3-x86_64.layout"],
        ["1.9.3p0 to 1.9.3p5", f"x86_64  {folder}/1.9.3p5-x86_64.layout"],
        ["2.0.0p0", f"x86_64  {folder}/2.0.0-x86_64.layout"],
    ]


def test_tags_of_a_repository(programs, rbdump, tmp_path):
    repository, folder = tmp_path / "repository", seeded(tmp_path / "offsets.d")
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    for name in ("AUTHOR", "COMMITTER"):
        quiet |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@b", f"GIT_{name}_DATE": "2001-02-03T04:05:06Z"}

    def git(*words):
        done = subprocess.run(["git", *words], env=quiet, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    git("init", "-q", repository)
    git("-C", repository, "commit", "-q", "--allow-empty", "-m", "a")
    git("-C", repository, "tag", "v9_8_1")
    git("-C", repository, "tag", "-a", "-m", "with a message", "v9.8.2")
    commit = git("-C", repository, "rev-parse", "HEAD")
    plain, knows = programs("9.8.1"), programs("9.8.1", revision=commit[:10])
    done = put(rbdump, folder, "--repository", repository, plain, knows, programs("9.8.2"))
    assert (done.returncode, done.stderr) == (0, "")
    said = listed(folder)
    assert said["9.8.1"][:3] == ["v9_8_1", commit, "2001-02-03"]
    assert said["9.8.2"][:3] == ["v9.8.2", commit, "2001-02-03"]
    text = (folder / "9.8.1-x86_64.layout").read_text()
    assert header(text, "origin") == f"v9_8_1 {commit}"
    assert commit[:10] in header(text, "description"), "of those of one release, the one that has the revision"

    # What is known once needs no repository; what is of another commit, or of no tag, is refused.
    assert put(rbdump, folder, plain, programs("9.8.2")).returncode == 0
    done = put(rbdump, folder, programs("9.8.1", revision="0123456789"))
    assert done.returncode == FAILED and f"revision 0123456789, and v9_8_1 is {commit}" in done.stderr
    for more in ([], ["--repository", repository], ["--repository", tmp_path]):
        done = put(rbdump, folder, *more, programs("9.8.3"))
        assert done.returncode == FAILED and "the tag of 9.8.3 is not known" in done.stderr
    assert listed(folder) == said


def test_inputs_that_contradict_each_other(programs, rbdump, tmp_path):
    folder = tmp_path / "offsets.d"
    folder.mkdir()
    done = put(rbdump, folder, programs("9.8.1"), programs("9.8.2"), programs("9.8.2", packed=True))
    assert (done.returncode, done.stdout, list(folder.iterdir())) == (FAILED, "", [])
    assert "are both 9.8.2, and differ: " in done.stderr
    done = put(rbdump, folder, programs("9.8.1"), "/bin/true")
    assert (done.returncode, done.stdout, list(folder.iterdir())) == (FAILED, "", [])
    done = put(rbdump, folder, programs("1.9.3"))
    assert (done.returncode, done.stdout, list(folder.iterdir())) == (FAILED, "", [])
    assert "has no patch level" in done.stderr


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
    assert f"for the series of this Ruby, there are layouts up to {near(ruby.version, -1)}" in done.stderr
    done = run(program, "-p", stripped.pid, "--offsets", path)
    assert (done.returncode, done.stdout) == (NOT_RUBY, "")
    assert f"but the target is Ruby {ruby.version}" in done.stderr


def test_version_lists_them(rbdump, alone):
    program, folder = alone
    done = run(program, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"rbdump [0-9.]+\n", done.stdout)
    (folder / "bad.layout").write_text("no layout\n")
    (folder / "one.layout").write_text("rbdump-layout 1\narch x86_64\nsource x\nversion 9.8.7\n")
    (folder / "some.layout").write_text("rbdump-layout 1\narch x86_64\nsource x\nversion 9.8.7\nversions 9.8.0 9.8.10\n")
    (folder / "theirs.layout").write_text("rbdump-layout 1\narch x86_64\nbuild-id 00ff\nsource x\nversion 9.8.7\n")
    lines = [re.split("  +", line, maxsplit=1) for line in run(program, "--version").stdout.splitlines()[1:]]
    assert lines[0] == ["?", f"?  {folder}/bad.layout: not a layout file: its first line is not `rbdump-layout 1`"]
    assert lines[1:] == [
        ["9.8.7", f"x86_64  {folder}/one.layout"],
        ["9.8.0 to 9.8.10", f"x86_64  {folder}/some.layout"],
        ["9.8.7", f"x86_64 build 00ff  {folder}/theirs.layout"],
    ]
    # In the order of versions: 3.10 comes after 3.9.
    for version in ("9.10.0", "9.9.0"):
        (folder / f"{version}.layout").write_text(f"rbdump-layout 1\narch x86_64\nsource x\nversion {version}\n")
    listed = run(program, "--version").stdout
    assert listed.index("9.9.0.layout") < listed.index("9.10.0.layout")
    # Those that come with it.
    assert all(str(path) in run(rbdump, "--version").stdout for path in SHIPPED)


def test_installed_with_it(tmp_path):
    """make install puts them where rbdump finds them."""
    subprocess.run(
        ["make", "-C", ROOT, "install", f"DESTDIR={tmp_path}", "prefix=/usr"], check=True, capture_output=True, timeout=600
    )
    listed = run(tmp_path / "usr/bin/rbdump", "--version").stdout
    assert all(str(tmp_path / "usr/share/rbdump/offsets.d" / path.name) in listed for path in SHIPPED)
