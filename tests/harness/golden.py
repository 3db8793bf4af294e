"""The golden cores, and what Ruby told of them when they were made (tests/golden/make.py)."""

import json
import pathlib
import subprocess

from harness.dump import STATES, difference, rbdumps_frames, thread_of

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


def golden_told(series):
    return json.loads((GOLDEN / f"{series}.json").read_text())


def unpack_golden(series, folder):
    """An unpacked copy in a folder."""
    core = pathlib.Path(folder) / f"{series}.core"
    subprocess.run(["zstd", "-qd", GOLDEN / f"{series}.core.zst", "-o", core], check=True, timeout=60)
    return core


def check_golden(answer, expected):
    """Every thread and frame is as Ruby told it."""
    assert (answer["pid"], answer["ruby_version"]) == (expected["pid"], expected["version"])
    assert len(expected["threads"]) == 8
    for subject in expected["threads"]:
        told = {key: value.encode() if isinstance(value, str) else value for key, value in subject.items()}
        thread = thread_of(answer, {**told, "tid": None})
        assert (thread["verdict"], thread["reason"]) == ("complete", None), subject["key"]
        assert thread["state"] in STATES[told["state"]]
        frames = [tuple(frame) for frame in subject["frames"]]
        differs = difference(rbdumps_frames(thread), frames)
        assert not differs, f"{subject['key']}: {differs}"
