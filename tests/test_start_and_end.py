"""A Ruby that is just starting, or ending: an honest answer, whatever the moment, and never a wrong one."""

import json
import os
import pathlib
import random
import re
import subprocess
import time

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import run
from harness.layouts import make_layout, shipped_for
from harness.stripped import stripped_copy
from harness.under_gdb import run_gdb, stop_in

COMPLETE, PARTIAL, FAILED = 0, 1, 2
LIBC = tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))
LIFE = pathlib.Path(__file__).parent / "harness/life.py"
# In the order in which they are called; not every Ruby has all of them, or has them where gdb can stop.
STARTING = ["exec", "ruby_setup", "Init_BareVM", "Init_vm_objects", "rb_call_inits", "Init_sym", "Init_Object"]
STARTING += ["Init_String", "Init_VM"]
RUNNING = ["Init_Thread", "Init_version", "ruby_prog_init", "ruby_options", "ruby_run_node", "rb_exec_end_proc"]
ENDING = ["rb_objspace_call_finalizer", "ruby_vm_destruct"]
OVER = ["rb_objspace_free", "exit", "_exit"]
# Moments of each build. Of five builds, there are 50 of the start and 70 of the end: a wrong answer that comes at one moment
# of ten is missed once in 200 and in 1,600 runs. --soak has more builds, and three times as many of each. test_places has the
# places that are known.
RUNS, RUNS_OF_SOAK = 10, 30


def builds():
    """Each Ruby, and without its symbols: then its roots must be searched for."""
    for ruby in RUBIES:
        yield pytest.param((ruby, False), id=ruby.id)
        if ruby.has_debug:
            yield pytest.param((ruby, True), id=f"{ruby.id}-stripped")


@pytest.fixture(scope="module", params=list(builds()))
def build(request, rbdump, tmp_path_factory):
    """A Ruby, and what it needs in its environment."""
    ruby, strip = request.param
    if not strip:
        yield ruby, {}
        return
    with stripped_copy(ruby, tmp_path_factory.mktemp(ruby.id)) as copy, pytest.MonkeyPatch.context() as patch:
        # Without the layout of the original, which has the same build-id, and says where the roots are.
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        if not shipped_for(ruby.version):
            patch.setenv("RBDUMP_OFFSETS_D", str(make_layout(copy.original, rbdump, tmp_path_factory.mktemp("made"))))
        yield copy.ruby, copy.environment


def check_answer(status, output, errors, words=("starting", "ending", "no process", "has ended")):
    """What may be said of it: stacks that are right or marked, or one sentence with one of the words: it has none now."""
    if status == FAILED:
        assert output == ""
        assert re.fullmatch(r"rbdump: [^\n]+\n", errors)
        assert any(word in errors for word in words), errors
        return
    assert status in (COMPLETE, PARTIAL), errors
    threads = json.loads(output)["threads"]
    assert threads
    for thread in threads:
        if thread["verdict"] == "complete":
            assert all(frame["kind"] in ("ruby", "cfunc") for frame in thread["frames"])
            assert all(frame["label"] for frame in thread["frames"])


def dump_after(rbdump, ruby, environment, delay, script):
    """
    Starts a Ruby, waits for what it writes, if it does, and so long more, and dumps it: status, output, errors. What is
    wanted is a look at any moment: nothing is waited for to happen meanwhile.
    """
    with subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", script],
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as target:  # fmt: skip
        if "write" in script:
            assert target.stdout.read(1) == b"x"
        time.sleep(delay)
        done = run(rbdump, "-p", target.pid, "--json")
        target.kill()
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def runs(times):
    return range(times(RUNS, RUNS_OF_SOAK))


def layout_is_kept(rbdump, build, start):
    """Makes the layout of a Ruby, if need be, so that the dumps to come are quick."""
    ruby, environment = build
    assert run(rbdump, "-p", start(ruby, "threads.rb", environment=environment).pid).returncode == COMPLETE


@pytest.mark.long
@pytest.mark.outer_rubies
def test_starting_at_any_moment(build, rbdump, start, runs):
    ruby, environment = build
    layout_is_kept(rbdump, build, start)
    began = time.monotonic()
    subprocess.run([ruby.path, "--disable-gems", "-e", "nil"], env={**os.environ, **environment}, timeout=60, check=True)
    lasts = time.monotonic() - began
    moments = random.Random(4)
    # Whether any of them comes before there is a stack is left to chance: test_places has those moments for certain.
    for _ in runs:
        check_answer(*dump_after(rbdump, ruby, environment, moments.uniform(0, lasts / 2), "sleep"), words=["starting"])
    # One that runs its script is never said to be starting.
    status, output, errors = dump_after(rbdump, ruby, environment, 0, "$stdout.syswrite 'x'; sleep")
    assert status == COMPLETE, errors
    (thread,) = json.loads(output)["threads"]
    labels = [re.split(r"[#.]", frame["label"])[-1] for frame in thread["frames"]]
    assert labels in (["sleep", "<main>"], ["syswrite", "<main>"], ["write", "<main>"], ["<main>"])


@pytest.mark.long
@pytest.mark.outer_rubies
@pytest.mark.parametrize("more", [{}, {"RUBY_FREE_AT_EXIT": "1"}], ids=["", "free"])
def test_ending_at_any_moment(build, rbdump, start, runs, more):
    """With $RUBY_FREE_AT_EXIT a Ruby since 3.3 takes itself apart to the last."""
    ruby, environment = build
    if more and ruby.series < (3, 3):
        return
    layout_is_kept(rbdump, build, start)
    moments = random.Random(5)
    for _ in runs:
        script = "$kept = Array.new(300_000) { Object.new }; Thread.new { sleep }; $stdout.write 'x'; $stdout.flush"
        answer = dump_after(rbdump, ruby, {**environment, **more}, moments.uniform(0, 0.002), script)
        check_answer(*answer, words=["ending", "no process", "has ended"])


def places_of_life(ruby, rbdump, folder):
    """What rbdump says at each place of a short life."""
    results = pathlib.Path(folder) / "results"
    places = " ".join(STARTING[1:] + RUNNING + ENDING + OVER)
    with subprocess.Popen(
        ["sh", "-c", 'echo ready; read go; exec "$@"', "sh", ruby.path, "--disable-gems", "-e", "at_exit { nil }"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as target:  # fmt: skip
        assert target.stdout.readline() == "ready\n"
        environment = {"RBDUMP": rbdump, "RESULTS": str(results), "PLACES": places}
        run_gdb(target.pid, ["-x", LIFE], lambda: print("go", file=target.stdin, flush=True), environment)
        assert target.wait(60) == 0
    return [json.loads(line) for line in results.read_text().splitlines()]


@pytest.mark.three_rubies
@pytest.mark.long
def test_places(ruby, rbdump, start, tmp_path):
    """gdb stops it where it starts and ends: nothing is shown before its classes are there, and after they are gone."""
    layout_is_kept(rbdump, (ruby, {}), start)
    answers = places_of_life(ruby, rbdump, tmp_path)
    seen = [answer["place"] for answer in answers]
    for answer in answers:
        if answer["place"] in STARTING:
            assert answer["status"] == FAILED, answer["place"]
            assert "starting" in answer["errors"]
        check_answer(answer["status"], answer["output"], answer["errors"])
        if answer["place"] in OVER:
            assert answer["status"] == FAILED, answer["place"]
            assert "ending" in answer["errors"]
        if answer["place"] in RUNNING:
            assert answer["status"] != FAILED, f"{answer['place']}: {answer['errors']}"
    assert seen[0] == "exec"
    for place in STARTING + RUNNING + ENDING + OVER:
        if place not in seen:
            note_not_applicable(f"{ruby.id} stopped in {place}: gdb knows no such function of it")
    starting = [number for number, place in enumerate(seen) if place in STARTING[1:]]
    assert starting and max(starting) < seen.index("ruby_run_node")


@pytest.mark.three_rubies
def test_thread_that_is_being_made(ruby, rbdump):
    """Ruby has made a thread, with a stack since 3.3, and the kernel has not yet: the process can be read all the same."""
    code = 'puts "ready"; $stdout.flush; $stdin.gets; Thread.new { sleep }; sleep'
    with subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as target:
        try:
            assert target.stdout.readline() == "ready\n"
            # glibc since 2.34; before that, it does not have clone3().
            function = "clone3" if LIBC >= (2, 34) else "clone"
            stop_in(target.pid, function, lambda: print(file=target.stdin, flush=True))
            done = run(rbdump, "-p", target.pid, "--json")
        finally:
            target.kill()
    assert done.returncode in (COMPLETE, PARTIAL), done.stderr
    threads = json.loads(done.stdout)["threads"]
    (main,) = [thread for thread in threads if thread["main"]]
    assert main["verdict"] == "complete" and "new" in main["frames"][0]["label"] + main["frames"][1]["label"]
    others = [thread for thread in threads if not thread["main"]]
    # Up to 2.7, it is in the list of threads only afterwards.
    assert [other["tid"] for other in others] == ([None] if ruby.series >= (3, 0) else [])
