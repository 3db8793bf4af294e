"""--nearest: a Ruby whose own layout is not there is shown right, and marked, or refused; never by itself."""

import contextlib
import gzip
import json
import re
import shutil

import pytest
from conftest import note_not_applicable, note_too_old
from harness.core import read_core
from harness.dump import check, dump, run
from harness.golden import GOLDEN, check_golden, golden_told
from harness.layouts import CONFIGURATIONS, SHIPPED, claimed, release, shipped_for
from harness.process import is_untouched, wait_until_it_reads
from harness.stripped import stripped_copy
from harness.target import Target, needs

NOT_RUBY, USAGE = 3, 64
LAYOUTS = SHIPPED + [path for paths in CONFIGURATIONS.values() for path in paths]
CORES = sorted(path.name.removesuffix(".core.zst") for path in GOLDEN.glob("*.core.zst"))


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
    """Starts targets on a copy of a Ruby without symbols and debug info: no layout can be made of it."""
    with contextlib.ExitStack() as stack:
        copy = stack.enter_context(stripped_copy(ruby, tmp_path))

        def start(script):
            return stack.enter_context(contextlib.closing(Target(copy.ruby.path, script, environment=copy.environment)))

        yield start


def put_others(folder, version):
    """Every shipped layout that is for another release."""
    for path in LAYOUTS:
        first, last = claimed(path.read_text())
        if not first[:3] <= release(version) <= last[:3]:
            shutil.copy(path, folder)


def next_release(version):
    *series, patch = release(version)
    return ".".join(map(str, [*series, patch + 1]))


def as_of(text, version, without=None):
    """A layout as if a person had made it for another release; without a member of that name."""
    text = re.sub(r"^(digest|versions|levels) .*\n", "", text, flags=re.M)
    text = re.sub(r"^version .*", f"version {version}", text, flags=re.M)
    if without:
        text, count = re.subn(rf"^member {re.escape(without)} .*\n", "", text, flags=re.M)
        text = re.sub(r"^end (\d+)$", lambda end: f"end {int(end[1]) - count}", text, flags=re.M)
        assert count == 1
    return text


def own_layout(ruby):
    path = shipped_for(ruby.version)
    if not path:
        note_not_applicable(f"--nearest on {ruby.id}: no layout is shipped for {ruby.version}")
        pytest.skip("no layout is shipped for it")
    return path.read_text()


def refused(done, *words):
    assert (done.returncode, done.stdout) == (NOT_RUBY, ""), done.stdout + done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def mark_of(version, releases):
    return f"layout: of {releases}, the nearest to {version}; the layout was not made for this release"


# ---- live


@pytest.mark.outer_rubies
@pytest.mark.target("waits.rb")
@pytest.mark.parametrize("script", ["waits.rb", "names.rb", "blocks.rb"], ids=lambda script: script.removesuffix(".rb"))
def test_own_layout_taken_away(ruby, stripped, alone, script):
    """All others are there: what fits shows every frame as Ruby tells it; what does not is refused."""
    program, folder = alone
    own_layout(ruby)
    put_others(folder, ruby.version)
    target = stripped(script)
    refused(run(program, "-p", target.pid), f"there is no layout for Ruby {ruby.version}", "or give --nearest")
    done = run(program, "-p", target.pid, "--nearest", "--json")
    if done.returncode == NOT_RUBY:
        refused(done, f"there is no layout for Ruby {ruby.version}", "of the nearest layouts (", " because ")
        assert "give --nearest" not in done.stderr
    else:
        answer = json.loads(done.stdout)
        assert answer["layout"]["source"] == "nearest"
        assert ruby.version not in answer["layout"]["releases"].split(" ")
        check(answer, target, ruby)
        heap = run(program, "heap", "--why", "Object", target.pid, "--nearest")
        note = f"The layout was not made for this release, but for {answer['layout']['releases']}: "
        assert (heap.returncode == 0) == (note in heap.stdout), heap.stdout + heap.stderr
    assert is_untouched(target.pid)
    assert target.release() == 0


SAME_FACTS = ["blocks.rb", "bodies.rb", "evals.rb", "fibers_suspended.rb", "methods.rb", "name_rules.rb", "names.rb"]
SAME_FACTS += ["ractor.rb", "refinements.rb", "rescues.rb", "svar.rb", "threads.rb"]


@pytest.mark.three_rubies
@pytest.mark.parametrize("script", SAME_FACTS, ids=lambda script: script.removesuffix(".rb"))
def test_same_facts(ruby, stripped, alone, script):
    """What is asked of a layout for another release beyond the usual is true of Ruby, whatever its methods are called."""
    program, folder = alone
    if ruby.series < needs(script):
        note_too_old(script, ruby, needs(script))
        return
    (folder / "other.layout").write_text(as_of(own_layout(ruby), next_release(ruby.version)))
    target = stripped(script)
    answer = dump(program, target.pid, "--nearest")
    check(answer, target, ruby)
    assert answer["layout"]["source"] == "nearest"
    assert target.release() == 0


@pytest.mark.three_rubies
@pytest.mark.target("waits.rb")
def test_marked_everywhere(ruby, stripped, alone, tmp_path):
    """One with the same facts, for the next release: it is used where that is asked for, and all output says so."""
    program, folder = alone
    other = next_release(ruby.version)
    (folder / "other.layout").write_text(as_of(own_layout(ruby), other))
    target = stripped("waits.rb")
    refused(run(program, "-p", target.pid), "there is no layout for", f"or give --nearest: rbdump then tries the nearest layouts")
    mark = mark_of(ruby.version, other)
    remark = f"layout of {other}, which is nearest to {ruby.version}, but was not made for this release"
    for more, mode in (([], "paused"), (["--no-stop"], "unpaused")):
        answer = dump(program, target.pid, "--nearest", *more)
        check(answer, target, ruby, mode)
        assert answer["layout"]["source"] == "nearest"
        assert answer["layout"]["releases"] == other
        assert answer["layout"]["file"] == str(folder / "other.layout")
        text = run(program, "-p", target.pid, "--nearest", *more)
        assert text.returncode == 0
        assert text.stdout.splitlines()[2] == mark.replace("layout", "Layout", 1)

    recording = tmp_path / "recording"
    refused(run(program, "record", "-p", target.pid, "-d", "0.3", "-o", recording), "there is no layout for", "give --nearest")
    done = run(program, "record", "-p", target.pid, "-d", "0.3", "-o", recording, "--nearest")
    assert done.returncode == 0
    assert f"rbdump reads process {target.pid} with the layout of another release" in done.stderr
    for name in ("summary", "flamegraph", "speedscope", "pprof", "firefox", "callgrind", "json"):
        output = tmp_path / name
        done = run(program, "report", "--idle", "-f", name, "-o", output, recording)
        assert done.returncode == 0, done.stderr
        content = output.read_bytes()
        content = (gzip.decompress(content) if name == "pprof" else content).decode("utf-8", "replace")
        if name == "json":
            (process,) = json.loads(content)["processes"]
            assert process["layout"] == {"source": "nearest", "releases": other}
        else:
            assert f"process {target.pid}: {remark}" in content, name

    done = run(program, "experiment", "-p", target.pid, "-n", 5)
    refused(done, "there is no layout for", "give --nearest")
    done = run(program, "experiment", "-p", target.pid, "-n", 5, "--nearest", "--json", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    assert remark in done.stdout
    assert json.loads((tmp_path / "report").read_text())["layout"] == {"source": "nearest", "releases": other}
    assert is_untouched(target.pid)


@pytest.mark.target("waits.rb")
def test_several_fit(ruby, stripped, alone):
    """The nearest is used if all that fit show the same. If one does not, none is: which is right cannot be known."""
    program, folder = alone
    own = own_layout(ruby)
    near, far = next_release(ruby.version), next_release(next_release(ruby.version))
    (folder / "near.layout").write_text(as_of(own, near))
    (folder / "far.layout").write_text(as_of(own, far))
    target = stripped("waits.rb")
    answer = dump(program, target.pid, "--nearest")
    check(answer, target, ruby)
    assert answer["layout"]["releases"] == near
    # A layout that does not know of threads' names: it fits, too.
    (folder / "far.layout").write_text(as_of(own, far, without="rb_thread_struct.name"))
    for more in ([], ["--no-stop"]):
        refused(
            run(program, "-p", target.pid, "--nearest", *more),
            f"the nearest layouts for {near} and for {far} both fit, but give different results: "
            "it is not known which layout is right",
        )
    refused(run(program, "record", "-p", target.pid, "-d", "0.3", "-o", folder / "recording", "--nearest"), "both fit")
    assert is_untouched(target.pid)


@pytest.mark.target("waits.rb")
def test_where_there_is_a_layout(ruby, stripped, alone):
    """Nothing is other, and nothing is marked."""
    program, folder = alone
    own_layout(ruby)
    shutil.copy(shipped_for(ruby.version), folder)
    target = stripped("waits.rb")
    wait_until_it_reads(target.pid)

    def printed(*more):
        answer = dump(program, target.pid, *more)
        assert (answer["layout"]["source"], answer["layout"]["releases"]) == ("version", None)
        for thread in answer["threads"]:
            del thread["waits"]["syscall"]  # what the kernel tells is of no layout, and the time that remains passes
        return {key: value for key, value in answer.items() if key not in ("pause_us", "pauses")}

    assert printed() == printed("--nearest")
    assert "Layout:" not in run(program, "-p", target.pid, "--nearest").stdout


# ---- cores


@pytest.mark.parametrize("series", CORES)
def test_core(series, alone):
    """Of a core, too: right and marked through the same facts, refused through all others."""
    program, folder = alone
    told = golden_told(series)
    core = GOLDEN / f"{series}.core.zst"
    arguments = ("--core", core, "--ruby-version", told["version"])
    other = next_release(told["version"])
    (folder / "other.layout").write_text(as_of(shipped_for(told["version"]).read_text(), other))
    refused(run(program, *arguments), "there is no layout for", "give --nearest")
    answer = read_core(program, *arguments[1:], "--nearest")
    check_golden(answer, told)
    assert (answer["layout"]["source"], answer["layout"]["releases"]) == ("nearest", other)
    assert mark_of(told["version"], other).replace("layout", "Layout", 1) in run(program, *arguments, "--nearest").stdout

    (folder / "other.layout").unlink()
    put_others(folder, told["version"])
    done = run(program, *arguments, "--nearest", "--json")
    if done.returncode == NOT_RUBY:
        refused(done, "of the nearest layouts (")
    else:
        assert json.loads(done.stdout)["layout"]["source"] == "nearest"
        check_golden(json.loads(done.stdout), told)


@pytest.mark.parametrize("struct", ["st_table_entry", "rb_iseq_constant_body", "rb_thread_struct", "RClass", "rb_objspace"])
def test_core_of_a_release_that_has_moved_members(struct, alone):
    """As a patch release may do it: all that is in a struct is 8 bytes further, or from its second member on."""
    program, folder = alone
    told = golden_told("3.1")
    own = as_of(shipped_for(told["version"]).read_text(), next_release(told["version"]))
    offsets = sorted({int(offset) for offset in re.findall(rf"^member {struct}\.\S+ (\d+) ", own, re.M)})

    def moved(after):
        def further(line):
            return f"{line[1]}{int(line[2]) + 8 * (int(line[2]) >= after)} "

        text = re.sub(rf"^(member {struct}\.\S+ )(\d+) ", further, own, flags=re.M)
        return re.sub(rf"^(size {struct}) (\d+)$", lambda size: f"{size[1]} {int(size[2]) + 8}", text, flags=re.M)

    for after in offsets[:2]:
        (folder / "moved.layout").write_text(moved(after))
        done = run(program, "--core", GOLDEN / "3.1.core.zst", "--ruby-version", told["version"], "--nearest")
        refused(done, "none of the nearest layouts (1 tried) fits")


# ---- when it cannot help, and usage


def test_nothing_is_near(alone):
    """The option is not named, and says so if it is given."""
    program, folder = alone
    arguments = ("--core", GOLDEN / "3.1.core.zst", "--ruby-version", "3.1.2")
    refused(run(program, *arguments), "there is no layout for Ruby 3.1.2")
    assert "--nearest" not in run(program, *arguments).stderr
    refused(run(program, *arguments, "--nearest"), "there is also no layout for a nearby release")


@pytest.mark.parametrize("verb", [["-p", "1"], ["--core", "x"], ["record", "-p", "1"], ["experiment", "-p", "1"]], ids=" ".join)
def test_usage(rbdump, verb):
    done = run(rbdump, *verb, "--nearest", "--offsets", "x")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "do not give both --offsets and --nearest" in done.stderr


def test_usage_of_gen_offsets(rbdump):
    done = run(rbdump, "--gen-offsets", "/bin/true", "--nearest")
    assert (done.returncode, done.stdout) == (USAGE, "")
