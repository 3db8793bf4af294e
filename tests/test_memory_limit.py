"""What report takes of memory: recordings that ask for more than the limit are refused with a sentence, by all formats."""

import os
import re
from pathlib import Path

import pytest

from harness import bombs
from harness.usage import measured

FAILED, USAGE = 2, 64
ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
LIMIT = 256
FEW_STACKS = 96  # MB, in which a million frames have room, and not twice as many
FORMATS = ("summary", "flamegraph", "collapsed", "speedscope", "pprof", "firefox", "callgrind", "json")

pytestmark = pytest.mark.skipif(
    os.environ.get("SAN") == "1", reason="a sanitizer's shadow memory does not go with a limit of memory"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bombs")


def report(rbdump, *arguments):
    """Exit status, what it said on stderr, and the most memory that it had, in MiB."""
    done = measured(rbdump, "report", *arguments)
    return done.status, done.errors, done.mib


def refused(rbdump, *arguments, limit=LIMIT):
    status, said, mib = report(rbdump, *arguments)
    assert mib < limit, f"{mib:.0f} MiB"
    assert status == FAILED, said
    assert re.fullmatch(rf"rbdump: the report needs more memory than the limit of {limit} MB: .*--max-memory MB.*\n", said), said


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(set(bombs.BOMBS) - {"one_record"}))
def test_bomb(rbdump, folder, kind):
    """Under a limit that is soon reached; the sum is the same under any."""
    bomb = bombs.write(folder / kind, bombs.BOMBS[kind])
    assert bomb.stat().st_size < 48 * MIB
    refused(rbdump, "--max-memory", bombs.LOW_LIMIT, bomb, limit=bombs.LOW_LIMIT)
    if kind in bombs.UNDER_ANY_LIMIT:
        refused(rbdump, bomb)


def test_long_record(rbdump, folder):
    """Each frame may be unpacked, one at a time."""
    bomb = bombs.write(folder / "one_record", bombs.of_one_record)
    status, said, mib = report(rbdump, bomb)
    assert (status, mib < LIMIT) == (1, True), said
    assert "was not finished" in said
    refused(rbdump, "--max-memory", 100, bomb, limit=100)


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_format(rbdump, folder, name):
    """What can be read, and takes more when it is written: no format goes beyond the limit, or dies of it."""
    bomb = folder / "stacks"
    if not bomb.exists():
        bombs.write_nodes(bomb, 9, 100_000)
    status, said, mib = report(rbdump, "-f", name, "--max-memory", FEW_STACKS, "-o", folder / "out", bomb)
    assert mib < FEW_STACKS, f"{mib:.0f} MiB"
    assert status in (1, FAILED), said
    assert status == 1 or f"needs more memory than the limit of {FEW_STACKS} MB" in said


@pytest.mark.long
def test_several(rbdump, folder):
    """Of many that would do alone, and of one that is compared."""
    low = ("--max-memory", FEW_STACKS)
    one = bombs.write_nodes(folder / "half", 12, 131_000)
    assert report(rbdump, *low, one)[0] == 1
    others = []
    for i in range(2):
        others.append(bombs.write_nodes(folder / f"other{i}", 12, 131_000, 1000 * (i + 1)))
    refused(rbdump, *low, one, *others, limit=FEW_STACKS)
    refused(rbdump, *low, "--diff", others[0], one, limit=FEW_STACKS)


def test_limit_is_asked_for(rbdump, folder):
    bomb = bombs.write_nodes(folder / "small", 20, 100_000)
    refused(rbdump, "--max-memory", 48, bomb, limit=48)
    status, said, _ = report(rbdump, "--max-memory", 1024, bomb)
    assert status == 1 and "was not finished" in said
    for wrong in ("31", "0", "-1", "1.5", "x", "", "1048577"):
        status, said, _ = report(rbdump, "--max-memory", wrong, bomb)
        assert status == USAGE and "is not a number of MB from 32 to 1048576" in said


def test_doc_and_code_agree():
    """How much a reader takes is a constant, and the format's description has the same number."""
    header = (ROOT / "dumper/recording/format.h").read_text()
    doc = " ".join((ROOT / "doc/recording.md").read_text().split())
    most = {name: int(value) for name, value in re.findall(r"RECORDING_(\w+)_MAX\s+(\d+)u", header)}
    assert set(most) == {"DEPTH", "PROCESSES", "THREADS"}
    assert f"at most {most['PROCESSES']:,} processes and {most['THREADS']:,} threads" in doc
    assert f"{most['DEPTH']:,} frames" in doc
