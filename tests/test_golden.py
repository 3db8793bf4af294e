"""Golden cores: made once, of Rubies that need not be here, and read by the layouts of offsets.d/ alone."""

import json
import pathlib
import subprocess

import pytest
from harness.core import read_core
from harness.dump import STATES, difference, rbdumps_frames, thread_of

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
CORES = sorted(GOLDEN.glob("*.core.zst"))


def test_there_are_cores():
    assert [path.name for path in CORES] == ["2.7.core.zst", "3.1.core.zst", "3.3.core.zst", "3.4.core.zst"]


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.name.removesuffix(".core.zst"))
def test_golden_core(path, rbdump, tmp_path, monkeypatch):
    """Every thread and frame as Ruby told it; no executable, no symbol, no debug info."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = json.loads(path.with_name(path.name.replace(".core.zst", ".json")).read_text())
    answer = read_core(rbdump, path, "--ruby-version", expected["version"])
    assert (answer["pid"], answer["ruby_version"]) == (expected["pid"], expected["version"])
    assert answer["layout"]["source"] == "version"
    assert len(expected["threads"]) == 8
    for subject in expected["threads"]:
        told = {key: value.encode() if isinstance(value, str) else value for key, value in subject.items()}
        thread = thread_of(answer, {**told, "tid": None})
        assert (thread["verdict"], thread["reason"]) == ("complete", None), subject["key"]
        assert thread["state"] in STATES[told["state"]]
        frames = [tuple(frame) for frame in subject["frames"]]
        differs = difference(rbdumps_frames(thread), frames)
        assert not differs, f"{subject['key']}: {differs}"


@pytest.mark.parametrize("path", CORES, ids=lambda path: path.name.removesuffix(".core.zst"))
def test_golden_core_tells_nothing_of_its_maker(path):
    """Paths of neutral folders only, and no environment."""
    content = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True, timeout=60).stdout
    assert not [word for word in (b"/root", b"/home", b"/tmp/", b"/nix/", b"HOME=", b"PATH=/", b"USER=") if word in content]
