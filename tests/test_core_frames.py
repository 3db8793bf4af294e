"""rbdump --core: the stacks in a core are those that Ruby told before it was made, with or without Ruby's own file."""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess

import pytest
from conftest import RUBIES, TESTS, note_not_applicable
from harness.core import (
    Moved,
    Notes,
    build_id,
    check_all,
    copy_of_targets,
    forget_pointers,
    gcore_of,
    kill_for_core,
    mappings_of_core,
    patch,
    read_core,
    running,
)
from harness.dump import as_text, check_thread, run, thread_of, without_waits
from harness.kernel_cores import WHY_NOT, by_the_kernel
from harness.layouts import make_layout, shipped_for
from harness.pinned import pinned_in_a_window
from harness.process import is_untouched
from test_dump import cases

FAILED, NOT_RUBY = 2, 3
NT_PRSTATUS, NT_SIGINFO = 1, 0x53494749

# Of the variants of a Ruby (its JITs, libruby) these targets will do.
VARIED = ["hot.rb", "methods.rb", "name_rules.rb"]
# And these are different enough for the newest Ruby.
USUAL = {"cfuncs.rb", "evals.rb", "fibers.rb", "fork_tree.rb", "names.rb", "ractor.rb", "recursion.rb", "rescues.rb", "threads.rb"}
CASES = [case for case in cases() if not case.variant or case.script in VARIED]


def on_some_rubies(chosen):
    """
    Some targets on the newest Ruby, the varied ones also on the oldest and on Debian's: test_dump.py has all of them on each
    Ruby, and what is read from a core differs by where memory comes from, not by the target. --soak has all.
    """

    def marks(case):
        if case.script in VARIED:
            return []
        return [pytest.mark.newest_ruby] if case.script in USUAL else [pytest.mark.in_soak]

    return [pytest.param(case, marks=marks(case), id=str(case)) for case in chosen]


with_debug = pytest.mark.parametrize(
    "debugged", [ruby for ruby in RUBIES if ruby.has_debug], ids=lambda ruby: ruby.id
)


@pytest.mark.long
@pytest.mark.outer_rubies
@pytest.mark.parametrize("case", on_some_rubies(CASES))
def test_frames_of_gcore(case, rbdump, tmp_path):
    """Every frame of every target; the process goes on."""
    with running(rbdump, case.ruby.path, case.script, flags=case.flags) as target:
        with gcore_of(target.pid, tmp_path) as core:
            answer = read_core(rbdump, core)
            check_all(answer, target, case.ruby)
            assert (answer["core"]["signal"], answer["core"]["lacks"]) == (None, [])
        assert is_untouched(target.pid)
        assert target.release() == 0


@pytest.mark.outer_rubies
@pytest.mark.target("waits.rb")
def test_text_of_gcore(ruby, rbdump, tmp_path):
    with running(rbdump, ruby.path, "waits.rb") as target, gcore_of(target.pid, tmp_path) as core:
        done = run(rbdump, "--core", core, "--all")
        live = run(rbdump, "-p", target.pid, "--all")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, *rest = done.stdout.splitlines()
    assert re.fullmatch(rf"Core of process {target.pid} \(\S+\): ruby {re.escape(ruby.version)}p?.*", first)
    assert re.fullmatch(r"\d+ threads, still running when the core was made", second)
    # The core has the call of each thread, too, but not what its descriptors are, and gdb's stop has interrupted it.
    assert without_waits(rest) == without_waits(live.stdout.splitlines()[2:])
    assert [line for line in rest if line.startswith("  in ")]


@pytest.mark.three_rubies
@pytest.mark.long
@pytest.mark.target("waits.rb")
def test_gcore_without_thread_pointers(ruby, rbdump, tmp_path):
    """As gdb before 8 wrote it: frames, states and native threads are what they are with the pointers."""
    with running(rbdump, ruby.path, "waits.rb") as target, gcore_of(target.pid, tmp_path) as core:
        before = read_core(rbdump, core)
        assert forget_pointers(core) > 1
        after = read_core(rbdump, core)
    assert len({thread["tid"] for thread in before["threads"]}) > 1
    assert after["threads"] == before["threads"]


# ---- cores of the kernel


@by_the_kernel
def test_frames_of_kernel_core(ruby, place, rbdump):
    with running(rbdump, ruby.path, "threads.rb", cwd=place) as target:
        core = kill_for_core(target, place, signal.SIGABRT)
    answer = read_core(rbdump, core)
    check_all(answer, target, ruby)
    told = answer["core"]
    assert (told["signal"], told["signal_name"], told["tid"]) == (signal.SIGABRT, "SIGABRT", target.pid)
    assert (told["address"], told["lacks"]) == (None, [])
    first, second, *_ = run(rbdump, "--core", core).stdout.splitlines()
    assert first.startswith(f"Core of process {target.pid} ({told['program']}): ruby {ruby.version}")
    assert second == f"{len(answer['threads'])} threads, SIGABRT in thread {target.pid}"


@by_the_kernel
def test_frames_after_crash_report(ruby, place, rbdump):
    """Ruby reports its own crash before it aborts. For that, it maps the file that contains it once more, as a whole."""
    with running(rbdump, ruby.path, "threads.rb", cwd=place) as target:
        core = kill_for_core(target, place, signal.SIGSEGV, ends_by=[signal.SIGABRT, signal.SIGSEGV])
    answer = read_core(rbdump, core)
    check_all(answer, target, ruby)
    assert answer["core"]["tid"] == target.pid


@pytest.mark.target("waits.rb")
@by_the_kernel
def test_thread_that_died_first(ruby, place, rbdump):
    with running(rbdump, ruby.path, "waits.rb", cwd=place) as target:
        threads = json.loads(run(rbdump, "-p", target.pid, "--json").stdout)["threads"]
        tid = max(thread["tid"] for thread in threads if not thread["main"])
        core = kill_for_core(target, place, signal.SIGABRT, tid)
    answer = read_core(rbdump, core)
    check_all(answer, target, ruby)
    assert (answer["core"]["signal_name"], answer["core"]["tid"]) == ("SIGABRT", tid)
    assert {thread["tid"] for thread in answer["threads"]} == {thread["tid"] for thread in threads}


@pytest.mark.target("waits.rb")
@by_the_kernel
def test_address_of_a_fault(ruby, place, rbdump):
    """Ruby catches real ones, so that what the kernel writes of one is written into another's core."""
    with running(rbdump, ruby.path, "waits.rb", cwd=place) as target:
        core = kill_for_core(target, place, signal.SIGABRT)
    notes = Notes(core)
    status, info = notes.first(NT_PRSTATUS)[0], notes.first(NT_SIGINFO)[0]
    patch(core, status + 12, struct.pack("<H", signal.SIGSEGV))  # pr_cursig
    patch(core, info, struct.pack("<iiiiQ", signal.SIGSEGV, 0, 1, 0, 0x1234))  # SEGV_MAPERR, si_addr
    answer = read_core(rbdump, core)
    assert (answer["core"]["signal_name"], answer["core"]["address"]) == ("SIGSEGV", "0x1234")
    second = run(rbdump, "--core", core).stdout.splitlines()[1]
    assert second.endswith(f" threads, SIGSEGV at address 0x1234 in thread {target.pid}")


# ---- Ruby's own file is gone


@contextlib.contextmanager
def core_of_moved(rbdump, ruby, script, folder, flags=(), crashes=False):
    """A target on a Ruby that was copied, and is deleted when the core has been made: (target, core, its files)."""
    moved = Moved(ruby, folder)
    place = copy_of_targets(folder)
    # 1.9.3 keeps all signals blocked in a thread that has forked.
    blocked = script == "fork_tree.rb" and ruby.series < (2, 0)
    with running(rbdump, moved.path, script, flags=flags, cwd=place, environment=moved.environment) as target:
        if crashes:
            core = kill_for_core(target, place, signal.SIGSEGV, ends_by=[signal.SIGABRT, signal.SIGSEGV])
            moved.delete()
            yield target, core, moved
        elif WHY_NOT or blocked:
            with gcore_of(target.pid, folder) as core:
                moved.delete()
                yield target, core, moved
        else:
            core = kill_for_core(target, place, signal.SIGABRT)
            moved.delete()
            yield target, core, moved


def layouts_for(ruby, rbdump, folder):
    """The environment in which rbdump finds the layouts that are shipped; of a Ruby that none is for, one that is made."""
    environment = dict(os.environ, XDG_CACHE_HOME=str(folder / "cache"))
    if shipped_for(ruby.version) is None:
        note_not_applicable(f"cores of {ruby.id} without its file, from offsets.d/: none for {ruby.version}; one is made for it")
        made = folder / "made"
        made.mkdir()
        environment["RBDUMP_OFFSETS_D"] = str(make_layout(ruby.elf, rbdump, made))
    return environment


# A JIT changes nothing of where Ruby's words are looked for.
WITHOUT_JITS = [case for case in CASES if case.script != "literals.rb" and case.variant in ("", "shared")]


@pytest.mark.outer_rubies
@pytest.mark.parametrize("case", on_some_rubies(WITHOUT_JITS))
def test_frames_without_the_file(case, rbdump, tmp_path):
    """By the layout for the version: no symbol, no debug info, none of Ruby's own literals."""
    with core_of_moved(rbdump, case.ruby, case.script, tmp_path, case.flags) as (target, core, moved):
        environment = layouts_for(case.ruby, rbdump, tmp_path)
        answer = read_core(rbdump, core, "--ruby-version", case.ruby.version, env=environment)
        check_all(answer, target, case.ruby)
        assert answer["layout"]["source"] == "version"
        assert answer["ruby_version"] == case.ruby.version
        assert answer["ruby_version_source"] in ("given", "memory", "file-name")
        description = answer["ruby_description"]
        assert description is None or description.startswith(f"ruby {case.ruby.version}")
        (lacks,) = answer["core"]["lacks"]
        assert str(moved.folder) in lacks and moved.build_id in lacks

        # The core, or the layouts, tell as much: a given version that they do not confirm is called that.
        untold = read_core(rbdump, core, env=environment)
        check_all(untold, target, case.ruby)
        assert untold["threads"] == answer["threads"]
        assert (untold["ruby_version_source"] == "fits") == (answer["ruby_version_source"] == "given")


@pytest.mark.target("threads.rb")
@by_the_kernel
def test_frames_without_the_file_after_crash_report(ruby, place, rbdump, tmp_path):
    """The file that is missing was mapped twice: where it ran, and to be read."""
    environment = layouts_for(ruby, rbdump, tmp_path)
    with core_of_moved(rbdump, ruby, "threads.rb", place, crashes=True) as (target, core, moved):
        begins = collections.Counter(path for _, offset, path in mappings_of_core(core) if offset == 0)
        assert any(count > 1 and path.startswith(str(moved.folder)) for path, count in begins.items()), begins
        answer = read_core(rbdump, core, "--ruby-version", ruby.version, env=environment)
        check_all(answer, target, ruby)
        assert answer["core"]["tid"] == target.pid


def test_name_that_only_the_file_spells_out(ruby, rbdump, tmp_path):
    """
    A method called like a word of Ruby's C code: its frame is marked, and so is its thread. No other is. Before 2.5 no
    String of a program shares the bytes of that word.
    """
    shares = ruby.series >= (2, 5)
    environment = layouts_for(ruby, rbdump, tmp_path)
    with core_of_moved(rbdump, ruby, "literals.rb", tmp_path) as (target, core, _):
        answer = read_core(rbdump, core, "--ruby-version", ruby.version, status=int(shares), env=environment)
        check_all(read_core(rbdump, core, ruby.elf), target, ruby)
    if not shares:
        check_all(answer, target, ruby)
        return
    told = {as_text(subject["key"]): subject for subject in target.ready["threads"]}
    for key, subject in told.items():
        if key != "once":
            assert not (complaints := check_thread(answer, subject)), complaints
    thread = thread_of(answer, told["once"])
    assert (thread["verdict"], thread["reason"]) == ("truncated", "code-unreadable")
    # Of Queue#pop, in C or in Ruby, of once, and of the block.
    assert [frame["kind"] for frame in thread["frames"]][1:] == ["unreadable", "ruby"]


@with_debug
def test_without_the_file_by_its_build_id(debugged, rbdump, tmp_path):
    """A layout that was made where the debug info is tells all, the version too."""
    layouts = tmp_path / "layouts"
    layouts.mkdir()
    assert run(rbdump, "-g", debugged.elf, "-o", layouts / "one.layout").returncode == 0
    environment = dict(os.environ, XDG_CACHE_HOME=str(tmp_path / "cache"), RBDUMP_OFFSETS_D=str(layouts))
    with core_of_moved(rbdump, debugged, "cfuncs.rb", tmp_path) as (target, core, _):
        answer = read_core(rbdump, core, env=environment)
        check_all(answer, target, debugged)
        assert answer["layout"]["source"] == "build-id"
        given = read_core(rbdump, core, "--offsets", layouts / "one.layout")
        assert given["threads"] == answer["threads"]


# What is in memory, and nowhere else: since 3.3 a description in Ruby's own data, until 2.2 one on the heap.
REMEMBERED = [(3, 3), (2, 2)]


def test_without_the_file_and_any_hint(ruby, rbdump, tmp_path):
    """The version is in the core's memory, or the layouts tell it apart; and it is said which."""
    environment = layouts_for(ruby, rbdump, tmp_path)
    with core_of_moved(rbdump, ruby, "oldest.rb", tmp_path) as (target, core, moved):
        answer = read_core(rbdump, core, env=environment)
        check_all(answer, target, ruby)
        source = answer["ruby_version_source"]
        if ruby.series >= REMEMBERED[0]:
            assert source == "memory" and answer["ruby_description"].startswith(f"ruby {ruby.version}")
        elif ruby.series <= REMEMBERED[1]:
            assert source == "memory"
        elif os.path.realpath(ruby.elf) != os.path.realpath(ruby.path):
            assert source == "file-name"
        else:
            assert source == "fits"
        first = run(rbdump, "--core", core, env=environment).stdout.splitlines()[0]
        said = {"fits": "(the core does not name the release", "file-name": "(from the name", "memory": "(found in the core's memory)"}
        assert said[source] in first

        # With no layout that fits, it is said what is missing, and what would help.
        nowhere = dict(environment, RBDUMP_OFFSETS_D="")
        only = tmp_path / "only"
        (only / "offsets.d").mkdir(parents=True)
        (only / "gen").mkdir()
        (only / "gen/fields.def").touch()
        (only / "build").mkdir()
        done = run(shutil.copy(rbdump, only / "build/rbdump"), "--core", core, env=nowhere)
        assert (done.returncode, done.stdout) == (NOT_RUBY, "")
        assert done.stderr.count("\n") == 1 and "give EXE (the file that ran) after the core" in done.stderr
        assert str(moved.folder) in done.stderr and build_id(ruby.elf) in done.stderr

        # The wrong version is refused: by what Ruby itself says in the core, naming both, else by the self-test. A file's
        # name and a text on the heap are hints, and the user knows better.
        wrong = next(version for version in ("2.7.4", "3.4.5") if version != ruby.version)
        done = run(rbdump, "--core", core, "--ruby-version", wrong, env=environment)
        is_its_own = source == "memory" and ruby.series >= REMEMBERED[0]
        assert (done.returncode, done.stdout) == (FAILED if is_its_own else NOT_RUBY, "")
        assert wrong in done.stderr and "omit --ruby-version" in done.stderr
        if is_its_own:
            assert ruby.version in done.stderr

        # The file is somewhere else.
        answer = read_core(rbdump, core, ruby.elf, env=environment)
        check_all(answer, target, ruby)
        assert answer["core"]["lacks"] == []
        assert answer["layout"]["build_id"] == build_id(ruby.elf)


@pytest.mark.skipif(len(RUBIES) < 2, reason="needs two Rubies")
def test_another_executable_is_refused(ruby, rbdump, tmp_path):
    other = next(one for one in RUBIES if build_id(one.elf) != build_id(ruby.elf))
    without_id = tmp_path / "without-id"
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", ruby.elf, without_id], check=True, timeout=60)
    with core_of_moved(rbdump, ruby, "oldest.rb", tmp_path) as (target, core, _):
        done = run(rbdump, "--core", core, other.elf)
        assert (done.returncode, done.stdout) == (FAILED, "")
        assert build_id(other.elf) in done.stderr and "--force" in done.stderr

        # Only a build-id tells that it is the same: without one it must be forced, and is then what ran.
        done = run(rbdump, "--core", core, without_id)
        assert (done.returncode, done.stdout) == (FAILED, "")
        if os.path.realpath(ruby.elf) == os.path.realpath(ruby.path):
            assert build_id(ruby.elf) in done.stderr
            check_all(read_core(rbdump, core, without_id, "--force"), target, ruby)

            # Forced upon it, another version's file leads nowhere, and that is said.
            done = run(rbdump, "--core", core, other.elf, "--force")
            assert (done.returncode, done.stdout) in [(FAILED, ""), (NOT_RUBY, "")]
            assert done.stderr.count("\n") == 1


@pytest.mark.three_rubies
def test_replaced_executable_is_not_read(ruby, rbdump, tmp_path):
    """Another program has the name now: it is not taken for the one that ran."""
    moved = Moved(ruby, tmp_path)
    with (
        running(rbdump, moved.path, "oldest.rb", environment=moved.environment) as target,
        gcore_of(target.pid, tmp_path) as core,
    ):
        files = [path for path in moved.folder.rglob("*") if path.is_file()]
        for path in files:
            path.unlink()
            shutil.copy("/bin/true", path)
        answer = read_core(rbdump, core, "--ruby-version", ruby.version)
        check_all(answer, target, ruby)
        assert len(answer["core"]["lacks"]) == 1


# ---- pinned


@with_debug
def test_pinned_in_a_window(debugged, rbdump, tmp_path):
    """2.7: the core was made right after the new control frame was published, and before it was filled in."""
    if debugged.series < (2, 5):
        note_not_applicable(f"a core of a thread pinned in vm_push_frame of {debugged.id}: the place is found by 2.7's code")
        return
    if debugged.series >= (3, 0):
        note_not_applicable(f"a core of a thread pinned in vm_push_frame of {debugged.id}: its frame is published last")
        return
    with pinned_in_a_window(debugged, tmp_path) as target:
        with gcore_of(target.pid, tmp_path) as core:
            answer = read_core(rbdump, core, status=1)
            text = run(rbdump, "--core", core)
            live = json.loads(run(rbdump, "-p", target.pid, "--json").stdout)
        os.kill(target.pid, signal.SIGCONT)
        assert target.wait(30) == 0
    (thread,) = answer["threads"]
    assert (thread["verdict"], thread["reason"], thread["window"]) == ("torn", "window", "vm_push_frame")
    assert text.returncode == 1
    assert "[torn: the thread was stopped while its stack was being changed (vm_push_frame)]" in text.stdout
    assert live["threads"] == answer["threads"]


@with_debug
def test_pinned_where_windows_are_not_known(debugged, rbdump, tmp_path):
    """
    The same through a layout that is not of this very build, and with the whole frame of an earlier call in place of the
    new one: what its caller calls tells.
    """
    layout = TESTS.parent / f"offsets.d/{debugged.version}-x86_64.layout"
    if debugged.series != (2, 7) or not layout.exists():
        note_not_applicable(f"{debugged.id} pinned in vm_push_frame, without windows: the place is found by 2.7's code")
        return
    with pinned_in_a_window(debugged, tmp_path, "graph/pinned_stale.rb", calls_before=1) as target:
        with gcore_of(target.pid, tmp_path) as core:
            answers = [read_core(rbdump, core, "--offsets", layout, status=1)]
        for more in ([], ["--no-stop"]):
            done = run(rbdump, "-p", target.pid, "--json", "--offsets", layout, *more)
            assert done.returncode == 1
            answers.append(json.loads(done.stdout))
        os.kill(target.pid, signal.SIGCONT)
        assert target.stdout.readline() == "inner:8 outer:13 <main>:20\n"
        assert target.wait(30) == 0
    for answer in answers:
        (thread,) = answer["threads"]
        assert (thread["verdict"], thread["reason"], thread["window"]) == ("torn", "call-site", None)
        assert [frame["label"].split("#")[-1] for frame in thread["frames"]] == ["other", "outer", "<main>"]
