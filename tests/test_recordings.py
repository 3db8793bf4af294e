"""What rbdump report makes of recordings."""

import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess

import pytest
from harness.dump import run
from harness.process import task_states, wait_until
from harness.recorded import (
    FAILED,
    LOOPS,
    POINTS,
    USAGE,
    check_refusal,
    check_well_formed,
    close,
    interval,
    stood_still,
    unseen,
)
from harness.recording import (
    CUT,
    SECOND,
    Profile,
    Recording,
    Running,
    collapsed,
    record,
    report,
    shares_of,
    timelines,
)
from harness.terminal import shown_on_terminal

FORMATS = ["flamegraph", "collapsed", "speedscope", "pprof", "firefox", "callgrind", "json", "summary"]


def within(profile, begin, end):
    return sum(one.within(begin * SECOND, end * SECOND) for one in profile.spans)


@pytest.mark.any_ruby
def test_names_of_files(ruby, rbdump, kept, tmp_path):
    """A link to a file that is not there yet stays a link; a name that is no UTF-8 makes no output that cannot be read."""
    path, _, _ = kept(ruby)
    link, there = tmp_path / "latest.html", tmp_path / "today.html"
    link.symlink_to(there)
    assert run(rbdump, "report", path, "-f", "flamegraph", "-o", link).returncode == 0
    assert link.is_symlink() and there.stat().st_size > 0
    odd = os.fsencode(tmp_path) + b"/caf\xe9.rbdump"
    shutil.copyfile(path, odd)
    for form in ("speedscope", "firefox"):
        done = subprocess.run([rbdump, "report", odd, "-f", form], capture_output=True, check=True)
        assert "caf\\\\xE9.rbdump" in done.stdout.decode("utf-8") and json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.any_ruby
def test_filters(ruby, rbdump, kept):
    """What is left is what the whole says of it."""
    path, loops, gvl = kept(ruby)
    whole = report(rbdump, path, "--idle")
    assert {one.pid for one in whole.spans} == {loops, gvl}

    def left(*arguments):
        return report(rbdump, path, "--idle", *arguments)

    def keeps(profile, wanted):
        return profile.weight() == sum(one.weight for one in whole.spans if wanted(one)) > 0

    assert keeps(left("--thread", "left"), lambda one: one.thread["name"] == "left")
    tid = next(one.thread["tid"] for one in whole.spans if one.thread["name"] == "right")
    assert keeps(left("--thread", tid), lambda one: one.thread["tid"] == tid)
    assert keeps(left("--pid", loops), lambda one: one.pid == loops)
    assert keeps(left("--pid", gvl, "--state", "gvl"), lambda one: one.pid == gvl and one.state == "gvl")
    for state in {one.state for one in whole.spans}:
        assert keeps(left("--state", state), lambda one: one.state == state)
    assert keeps(left("--by", "gvl"), lambda one: one.state == "gvl")
    for begin, end, arguments in [
        (0.5, 1.5, ["--from", 0.5, "--to", 1.5]),
        (1, 100, ["--from", 1]),
        (0, 0.25, ["--to", 0.25]),
    ]:
        assert abs(left(*arguments).weight() - within(whole, begin, end)) <= 1000, arguments
    nothing = left("--thread", "no such thread")
    assert nothing.spans == []


@pytest.mark.any_ruby
def test_threads_each_and_merged(ruby, rbdump, kept):
    path, _, gvl = kept(ruby)

    def weights(how):
        lines = collapsed(run(rbdump, "report", path, "-f", "collapsed", "--pid", gvl, "--threads", how).stdout)
        return lines, sum(weight for _, weight in lines)

    each, of_each = weights("each")
    merged, of_merged = weights("merged")
    assert of_each == of_merged > 0
    assert any("left" in frame for frames, _ in each for frame in frames if "Contest" not in frame), each[:3]
    assert not any("left" in frame for frames, _ in merged for frame in frames if "Contest" not in frame), merged[:3]


THREADS_OF = {"flamegraph": "both", "collapsed": "both", "summary": "merged", "callgrind": "merged"}  # others: each


@pytest.mark.any_ruby
@pytest.mark.parametrize("form", FORMATS)
def test_what_formats_can_do_with_threads(ruby, rbdump, kept, form):
    """Refused before anything is read or recorded."""
    path, _, _ = kept(ruby)
    for how in ("each", "merged"):
        if THREADS_OF.get(form, "each") in (how, "both"):
            done = subprocess.run([rbdump, "report", path, "-f", form, "--threads", how], capture_output=True, timeout=60)
            assert (done.returncode, done.stderr) == (0, b"") and done.stdout
            continue
        word = "cannot show each thread separately" if how == "each" else "cannot merge threads"
        for command in (["report", path], ["record", "-p", 1]):
            check_refusal(run(rbdump, *command, "-f", form, "--threads", how), USAGE, f"{form} {word}")


@pytest.mark.any_ruby
@pytest.mark.parametrize("form", FORMATS)
def test_formats_on_a_terminal(ruby, rbdump, kept, form):
    path, _, _ = kept(ruby)
    command = [rbdump, "report", path, "-f", form]
    if form in ("flamegraph", "pprof"):
        assert f"{form} cannot be written to a terminal: give -o FILE" in shown_on_terminal(command).decode()
    else:
        assert b"cannot be written" not in shown_on_terminal(command)


@pytest.mark.any_ruby
def test_nothing_to_show(ruby, rbdump, kept, tmp_path):
    """One sentence, which says why."""
    path, loops, gvl = kept(ruby)

    def says(words, *arguments):
        done = run(rbdump, "report", *arguments)
        assert done.returncode == 0
        assert done.stderr == f"rbdump: there is nothing to show from {words}\n"

    nothing = "no sample matches the view and the filters"
    says(f"the recording: {nothing}", path, "--thread", "no such thread")
    says(f"the recording: {nothing}", path, "--from", 1000)
    idle = tmp_path / "idle.rbdump"
    sleeper = subprocess.Popen([ruby.path, "-e", "print :ready; $stdout.flush; sleep"], stdout=subprocess.PIPE)
    try:
        assert sleeper.stdout.read(5) == b"ready"
        wait_until(lambda: task_states(sleeper.pid) == {"S"}, "it sleeps")
        with Recording(rbdump, "-p", sleeper.pid, file=idle) as recording:
            recording.wait_for_samples()
            assert recording.end(signal.SIGINT)[0] == 0
        says("the recording: all samples are of idle threads; --idle shows these samples", idle)
        says(f"the recording: {nothing}", idle, "--state", "gvl")
        collecting = tmp_path / "gc.rbdump"
        assert record(rbdump, "-p", sleeper.pid, "-d", 1, "--gc", file=collecting)[0] == 0
        says("the recording: no thread was in one of the states that were recorded", collecting)
    finally:
        sleeper.kill()
        sleeper.wait()
        sleeper.stdout.close()
    # Of two recordings, that which is empty is named.
    says(f"the recording of --diff: {nothing}", path, "--diff", idle, "--pid", gvl)
    says(f"the recording: {nothing}", idle, "--diff", path, "--pid", loops)


@pytest.mark.long
@pytest.mark.outer_rubies
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_to_a_file(ruby, rbdump, kept, tmp_path, form):
    """Written whole, or not at all; on standard output it is the same."""
    path, _, _ = kept(ruby)
    done = run(rbdump, "report", path, "-f", form, "-o", tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = (tmp_path / "out").read_bytes()
    printed = subprocess.run([rbdump, "report", path, "-f", form], capture_output=True, check=True, timeout=60).stdout
    assert written and (printed == written or form == "pprof")  # gzip may note the time
    check_refusal(run(rbdump, "report", path, "-f", form, "-o", tmp_path / "none/out"), FAILED, "No such file")
    check_refusal(run(rbdump, "report", path, "-f", form, "-o", "/dev/full"), FAILED, "No space left")


@pytest.mark.long
@pytest.mark.any_ruby
def test_merged_files(ruby, rbdump, tmp_path):
    """Recordings of two targets that have other shares: each keeps its own."""
    wanted = {"first": (60, 30, 10), "second": (10, 30, 60)}
    for _ in range(3):
        truths, pids, parts, truth_of, unclear = {}, {}, {}, {}, {}
        with contextlib.ExitStack() as stack:
            targets = {name: stack.enter_context(Running(ruby, "shares/loops.rb", *wanted[name])) for name in wanted}
            recordings = {
                name: stack.enter_context(
                    Recording(rbdump, "-p", target.pid, "-r", 200, "-d", 3, file=tmp_path / f"{name}.rbdump")
                )
                for name, target in targets.items()
            }
            for name, recording in recordings.items():
                status, _, errors = recording.end()
                assert status == 0, errors
                pids[name] = targets[name].pid
                truths[name] = timelines(targets[name].finish())["main"]
                parts[name] = report(rbdump, recording.file, "--idle")
        if not any(stood_still(part, 3) for part in parts.values()):
            break
    merged = report(rbdump, *[recording.file for recording in recordings.values()], "--idle")
    check_well_formed(merged)
    assert sorted(merged.pids()) == sorted(pids.values())
    assert merged.weight() == sum(part.weight() for part in parts.values())
    for key in merged.counts:
        assert merged.counts[key] == sum(part.counts[key] for part in parts.values())
    for name, pid in pids.items():
        found = shares_of(merged.of(pid, main=True), lambda one: one.method(*LOOPS))
        times = interval(parts[name], parts[name].of(main=True))
        told = {f"Loops#{key}": share for key, share in truths[name].wall(*times).items()}
        unclear[name] = unseen(parts[name], parts[name].of(main=True))
        assert close(found, told, POINTS + unclear[name]), (name, found, told, unclear)
        truth_of[name] = told
        # The same moments, on one clock.
        alone = min(one.start for one in parts[name].spans) + parts[name].start
        together = min(one.start for one in merged.of(pid)) + merged.start
        assert abs(alone - together) < 1_000_000
    # --diff: each method has changed as the targets say; a has become less, and c more.
    first, second = (recording.file for recording in recordings.values())
    assert run(rbdump, "report", first, second).stdout.startswith(f"{first} and 1 more: ")
    done = run(rbdump, "report", second, "--diff", first, "-f", "collapsed")
    assert (done.returncode, done.stderr) == (0, "")
    before, after = collections.Counter(), collections.Counter()
    for line in done.stdout.splitlines():
        stack, was, now = line.rsplit(" ", 2)
        for name in LOOPS:
            before[name] += int(was) * (name in stack)
            after[name] += int(now) * (name in stack)
    for weights, name in [(before, "first"), (after, "second")]:
        found = {key: weight / sum(weights.values()) for key, weight in weights.items()}
        assert close(found, truth_of[name], POINTS + unclear[name]), (name, found, truth_of[name], unclear)
    changes = [line.split() for line in run(rbdump, "report", second, "--diff", first).stdout.splitlines()]
    change = {line[5]: float(line[0]) for line in changes if len(line) > 5 and line[5] in LOOPS}
    assert change["Loops#a"] < -5 and change["Loops#c"] > 5, change


def test_what_is_no_recording(rbdump, tmp_path):
    """One sentence that names the file."""
    packed = subprocess.run(["zstd", "-q"], input=b"something else\n" * 100, capture_output=True, check=True)
    foreign = {
        "empty": b"", "text": b"This is no recording.\n" * 100, "json": b'{"schema_version": 1}', "zeros": bytes(4096),
        "elf": pathlib.Path(rbdump).read_bytes()[:65536], "noise": random.Random(1).randbytes(65536),
        "packed": packed.stdout,
    }  # fmt: skip
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
        check_refusal(run(rbdump, "report", tmp_path / name), FAILED, str(tmp_path / name))
    check_refusal(run(rbdump, "report", tmp_path / "none"), FAILED, str(tmp_path / "none"), "No such file")
    check_refusal(run(rbdump, "report", tmp_path), FAILED, str(tmp_path))


@pytest.mark.any_ruby
def test_cut_short(ruby, rbdump, kept, tmp_path):
    """At whatever place: what is there is shown, and never more than there was; or a sentence says why not."""
    path, _, _ = kept(ruby)
    raw = path.read_bytes()
    whole = report(rbdump, path, "--idle")
    places = random.Random(1)
    lengths = [*range(0, 48), *(places.randrange(len(raw)) for _ in range(60)), *range(len(raw) - 16, len(raw))]
    cut = tmp_path / "cut.rbdump"
    before = (0, 0)
    for length in sorted(lengths):
        cut.write_bytes(raw[:length])
        done = run(rbdump, "report", cut, "-f", "json", "--idle")
        if done.returncode != CUT:
            check_refusal(done, FAILED, str(cut))
            assert before == (0, 0), f"with less than {length} bytes there was more"
            continue
        assert done.stderr.startswith("rbdump: ") and done.stderr.count("\n") == 1, done.stderr
        assert str(cut) in done.stderr
        profile = Profile(json.loads(done.stdout))
        check_well_formed(profile)
        assert profile.cut, length
        now = (profile.counts["samples"], profile.weight())
        assert before <= now <= (whole.counts["samples"], whole.weight()), length
        before = now
    # Nearly whole: nearly all is there.
    cut.write_bytes(raw[:-1])
    assert report(rbdump, cut, "--idle", status=CUT).end() >= whole.end() - 1.5 * SECOND
    for form in FORMATS:
        cut.write_bytes(raw[: 2 * len(raw) // 3])
        assert run(rbdump, "report", cut, "-f", form, "-o", tmp_path / "out").returncode == CUT, form


@pytest.mark.any_ruby
def test_damaged(ruby, rbdump, kept, tmp_path):
    """Bytes that are others: refused with a sentence, or shown as far as it goes; it never crashes nor hangs."""
    path, _, _ = kept(ruby)
    raw = path.read_bytes()
    places = random.Random(2)
    damaged = tmp_path / "damaged.rbdump"
    for _ in range(60):
        content = bytearray(raw)
        for _ in range(places.choice([1, 1, 4, 64])):
            content[places.randrange(len(content))] = places.randrange(256)
        damaged.write_bytes(content)
        done = run(rbdump, "report", damaged, "-f", "json", "--idle")
        if done.returncode in (0, CUT):
            assert Profile(json.loads(done.stdout)).cut == (done.returncode == CUT)
        else:
            check_refusal(done, FAILED, str(damaged))


@pytest.mark.any_ruby
def test_two_recordings_in_one_file(ruby, rbdump, kept, tmp_path):
    """As `cat` puts them together: refused, or said to be cut, or both; no name of one is a name of the other's."""
    path, _, _ = kept(ruby)
    script = tmp_path / "other.rb"
    script.write_text(
        "Thread.new { STDIN.read; exit!(0) }\nputs 'ready'\nSTDOUT.flush\n"
        "def other; i = 0; i += 1 while i < 1000; end\ndef another; other; end\nloop { another }\n"
    )
    with Running(ruby, script) as target:
        status, _, errors = record(rbdump, "-p", target.pid, "-r", 200, "-d", 1, file=tmp_path / "other.rbdump")
        assert status == 0, errors
    both = tmp_path / "both.rbdump"
    both.write_bytes(path.read_bytes() + (tmp_path / "other.rbdump").read_bytes())
    done = run(rbdump, "report", both, "-f", "json", "--idle")
    if done.returncode not in (0, CUT):
        check_refusal(done, FAILED, str(both))
        return
    profile = Profile(json.loads(done.stdout))
    first, second = report(rbdump, path), report(rbdump, tmp_path / "other.rbdump")
    assert profile.cut or profile.counts["samples"] == first.counts["samples"] + second.counts["samples"]
    for one in profile.spans:
        names = {frame["name"] for frame in one.frames}
        assert not (names & {"Object#other", "Object#another"} and one.pid != target.pid), (one.pid, names)
        assert not (names & {*LOOPS, "Contest#left"} and one.pid == target.pid), (one.pid, names)
