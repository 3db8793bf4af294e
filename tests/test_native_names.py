"""Names of native functions: from a server of debug info, and by a process that can do little else than read them."""

import json
import os
import re
import signal
import subprocess

import pytest
from harness import debuginfod
from harness.dump import dump, run
from harness.mixed import HERE, Extension, Mixed
from harness.native import native, of_ruby
from harness.process import children_of, is_untouched, wait_until

pytestmark = pytest.mark.newest_ruby
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of other users need root")


@pytest.fixture
def split(tmp_path):
    """The extension without symbols; its debug info is with `split.debug`, and its build-id is `split.build_id`."""
    extension = Extension(tmp_path, with_debug=True)
    extension.debug = tmp_path / "mixed.debug"
    notes = subprocess.run(["readelf", "-n", extension.path], check=True, capture_output=True, text=True, timeout=60).stdout
    extension.build_id = re.search(r"Build ID: (\w+)", notes)[1]
    subprocess.run(["objcopy", "--only-keep-debug", extension.path, extension.debug], check=True, timeout=60)
    subprocess.run(["strip", extension.path], check=True, timeout=60)
    return extension


def functions_of(answer, extension):
    """The frames of the extension's functions."""
    frames = [frame for thread in answer["threads"] for frame in native(thread)]
    return [frame for frame in frames if frame["module"] == str(extension.path)]


def dump_with(rbdump, pid, url, cache, *options, status=0):
    done = run(
        rbdump, "-p", pid, "--json", "--native", *options, env=dict(os.environ, **debuginfod.settings(url, cache))
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def test_from_a_server(rbdump, ruby, split, tmp_path):
    debuginfod.put(tmp_path / "served", split.build_id, split.debug)
    with Mixed(ruby, split, depth=4) as mixed:
        without = functions_of(dump(rbdump, mixed.pid, "--native"), split)
        with debuginfod.serving(tmp_path / "served") as (url, asked):
            answer = dump_with(rbdump, mixed.pid, url, tmp_path / "cache")
    found = functions_of(answer, split)
    assert f"/buildid/{split.build_id}/debuginfo" in asked
    assert "native_names_missing" not in answer
    assert [frame["address"] for frame in found] == [frame["address"] for frame in without]
    assert all(frame["name"].startswith("mixed.so+0x") for frame in without)
    assert {"mixed_yields", "mixed_calls", "mixed_ensures"} <= {frame["name"] for frame in found}
    assert {frame["path"] for frame in found} == {str(HERE / "mixed.c")}


@pytest.mark.parametrize("limit", [{}, {"DEBUGINFOD_TIMEOUT": "0"}, {"DEBUGINFOD_MAXTIME": "0"}], ids=["limits", "no timeout", "any time"])
def test_server_that_has_nothing(rbdump, ruby, split, tmp_path, monkeypatch, limit):
    """It has answered, so no names are missing that it could have."""
    for name, value in limit.items():
        monkeypatch.setenv(name, value)
    with Mixed(ruby, split, depth=1) as mixed, debuginfod.serving(tmp_path) as (url, asked):
        answer = dump_with(rbdump, mixed.pid, url, tmp_path / "cache")
    assert asked and "native_names_missing" not in answer


def check_silence(answer, plain, why):
    """The stacks of Ruby are whole, and it is said why names may be missing."""
    assert re.search(why, answer["native_names_missing"]), answer["native_names_missing"]
    assert [of_ruby(thread) for thread in answer["threads"]] == [thread["frames"] for thread in plain["threads"]]
    assert all(native(thread) for thread in answer["threads"])


def test_server_that_is_silent(rbdump, ruby, split, tmp_path):
    """It is asked once, for a part of the time limit; names that are in the files themselves are found all the same."""
    with Mixed(ruby, split, depth=1) as mixed, debuginfod.silent() as url:
        plain = dump(rbdump, mixed.pid)
        answer = dump_with(rbdump, mixed.pid, url, tmp_path / "cache", "--time-limit", 30)
        check_silence(answer, plain, "did not answer in time")
        assert "rb_ary_collect" in {frame["name"] for thread in answer["threads"] for frame in native(thread)}
        done = run(
            rbdump, mixed.pid, "--native", "--time-limit", 30,
            env=dict(os.environ, **debuginfod.settings(url, tmp_path / "cache2")),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert re.search(r"^Names of native functions may be missing: the debuginfod servers .* did not answer in time$", done.stdout, re.M)
        assert is_untouched(mixed.pid)


def test_reading_that_takes_too_long(rbdump, ruby, split, tmp_path):
    """The user lets servers take as long as they want: not longer than for half of the time limit."""
    with Mixed(ruby, split, depth=1) as mixed, debuginfod.silent() as url:
        plain = dump(rbdump, mixed.pid)
        environment = dict(os.environ, **debuginfod.settings(url, tmp_path / "cache"), DEBUGINFOD_TIMEOUT="600", DEBUGINFOD_MAXTIME="600")
        done = run(rbdump, "-p", mixed.pid, "--json", "--native", "--time-limit", 20, env=environment)
        assert done.returncode == 0, done.stderr
        check_silence(json.loads(done.stdout), plain, "takes more than 10 s")


@needs_root
@pytest.mark.parametrize("owner", [0, 1234])
def test_root_does_not_ask_about_a_process_with_files_of_others(rbdump, ruby, split, tmp_path, owner):
    os.chown(split.path, owner, owner)
    debuginfod.put(tmp_path / "served", split.build_id, split.debug)
    with Mixed(ruby, split, depth=1) as mixed, debuginfod.serving(tmp_path / "served") as (url, asked):
        answer = dump_with(rbdump, mixed.pid, url, tmp_path / "cache")
    names = {frame["name"] for frame in functions_of(answer, split)}
    assert (bool(asked), "mixed_calls" in names) == ((True, True) if owner == 0 else (False, False))


def has_filter(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            return "Seccomp:\t2\n" in status.read()
    except OSError:
        return False


def test_reader_that_is_killed(rbdump, ruby, split, tmp_path):
    with Mixed(ruby, split, depth=1) as mixed, debuginfod.silent() as url:
        plain = dump(rbdump, mixed.pid)
        with subprocess.Popen(
            [rbdump, "-p", str(mixed.pid), "--json", "--native"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env=dict(os.environ, **debuginfod.settings(url, tmp_path / "cache")),
        ) as process:  # fmt: skip
            try:
                readers = lambda: [pid for pid in children_of(process.pid) if has_filter(pid)]  # noqa: E731
                wait_until(readers, "the reader is confined")
                (reader,) = readers()
                os.kill(reader, signal.SIGKILL)
                output, _ = process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode == 0
        check_silence(json.loads(output), plain, "took too much memory, or was killed")


def test_files_are_read_by_a_confined_process(rbdump, ruby, split, tmp_path):
    """Names are read by a process that has a filter, and had opened none of the target's files before it."""
    with Mixed(ruby, split, depth=1) as mixed:
        subprocess.run(
            ["strace", "-ff", "-o", tmp_path / "log", rbdump, "-p", str(mixed.pid), "--native"],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
    logs = [log.read_text().splitlines() for log in tmp_path.glob("log.*")]
    (calls,) = [log for log in logs if any("SECCOMP" in call and "FILTER" in call and call.endswith("= 0") for call in log)]
    filtered = next(i for i, call in enumerate(calls) if "FILTER" in call and call.endswith("= 0"))
    assert any("PR_SET_NO_NEW_PRIVS" in call for call in calls[:filtered])
    assert any(call.startswith("capset(") for call in calls[:filtered])
    # Nothing is read of a file before, and debug files are looked for after it.
    assert not [call for call in calls[:filtered] if call.startswith(("pread64(", "memfd_create("))]
    assert [call for call in calls[filtered:] if call.startswith("memfd_create(")]
    looked_for = "/usr/lib/debug/.build-id/"
    assert [call for call in calls[filtered:] if looked_for in call]
    assert not [call for log in logs if log is not calls for call in log if looked_for in call and call.startswith("open")]
