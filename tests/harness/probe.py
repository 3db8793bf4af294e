"""tests/probes/: programs that show one part of rbdump from outside."""

import os
import pathlib

BUILD = pathlib.Path(__file__).resolve().parent.parent.parent / "build"


def probe_path(name):
    """Path of a probe that make has built (with SAN=1 the sanitized one)."""
    path = BUILD / ("san" if os.environ.get("SAN") == "1" else "") / "tests/probes" / name
    assert path.exists(), f"{path} is not there: run make probes"
    return str(path)
