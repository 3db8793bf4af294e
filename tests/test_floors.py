"""tests/floors.py, which `make lint` runs: the sources keep to dumper/floors, and what does not is told."""

import re
import shutil
import subprocess

import pytest
from harness.synthetic import ROOT


@pytest.fixture
def tree(tmp_path):
    """A copy of the C sources."""
    for folder in ("dumper", "gen"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests/floors.py", tmp_path / "tests")
    return tmp_path


def floors(tree, *arguments):
    done = subprocess.run(
        [tree / "tests/floors.py", *arguments], capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, (done.stderr or done.stdout).splitlines()


def test_all_is_as_it_should_be(tree):
    """All edges go down: a folder names only such as were printed before it."""
    status, graph = floors(tree, "--graph")
    assert status == 0 and len(graph) > 15
    above = set()
    for line in graph:
        folder, *edges = line.split()
        assert {re.sub(r"\(.*", "", edge) for edge in edges} <= above
        above.add(folder.rstrip(":"))


@pytest.mark.parametrize(
    "line",
    [
        '#include "record/record.h"',
        '#include "../record/record.h"',
        "#include <record/record.h>",
        ' # include "record/record.h"',
        '#include "dumper/record/record.h"',
    ],
)
def test_include_of_a_floor_above(tree, line):
    header = tree / "dumper/base/clock.h"
    header.write_text(header.read_text().replace("#include", f"{line}\n#include", 1))
    status, wrong = floors(tree)
    assert status == 1
    assert "dumper/base/clock.h: includes dumper/record/record.h, and base is not to know record" in wrong


def test_folder_within_a_folder(tree):
    (tree / "dumper/record/base").mkdir()
    (tree / "dumper/record/base/more.h").write_text("")
    assert floors(tree) == (1, ["dumper/record/base/more.h: the folder is not in dumper/floors"])


def test_circle_within_a_folder(tree):
    header = tree / "dumper/memory/footprint.h"
    header.write_text(header.read_text() + '#include "memory/memory.h"\n')
    other = tree / "dumper/memory/memory.h"
    other.write_text(other.read_text() + '#include "memory/footprint.h"\n')
    status, wrong = floors(tree)
    assert status == 1
    assert "these need each other: dumper/memory/footprint, dumper/memory/memory" in wrong


@pytest.mark.parametrize(
    "text, said",
    [("\n" * 601, "601 lines; no file"), ("/*" + " " * 130 + "*/\n", ":1: more than 128 columns")],
    ids=("file", "line"),
)
def test_too_long(tree, text, said):
    (tree / "dumper/base/long.h").write_text(text)
    status, wrong = floors(tree)
    assert status == 1 and len(wrong) == 1 and said in wrong[0]
