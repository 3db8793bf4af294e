"""`record --native=whole`: native functions among the frames of Ruby, as in a dump, and in their places while a program runs."""

import collections
import os

import pytest
from conftest import note_not_applicable
from harness.busy import Busy
from harness.busy import Extension as BusyExtension
from harness.dump import dump, run
from harness.mixed import Extension, Mixed
from harness.native import is_suspended, native
from harness.recording import Recording, record, report

USAGE = 64


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    return Extension(tmp_path_factory.mktemp("stripped"), with_debug=False)


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    return BusyExtension(tmp_path_factory.mktemp("busy"))


def as_recorded(frame):
    """A frame of a dump as a recording has it: a native function by its file."""
    return ("native", frame["module"] or "[JIT]") if frame["kind"] == "native" else (frame["kind"], frame["name"])


def told(frame):
    return ("native", frame["path"]) if frame["kind"] == "native" else (frame["kind"], frame["name"])


def names(frames):
    """The names of native functions, where a symbol table has them: a dump also takes those of debug info."""
    return [frame["name"] if frame["kind"] == "native" and "+0x" not in frame["name"] else None for frame in frames]


def check_rest(rbdump, ruby, stripped, tmp_path, *flags):
    """Each thread has the frames of a dump, in the order of a dump; those of Ruby's own file by the same names."""
    with Mixed(ruby, stripped, *flags, depth=9) as mixed:
        answer = dump(rbdump, mixed.pid, "--native")
        status, _, errors = record(
            rbdump, "-p", mixed.pid, "--mode", "paused", "--native=whole", "-r", 100, "-d", 0.5, file=tmp_path / "file"
        )  # fmt: skip
        assert status == 0, errors
    profile = report(rbdump, tmp_path / "file", "--idle")
    recorded = collections.defaultdict(set)
    for span in profile.spans:
        recorded[span.thread["tid"]].add(tuple(map(tuple, ([told(frame) for frame in span.frames], names(span.frames)))))
    dumped = {thread["tid"]: thread for thread in answer["threads"] if not is_suspended(thread)}
    assert set(recorded) == set(dumped)
    for tid, thread in dumped.items():
        ((frames, functions),) = recorded[tid]
        assert list(frames) == [as_recorded(frame) for frame in thread["frames"]], thread["name"]
        of_ruby = [
            (frame["name"], name)
            for frame, name in zip(thread["frames"], functions, strict=True)
            if frame.get("module") == ruby.elf and name
        ]
        assert all(ours == its for ours, its in of_ruby)
        assert of_ruby or ruby.id == "debian"
    return dumped


def test_at_rest(rbdump, ruby, stripped, tmp_path):
    check_rest(rbdump, ruby, stripped, tmp_path)


@pytest.mark.newest_ruby
def test_jit(rbdump, ruby, stripped, tmp_path):
    if "yjit" not in ruby.jits:
        note_not_applicable(f"YJIT: {ruby.id} has none")
        pytest.skip("no YJIT")
    dumped = check_rest(rbdump, ruby, stripped, tmp_path, *ruby.jits["yjit"])
    assert any(frame["label"] == "[JIT]" for thread in dumped.values() for frame in native(thread))


@pytest.mark.three_rubies
def test_running(rbdump, ruby, busy, tmp_path):
    """A function that yields is between its method and the block that it calls."""
    with Busy(ruby, busy) as process:
        with Recording(
            rbdump, "-p", process.pid, "--mode", "paused", "--native=whole", "-r", 1000, file=tmp_path / "file"
        ) as recording:
            recording.wait_until(lambda profile: profile.counts["samples"] > 3000, "it was sampled")
            status, _, errors = recording.end(2)
        assert status == 0, errors
    profile = report(rbdump, tmp_path / "file")
    counts = collections.Counter()
    for span in profile.of(main=True):
        if span.verdict != "complete":
            continue
        frames = [frame["name"] for frame in span.frames[::-1]]
        counts["complete"] += span.count
        counts["missing"] += ("(native frames missing)" in frames) * span.count
        if "Busy.yields" in frames and "Object#in_ruby" in frames:
            between = frames[frames.index("Busy.yields") + 1 : frames.index("Object#in_ruby")]
            counts["yields"] += span.count
            counts["in its place"] += (between[:1] == ["busy_yields"] and len(between) > 2) * span.count
    assert counts["complete"] > 0.95 * sum(span.count for span in profile.of(main=True))
    assert counts["missing"] <= 0.02 * counts["complete"], counts
    assert counts["yields"] > 20 and counts["in its place"] >= 0.98 * (counts["yields"] - counts["missing"]), counts


@pytest.mark.any_ruby
def test_usage(rbdump, ruby):
    pid = os.getpid()
    for arguments, message in (
        (["--native=all"], "all is not a value of --native; use last or whole"),
        (["--native=whole", "--mode", "kernel"], "--native=whole can be used only with --mode paused"),
        (["--native=whole", "--mode", "unpaused"], "--native=whole can be used only with --mode paused"),
        (["--native=whole", "--kernel-frames"], "do not give both --native=whole and --kernel-frames"),
    ):
        done = run(rbdump, "record", "-p", pid, *arguments)
        assert done.returncode == USAGE and message in done.stderr, done.stderr
