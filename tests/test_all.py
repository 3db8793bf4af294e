"""rbdump record --all: each Ruby that there is, in whatever namespace, and each that comes; and only those of a user or a cgroup."""

import contextlib
import os
import pathlib
import signal
import time

import pytest
from conftest import note_not_applicable
from harness import kernel
from harness.dump import run
from harness.places import PLACES, Inhabitant
from harness.process import is_untouched
from harness.recording import SECOND, Recording, Running, record, report

USAGE = 64
# Users that no other process has, also beside another run of these tests.
USERS = [100_000 + 3 * os.getpid() + number for number in range(3)]
SCRIPT = "shares/as_user.rb"
CGROUPS = [pathlib.Path("/sys/fs/cgroup/systemd"), pathlib.Path("/sys/fs/cgroup")]
CONTAINER = "3f2a" * 16


@contextlib.contextmanager
def cgroup(name):
    """A cgroup of that name: its folder, and the path by which /proc/PID/cgroup calls it. Skips where none can be made."""
    for top in CGROUPS:
        folder = top / name
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            yield folder, f"/{name}"
        finally:
            folder.rmdir()
        return
    note_not_applicable("record --cgroup: no cgroup can be made here")
    pytest.skip("no cgroup can be made here")


def join(folder, pid):
    (folder / "cgroup.procs").write_text(str(pid))


@pytest.fixture(params=["paused", "kernel"])
def mode(request):
    if request.param == "kernel" and kernel.why_not():
        note_not_applicable(f"record --all in the kernel: {kernel.why_not()}")
        pytest.skip(kernel.why_not())
    return request.param


@pytest.mark.any_ruby
def test_of_a_user(ruby, rbdump, file, mode):
    """What is there, inside and outside of other namespaces, and what comes later; nobody else's."""
    places = [PLACES["here"], PLACES["pid-namespace"], PLACES["nested"]]
    with contextlib.ExitStack() as stack:
        there = [stack.enter_context(Running(ruby, SCRIPT, USERS[0], below=place.below)) for place in places]
        other = stack.enter_context(Running(ruby, SCRIPT, USERS[1]))
        assert {target.first_line for target in [*there, other]} == {"ready"}
        pids = {Inhabitant(place, target.pid).pid for place, target in zip(places, there, strict=True)}
        recording = stack.enter_context(Recording(rbdump, "--all", "--user", USERS[0], "--mode", mode, file=file))
        recording.wait_until(lambda profile: set(profile.pids()) == pids, "all that are there are recorded")
        late = stack.enter_context(Running(ruby, SCRIPT, USERS[0]))
        pids.add(late.pid)
        recording.wait_until(lambda profile: set(profile.pids()) == pids, "so is the one that came")
        assert is_untouched(other.pid)
        end = time.time_ns()
        recording.wait_until(lambda profile: profile.end() > end + SECOND, "it goes on")
        status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
    profile = report(rbdump, file, "--idle")
    assert set(profile.pids()) == pids
    for process in profile.processes:
        assert any(span.method("Kernel#sleep") or span.method("Integer#times") for span in profile.of(pid=process["pid"])), process


@pytest.mark.any_ruby
def test_of_a_cgroup(ruby, rbdump, file, tmp_path):
    """Those of a cgroup and below it. Its container is told in each kind of report."""
    with contextlib.ExitStack() as stack:
        outer, path = stack.enter_context(cgroup(f"rbdump-test-{os.getpid()}"))
        inner = outer / f"docker-{CONTAINER}.scope"
        inner.mkdir()
        stack.callback(inner.rmdir)
        targets = [stack.enter_context(Running(ruby, SCRIPT, 0)) for _ in range(3)]
        join(outer, targets[0].pid)
        join(inner, targets[1].pid)
        wanted = {targets[0].pid, targets[1].pid}
        recording = stack.enter_context(Recording(rbdump, "--all", "--cgroup", path + "/", file=file))
        recording.wait_until(lambda profile: set(profile.pids()) == wanted, "both are recorded")
        status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        for target in targets:
            target.finish()
    processes = {process["pid"]: process for process in report(rbdump, file).processes}
    assert processes.keys() == {targets[0].pid, targets[1].pid}
    container = processes[targets[1].pid]
    assert container["cgroup"] == f"{path}/{inner.name}"
    assert (container["container"], container["unit"]) == (CONTAINER[:12], inner.name)
    assert (processes[targets[0].pid]["cgroup"], processes[targets[0].pid]["container"]) == (path, None)
    collapsed = run(rbdump, "report", file, "-f", "collapsed", "--idle").stdout
    assert f"ruby {targets[1].pid} ({CONTAINER[:12]});" in collapsed


@pytest.mark.any_ruby
def test_none(rbdump, file):
    """There is none of that user."""
    status, _, errors = record(rbdump, "--all", "--user", USERS[2], "-d", 0.5, file=file)
    assert (status, file.exists()) == (3, False)
    assert "there was no Ruby process to record" in errors


@pytest.mark.any_ruby
@pytest.mark.parametrize("wrong", [["--all", "-p", "1"], ["--all", "--", "true"], ["-p", "1", "--user", "0"], ["--all", "--user", "nobody-of-that-name"], ["--all", "--cgroup", ""]])
def test_usage(rbdump, wrong):
    assert run(rbdump, "record", *wrong).returncode == USAGE
