"""rbdump heap: the references between objects, against what Ruby's own collector marks, and what is made of them."""

import gzip
import json
import re
import subprocess

import pytest
from harness.core import gcore_of
from harness.dump import run
from harness.heap import HERE, Objects, build

FAILED, USAGE = 2, 64

# T_DATA of which rbdump finds other references than the C code marks. They keep them in memory that only that code knows, or
# have words that are no references.
DIFFERENT_DATA = {
    "VM/thread", "fiber", "ractor", "autoload_const", "autoload_data", "autoload_table", "generator", "method", "random/MT",
    "memory_view/exported_object_registry", "VM/pin_array_list", "marshal_compat_table", "autoload_i", "VM/managed_id_table",
}  # fmt: skip


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return build(tmp_path_factory.mktemp("extension"))


def written(lines):
    """What -f objspace has written: the objects by their addresses."""
    parsed = (json.loads(line) for line in lines)
    return {int(one["address"], 16): one for one in parsed if one["type"] != "ROOT"}


def kind(one):
    return one.get("imemo_type") or one.get("struct") or one["type"]


def differences(objects, truth):
    """The kinds of objects whose references are not those that Ruby marks, each with an example."""
    found = {}
    for one in truth.objects:
        mine = objects[one.address]
        klass = int(mine.get("class", "0"), 16)
        refs = {int(ref, 16) for ref in mine.get("references", ())} - {klass}
        marked = set(truth.references[one.address]) - {klass}
        if refs != marked:
            found[(mine["type"], kind(mine))] = (hex(one.address), [*map(hex, marked - refs)], [*map(hex, refs - marked)])
    return found


def check(objects, truth):
    assert set(objects) == {one.address for one in truth.objects}
    for one in truth.objects:
        assert f"T_{objects[one.address]['type']}" == one.type
        assert objects[one.address]["slot_size"] == one.slot_size
        assert objects[one.address].get("memsize", one.size) == one.size, objects[one.address]
    found = differences(objects, truth)
    assert {key: value for key, value in found.items() if key[0] != "DATA"} == {}
    assert {name for _, name in found} <= DIFFERENT_DATA, found


def test_references(ruby, rbdump, extension):
    with Objects(ruby, extension, references=True) as truth:
        done = run(rbdump, "heap", "-f", "objspace", truth.pid)
    assert done.returncode == 0, done.stderr
    assert "The process ran while its heap was read" in done.stderr
    check(written(done.stdout.splitlines()), truth)


@pytest.mark.three_rubies
def test_references_of_core(ruby, rbdump, extension, tmp_path):
    file = tmp_path / "heap.json.gz"
    with Objects(ruby, extension, references=True) as truth, gcore_of(truth.pid, tmp_path) as core:
        done = run(rbdump, "heap", "-f", "objspace", "-o", file, "--core", core)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    with gzip.open(file, "rt") as lines:
        check(written(lines), truth)
