"""Recordings: where they are written to, and what may happen to the file."""

import collections
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import time

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import run
from harness.process import (
    Bound,
    children_of,
    command_line,
    is_untouched,
    task_states,
    tracers_of,
    wait_until,
)
from harness.recorded import (
    FAILED,
    LOOPS,
    POINTS,
    STALL,
    USAGE,
    check_counts,
    check_refusal,
    check_well_formed,
    close,
    interval,
    is_not_stopped,
    modes,
    unseen,
)
from harness.recording import (
    CUT,
    SECOND,
    Profile,
    Recording,
    Running,
    collapsed,
    counts_in,
    is_summary,
    record,
    report,
    shares_of,
    timelines,
    warnings_in,
)
from harness.terminal import interrupted


def test_outputs_that_cannot_be_opened(ruby, rbdump, tmp_path):
    """That is said before anything is done."""
    with Running(ruby, "shares/loops.rb") as target:
        for output, word in [(tmp_path / "none/file", "No such file"), (tmp_path, "directory")]:
            for form in ("raw", "collapsed"):
                done = run(rbdump, "record", "-p", target.pid, "-d", 600, "-f", form, "-o", output)
                check_refusal(done, FAILED, str(output), word)
        assert is_untouched(target.pid)


def check_full(rbdump, target, file, word, **options):
    status, out, errors = record(rbdump, "-p", target.pid, "-r", 2000, "-d", 60, file=file, timeout=40, **options)
    assert (status, out) == (FAILED, ""), (status, errors)
    said = [line for line in errors.splitlines() if line not in warnings_in(errors)]
    complaints = [line for line in said if not line.startswith("rbdump: samples ")]
    assert len(complaints) == 1 and complaints[0].startswith("rbdump: "), errors
    assert str(file) in complaints[0] and word in complaints[0], errors
    assert is_untouched(target.pid)


@pytest.fixture
def churning(tmp_path):
    """A target whose stacks are many: they do not compress to nothing."""
    folder = tmp_path / "graph"
    folder.mkdir()
    with Running(RUBIES[-1], "graph/graph.rb", "blocks", 1, folder) as target:
        yield target


def test_full_device(rbdump, churning):
    check_full(rbdump, churning, pathlib.Path("/dev/full"), "No space left")


@pytest.mark.long
def test_file_that_may_not_grow(rbdump, churning, file):
    """What was recorded until then is kept."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))

    check_full(rbdump, churning, file, "File too large", preexec_fn=limit)
    assert 0 < file.stat().st_size <= 32768
    profile = report(rbdump, file, status=CUT)
    assert any(one.method("Graph#run") for one in profile.spans)


@pytest.mark.long
def test_full_disk(rbdump, churning, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", folder]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        note_not_applicable("a full disk: no tmpfs can be mounted here")
        return
    try:
        check_full(rbdump, churning, folder / "recording", "No space left")
        profile = report(rbdump, folder / "recording", status=CUT)
        assert any(one.method("Graph#run") for one in profile.spans)
    finally:
        subprocess.run(["umount", folder], check=True)


def test_reader_that_goes_away(rbdump, churning):
    """A pipe whose reader has had enough ends the recording, with a sentence or without, but not by a signal."""
    with Recording(rbdump, "-p", churning.pid, "-r", 2000, "-d", 60, "-o", "-") as recording:
        assert recording.process.stdout.buffer.read(16)
        recording.process.stdout.close()
        recording.process.wait(30)
        assert recording.process.returncode in (0, FAILED), recording.process.stderr.read()
    wait_until(lambda: is_untouched(churning.pid), "nobody traces it", 5)


def test_standard_output_of_a_command(rbdump):
    """What it writes there would be in the recording."""
    check_refusal(run(rbdump, "record", "-o", "-", "--", "true"), USAGE, "-o FILE")


def test_input_is_no_output(rbdump, file, kept):
    recorded = kept(RUBIES[-1])[0].read_bytes()
    file.write_bytes(recorded)
    check_refusal(run(rbdump, "report", file, "-f", "json", "-o", file), USAGE, str(file))
    assert file.read_bytes() == recorded


@pytest.mark.long
@pytest.mark.any_ruby
def test_to_standard_output(ruby, rbdump, file):
    """Raw there is what it is in a file; a format is written at the end."""
    with Running(ruby, "shares/loops.rb") as target:
        with open(file, "wb") as out:
            status, _, errors = record(rbdump, "-p", target.pid, "-d", 1, "-o", "-", stdout=out)
        assert status == 0 and is_summary(errors), errors
        profile = report(rbdump, file)
        assert any(one.method(*LOOPS) for one in profile.spans)
        status, out, errors = record(rbdump, "-p", target.pid, "-d", 1, "-o", "-", "-f", "collapsed")
        assert status == 0 and is_summary(errors), errors
        lines = collapsed(out)
        assert sum(weight for frames, weight in lines if any("Loops#a" in frame for frame in frames)) > 0
        status, out, errors = record(rbdump, "-p", target.pid, "-d", 1, "-o", "-", "-f", "json")
        assert status == 0, errors
        check_counts_of_view(Profile(json.loads(out)), errors)


def check_counts_of_view(profile, errors):
    """A view has not all spans, but all counts."""
    line = counts_in(errors)
    assert {key: profile.counts[key] for key in line} == line


@pytest.mark.any_ruby
def test_progress_on_a_terminal_only(ruby, rbdump, file):
    """^C there ends the recording, with what there is."""
    with Running(ruby, "shares/loops.rb") as target:
        command = [rbdump, "record", "-p", target.pid, "-o", file]
        status, shown = interrupted(command, lambda shown: re.search(rb"\d.*\r.*\d.*\r", shown, re.DOTALL))
        assert status == 0, shown
        assert is_untouched(target.pid)
    assert re.search(rb"rbdump: samples \d+: \d+ complete", shown), shown
    report(rbdump, file)


@pytest.mark.any_ruby
def test_warning_if_much_is_late(ruby, rbdump, file):
    """What samples is stopped again and again for a moment: of so many samples that are late, much is said."""
    with Running(ruby, "shares/loops.rb") as target:
        with Recording(rbdump, "-p", target.pid, "-r", 1000, file=file) as recording:
            recording.wait_for_samples()
            (capture,) = tracers_of(recording.pid)

            def stops():
                for _ in range(50):
                    os.kill(capture, signal.SIGSTOP)
                    # If it held a thread, the guard may have it go on before that is seen.
                    bound = Bound(0.02)
                    while bound.left() and task_states(capture) != {"T"}:
                        pass
                    os.kill(capture, signal.SIGCONT)
                profile = recording.so_far()
                return profile and profile.counts["late"] > max(100, 0.05 * profile.counts["samples"])

            wait_until(stops, "it was stopped often enough")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        assert is_untouched(target.pid)
    counts = counts_in(errors)
    profile = report(rbdump, file, "--idle")
    assert profile.counts["late"] == counts["late"] > 0.01 * counts["samples"]
    assert any("late" in line for line in warnings_in(errors)), errors


def looked_at(profile):
    """From when to when each thread is in a profile."""
    spans = collections.defaultdict(list)
    for one in profile.spans:
        spans[one.thread["name"], one.thread["tid"]].append(one)
    return {thread: (min(one.start for one in its), max(one.end for one in its)) for thread, its in spans.items()}


@pytest.mark.any_ruby
def test_rate_that_cannot_be_held(ruby, rbdump, file):
    """What was asked for and not done is said, in the counts and by a warning; shares are right all the same."""
    with Running(ruby, "shares/loops.rb") as target:
        status, _, errors = record(rbdump, "-p", target.pid, "-r", 20000, "-d", 2, file=file)
        assert status == 0, errors
        assert is_untouched(target.pid)
        truth = timelines(target.finish())["main"]
    profile = report(rbdump, file, "--idle")
    main = profile.of(main=True)
    began, ended = interval(profile, main)
    told = {f"Loops#{key}": share for key, share in truth.wall(began, ended).items()}
    found = shares_of(main, lambda one: one.method(*LOOPS))
    assert close(found, told, POINTS + unseen(profile, main)), (found, told)
    # Since the first sample: what comes before takes longer on a busy machine.
    taken, asked = sum(one.count for one in main), 20000 * (ended - began) / SECOND
    if taken > 0.95 * asked:
        note_not_applicable("20,000 samples a second are more than can be taken: not on this machine")
        return
    check_counts(profile, errors, 20000)
    # A round is never late for its turn, which lasts 50 us: each was taken, or is told to be missed, of each thread once,
    # from when the thread was first looked at.
    asked = {thread: 20000 * (end - begin) / SECOND for thread, (begin, end) in looked_at(profile).items()}
    done = profile.counts["samples"] + profile.counts["missed"] + profile.counts["skipped"]
    assert len(asked) == 2, asked
    assert 0.97 * sum(asked.values()) - 4 <= done <= 1.03 * sum(asked.values()) + 4, (asked, profile.counts)
    assert any("late" in line for line in warnings_in(errors)), errors


@pytest.mark.alone
@pytest.mark.any_ruby
def test_children_that_are_no_rubies(ruby, rbdump, file):
    """None has a process of rbdump's own; one that becomes a Ruby by exec is recorded, and is one process throughout."""
    becomes = [ruby.path, "--disable-gems", "-e", "def wait_here = sleep; wait_here" if ruby.version >= "3" else "def wait_here; sleep; end; wait_here"]
    with Running(ruby, "shares/not_rubies.rb", 60, *becomes) as target:
        with Recording(rbdump, "-p", target.pid, "--children", file=file) as recording:
            recording.wait_for_samples()
            # The recorder has the capture of the one Ruby, and no other.
            wait_until(lambda: len(tracers_of(recording.pid)) == 1, "those that are no Rubies were looked at", 60)
            target.process.stdin.write(b"\n")
            became = int(target.line())
            wait_until(lambda: len(tracers_of(recording.pid)) == 2, "what became a Ruby is recorded", 30)
            wait_until(lambda: command_line(became)[: len(ruby.path)] == ruby.path, "it is a Ruby", 30)
            recording.wait_until(lambda profile: waits_here(profile, became), "it was sampled")
            # One that is no Ruby is looked at again now and then, by a process that ends at once.
            wait_until(lambda: len(tracers_of(recording.pid)) == 2, "no other process stays")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
    profile = report(rbdump, file, "--idle")
    assert {one.pid for one in profile.spans} == {target.pid, became}
    assert waits_here(profile, became)


def waits_here(profile, pid):
    return any("wait_here" in frame["name"] for one in profile.of(pid) for frame in one.frames)


def cpu_seconds(pid):
    """CPU time of a process, all its threads, by the kernel."""
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.alone
@pytest.mark.any_ruby
def test_limit_of_cpu_time(ruby, rbdump, file):
    """Above its share it samples less often, says so, and what it took stands for all of the time."""
    with Running(ruby, "shares/waking.rb", 100, 100) as target:
        with Recording(rbdump, "-p", target.pid, "-r", 500, "--max-cpu", 5, file=file) as recording:
            recording.wait_for_samples()
            (capture,) = tracers_of(recording.pid)
            # What is saved for the beginning is spent by then.
            wait_until(lambda: cpu_seconds(capture) > 0.3, "it has worked for a while", 60)
            begin, used = time.monotonic(), cpu_seconds(capture)
            wait_until(lambda: time.monotonic() - begin > 4, "it has recorded for some time")
            share = (cpu_seconds(capture) - used) / (time.monotonic() - begin)
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        assert is_untouched(target.pid)
    assert share < 0.06, share
    limited = r"^rbdump: sampled (\d+) times per second instead of 500, to take at most 5 % of a CPU"
    (said,) = re.findall(limited, errors, re.MULTILINE)
    assert int(said) < 400
    profile = report(rbdump, file, "--idle")
    check_well_formed(profile)
    counts = profile.counts
    assert counts["skipped"] > counts["samples"] / 4
    assert abs(int(said) - 500 * counts["samples"] / (counts["samples"] + counts["skipped"])) <= 1
    main = profile.of(main=True)
    begin, end = interval(profile, main)
    assert sum(one.weight for one in main) > 0.97 * (end - begin)
    assert f"sampled {said} times per second instead of 500" in run(rbdump, "report", file).stdout


def files_of(folder):
    return sorted(path for path in folder.iterdir() if path.is_file() and path.stat().st_size > 0)


def check_parts(rbdump, paths, errors):
    """Each is whole; together they are one recording."""
    parts = [report(rbdump, path, "--idle") for path in paths]
    parts.sort(key=lambda part: part.start)
    # Where the machine stands still between two threads of a round, the samples of both are late.
    late = counts_in(errors)["late"] * SECOND // 99
    for earlier, later in zip(parts, parts[1:]):
        # A part ends with a round; in the kernel, with what is handed on together, at least five times a second.
        assert earlier.end() <= later.start + (SECOND // 4 if earlier.answer["mode"] == "kernel" else 50_000_000) + late
        assert later.start - earlier.end() < STALL
    assert sum(part.counts["samples"] for part in parts) == counts_in(errors)["samples"]
    if not parts[-1].of(main=True):  # it was begun in the last moment, between two threads of a round, or after them
        parts.pop()
    for part in parts:
        check_well_formed(part)
        found = part.of(main=True)
        # At most a twentieth is something else, and two samples: a part can be short.
        elsewhere = sum(one.count for one in found if one.method(*LOOPS) is None and not is_not_stopped(one))
        assert found and elsewhere <= 0.05 * sum(one.count for one in found) + 2, (elsewhere, found)
    merged = report(rbdump, *paths, "--idle")
    # No time is missing where one part ends and another begins. A machine that stands still makes a longer gap.
    main = sorted(merged.of(main=True), key=lambda one: one.start)
    gaps = [later.start - earlier.end for earlier, later in zip(main, main[1:])]
    assert sum(gap for gap in gaps if gap < SECOND // 2) <= 0.01 * (main[-1].end - main[0].start), gaps
    assert abs(merged.weight() - sum(part.weight() for part in parts)) <= 1_000_000 * len(parts)
    assert merged.counts["samples"] == sum(part.counts["samples"] for part in parts)


@pytest.mark.long
@pytest.mark.any_ruby
@modes
def test_rotated_by_time(ruby, rbdump, tmp_path, mode):
    folder = tmp_path / "rotated"
    folder.mkdir()
    with Running(ruby, "shares/loops.rb") as target:
        with Recording(rbdump, "-p", target.pid, "--rotate", 1, "--mode", mode, file=folder / "recording.rbdump") as recording:
            wait_until(lambda: len(files_of(folder)) >= 4, "a fourth file is begun")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
        assert is_untouched(target.pid)
    paths = files_of(folder)
    # One is begun each second, and not before.
    parts = [report(rbdump, path, "--idle") for path in paths]
    seconds = (max(part.end() for part in parts) - min(part.start for part in parts)) / SECOND
    assert 4 <= len(paths) <= seconds + 2, (len(paths), seconds)
    assert max(part.duration for part in parts) < SECOND + STALL
    check_parts(rbdump, paths, errors)


@pytest.mark.any_ruby
def test_rotated_by_a_signal(ruby, rbdump, tmp_path):
    """SIGHUP begins a new file."""
    folder = tmp_path / "rotated"
    folder.mkdir()
    file = folder / "recording.rbdump"
    with Running(ruby, "shares/loops.rb") as target:
        # SIGHUP of a terminal that is gone would end it.
        with Recording(rbdump, "-p", target.pid, "-r", 200, file=file, start_new_session=True) as recording:
            recording.wait_for_samples()
            recording.file = folder / "recording.rbdump.1"
            recording.process.send_signal(signal.SIGHUP)
            recording.wait_for_samples()
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors
    assert files_of(folder) == [file, recording.file]
    check_parts(rbdump, files_of(folder), errors)


def test_end_after_a_rotation(rbdump, tmp_path):
    """A program that ends when a new file has just begun: each file is whole, whichever of them tells of the end."""
    ruby = RUBIES[0]
    for i in range(8):
        folder = tmp_path / str(i)
        folder.mkdir()
        file = folder / "recording.rbdump"
        command = ["--", ruby.path, "--disable-gems", "-e", "Thread.new { sleep 60; exit! }; loop {}"]
        with Recording(rbdump, "-r", 500, *command, file=file) as recording:
            recording.wait_for_samples()
            recording.process.send_signal(signal.SIGHUP)
            wait_until((folder / "recording.rbdump.1").exists, "the next file is begun")
            (target,) = [pid for pid in children_of(recording.pid) if command_line(pid).startswith(ruby.path)]
            os.kill(target, signal.SIGKILL)
            assert recording.end()[0] == 128 + signal.SIGKILL
        profiles = [report(rbdump, path) for path in files_of(folder)]
        ends = [one["signal"] for profile in profiles for one in profile.processes]
        assert ends.count(signal.SIGKILL) == 1, ends


@pytest.mark.since((3, 3), "M:N threads")
def test_threads_that_share_native_ones(ruby, rbdump, file):
    """A thread is one thread, whichever native thread runs it, or if none does."""
    with Running(ruby, "shares/threads.rb", environment={"RUBY_MN_THREADS": "1"}) as target:
        status, _, errors = record(rbdump, "-p", target.pid, "-d", 2, "-r", 500, file=file)
        assert status == 0, errors
        assert is_untouched(target.pid)
    profile = report(rbdump, file, "--idle")
    names = collections.Counter(thread["name"] for thread in profile.answer["threads"])
    assert names == collections.Counter([None, *(f"worker {i}" for i in range(6))]), names
