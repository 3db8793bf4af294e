"""rbdump heap --paths: what keeps the objects of each class alive, and how much each path has grown."""

import json
import re
import subprocess

import pytest
from harness.core import gcore_of
from harness.dump import run
from harness.heap import build, has_constants, heap, leaking

USAGE = 64

# The class of what leaks, and what it is kept by.
LEAKS = {
    "InCache": "class Store → @cache → Hash",
    "InThread": "fiber-local variable pending of thread 2 → Array",
    "InClosure": "class Events → constant HANDLERS → Array → Proc → imemo_env",
    "InExtension": "C variable held of truth.so → Array",
}


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return build(tmp_path_factory.mktemp("extension"))


def paths_of(answer):
    return {row["class"]: row["paths"] for row in answer["classes"] if row["class"] in LEAKS}


def leaks_of(ruby):
    """The leaks that rbdump finds a path to. Up to 2.2, the variables of a block are in another object."""
    if not has_constants(ruby):
        return {name: path for name, path in LEAKS.items() if "class " not in path}
    return {name: path if ruby.series >= (2, 3) else path.replace("imemo_env", "RubyVM::Env") for name, path in LEAKS.items()}


def test_growth(ruby, rbdump, extension, tmp_path):
    """From none to 2,000 objects of each class that leaks, and from 2,000 to 4,000."""
    first, second = (tmp_path / name for name in ("first.json", "second.json"))
    with leaking(ruby, extension, rbdump, tmp_path, "--paths") as (program, before):
        grown = heap(rbdump, "--paths", "--diff", before, program.pid)
        first.write_text(run(rbdump, "heap", "--json", "--paths", program.pid).stdout)
        second.write_text(run(rbdump, "heap", "--json", program.pid).stdout)
        files = heap(rbdump, "--diff", before, first)
        files_text = run(rbdump, "heap", "--diff", before, first)
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"done\n"
        more = heap(rbdump, "--paths", "--diff", first, program.pid)
        text = run(rbdump, "heap", "--paths", "--diff", first, program.pid)
        alone = run(rbdump, "heap", "--paths", program.pid)
        without = run(rbdump, "heap", "--paths", "--diff", second, program.pid)
    assert grown["has_paths"] and more["has_paths"]
    # Two files tell the same as a file and the process.
    assert [(row["class"], row["objects"], row["before"]) for row in files["classes"] if row["class"] in LEAKS] == [
        (row["class"], row["objects"], row["before"]) for row in grown["classes"] if row["class"] in LEAKS
    ]
    assert {name: paths[0] for name, paths in paths_of(files).items()} == {name: paths[0] for name, paths in paths_of(grown).items()}
    assert files_text.returncode == 0 and re.search(r"^ +2,000 +\+2,000 .* InCache \(T_OBJECT\)$", files_text.stdout, re.M)
    for name, path in leaks_of(ruby).items():
        if ruby.series >= (4, 0):  # an object of Ruby itself holds the instance variables of a class
            path = path.replace("class Store → @cache", "class Store → imemo_fields → @cache")
        (start, *_), (end, *_) = paths_of(grown)[name], paths_of(more)[name]
        assert (start["path"], start["before"]) == (path, 0) and 1_998 <= start["objects"] <= 2_000
        assert (end["path"], end["before"]) == (path, start["objects"]) and 3_998 <= end["objects"] <= 4_000
        counts = f"{end['objects']:,} +\\+{end['objects'] - end['before']:,} +"
        row = rf"^ +4,000 +\+2,000 .* {name} \(T_OBJECT\)\n +{counts}{re.escape(path)}$"
        assert re.search(row, text.stdout, re.M), text.stdout
        assert re.search(rf" {name} \(T_OBJECT\)\n +[34],\d\d\d +{re.escape(path)}$", alone.stdout, re.M), alone.stdout
    # Names of instance variables, which are never freed; and the classes of which most more is kept come first.
    (names,) = [path for row in more["classes"][:3] if row["class"] == "String" for path in row["paths"] if path["path"].startswith("symbol table")]
    assert names["objects"] - names["before"] >= 2_000
    kept = [kept_more(row) for row in more["classes"] if all(path["before"] is not None for path in row["paths"])]
    assert len(kept) > 10
    assert kept == sorted(kept, reverse=True)
    assert "The earlier file has no paths" in without.stdout and "The earlier file" not in text.stdout


def kept_more(row):
    """About how many bytes more than before the paths of a class keep."""
    more = sum(max(0, path["objects"] - path["before"]) for path in row["paths"])
    return more and more * (row["slot_bytes"] + row["owned_bytes"]) / row["objects"]


@pytest.mark.any_ruby
def test_paths_that_are_not_in_a_file(rbdump, tmp_path):
    """A file has 200 paths of a class at most. Of a path that it does not have, it is not known how many objects there were."""
    first, second = (tmp_path / name for name in ("first.json", "second.json"))

    def write(file, paths):
        row = {"class": "String", "type": "T_STRING", "objects": 3_000, "slot_bytes": 120_000, "paths": paths}
        file.write_text(json.dumps({"schema_version": 1, "pid": 1, "has_paths": True, "classes": [row]}))

    def grown():
        (row,) = json.loads(run(rbdump, "heap", "--json", "--diff", first, second).stdout)["classes"]
        return {path["path"]: (path["objects"], path["before"]) for path in row["paths"]}

    old = [{"path": f"old {i}", "objects": 10 + i} for i in range(200)]
    write(second, [{"path": "new", "objects": 50}, *old[:-2]])
    write(first, old[1:])
    assert grown() == {"new": (50, 0), "old 0": (10, 0), "old 198": (0, 208), "old 199": (0, 209)} | {
        one["path"]: (one["objects"], one["objects"]) for one in old[1:-2]
    }
    # Neither is it known how many objects there are now.
    write(second, [{"path": "new", "objects": 50}, *old[:-1]])
    write(first, old)
    assert grown() == {"new": (50, None)} | {one["path"]: (one["objects"], one["objects"]) for one in old[:-1]}
    text = run(rbdump, "heap", "--diff", first, second).stdout
    assert re.search(r"^ +50 +> \+40 +new$", text, re.M), text


@pytest.mark.three_rubies
def test_all_objects(ruby, rbdump, extension, tmp_path):
    """The paths of a class are those of all its objects that --why finds a path to."""
    with leaking(ruby, extension, rbdump, tmp_path) as (program, _), gcore_of(program.pid, tmp_path) as core:
        answer = heap(rbdump, "--paths", "--core", core)
        rows = {(row["class"], row["type"]): row for row in answer["classes"]}
        whys = {
            name: json.loads(run(rbdump, "heap", "--why", name, "--json", "--core", core).stdout)
            for name in (*LEAKS, "String", "IO", "Thread")
        }
    assert answer["complete"] and bool(answer["path_doubts"]) == (ruby.series < (2, 5))
    for name, why in whys.items():
        of_class = [row for (klass, _), row in rows.items() if klass == name]
        found = [path for row in of_class for path in row["paths"]]
        assert sum(row["objects"] for row in of_class) == why["found"]
        kept = sum(path["objects"] for path in found)
        assert kept == why["reached"] if len(found) < 200 else 0 < kept <= why["reached"], name
        assert [path["objects"] for row in of_class for path in row["paths"]] == sorted((path["objects"] for path in found), reverse=True)
        assert len({path["path"] for path in found}) == len(found)
        # The addresses of variables without a name are in their file; there is none of an object.
        assert not any(re.search(r"(?<!C variable) 0x", path["path"]) for path in found)


# A list, and a class whose instances keep what they keep in two variables.
FORMS = """
class Listed
  def initialize(following) = @following = following
end
class Registry
  def initialize = (@names, @values = [], {})
  attr_reader :names, :values
end
class Named; end
class Valued; end
LIST = 3_000.times.inject(nil) { |following, _| Listed.new(following) }
REGISTRY = Registry.new
500.times { |number| REGISTRY.names << Named.new; REGISTRY.values[number] = Valued.new }
GC.start
$stdout.write("ready\\n")
$stdout.flush
sleep
"""


@pytest.mark.three_rubies
def test_forms(ruby, rbdump, tmp_path):
    script = FORMS
    if ruby.series < (3, 0):  # methods without `end`
        script = re.sub(r"def (initialize(?:\(\w+\))?) = (.*)$", r"def \1; \2; end", FORMS, flags=re.M)
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", script], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            answer = heap(rbdump, "--paths", program.pid)
        finally:
            program.kill()
    if not has_constants(ruby):
        return
    paths = {row["class"]: row["paths"] for row in answer["classes"]}
    assert [(path["path"], path["objects"]) for path in paths["Listed"]] == [("constant LIST", 3_000)]
    assert [(path["path"], path["objects"]) for path in paths["Named"]][0] == ("constant REGISTRY → Registry → @names → Array", 500)
    assert [(path["path"], path["objects"]) for path in paths["Valued"]][0] == ("constant REGISTRY → Registry → @values → Hash", 500)


@pytest.mark.any_ruby
def test_refusals(rbdump):
    for arguments in (("--why", "x"), ("--dominators",), ("-f", "collapsed"), ("-f", "objspace")):
        wrong = run(rbdump, "heap", 1, "--paths", *arguments)
        assert (wrong.returncode, wrong.stdout) == (USAGE, ""), arguments
    for arguments in (("x", "--stop"), ("x", "--paths"), ("x", "y")):
        wrong = run(rbdump, "heap", "--diff", "z", *arguments)
        assert (wrong.returncode, wrong.stdout) == (USAGE, ""), arguments
