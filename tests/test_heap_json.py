"""The JSON of rbdump heap --why, --dominators and of rbdump object: the same as the text, and as what the program is."""

import json
import re
import subprocess

import pytest
from harness.core import gcore_of
from harness.dump import run
from harness.heap import build, leaking


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    return build(tmp_path_factory.mktemp("extension"))


@pytest.fixture
def core(ruby, extension, rbdump, tmp_path):
    """The core of the program that leaks: it does not change from one command to the next."""
    with leaking(ruby, extension, rbdump, tmp_path) as (program, _), gcore_of(program.pid, tmp_path) as core:
        yield core


def answers(rbdump, *arguments):
    """What a command prints as text, and as JSON."""
    text, parsed = (run(rbdump, *arguments, *more) for more in ([], ["--json"]))
    assert (text.returncode, parsed.returncode) == (0, 0), text.stderr + parsed.stderr
    return text.stdout, json.loads(parsed.stdout)


NOTES = {"exact": "", "declared": " (declared)", "conservative": " (perhaps)"}


def step(one):
    assert one["perhaps"] == (one["certainty"] == "conservative")
    by = one["by"] and one["by"] + NOTES[one["certainty"]] + " → "
    return (by or "") + one["text"]


def lines(one, depth=0):
    """The rows of a tree as the text has them: the part of the weight, the number of objects, the depth and the words."""
    for row in one["rows"]:
        yield row["objects"], depth, step(row) if "text" in row else row["class"]
        below = depth + 1
        if "list" in row:
            yield None, below, f"… {row['list']:,} more, each kept by the one before"
            below += 1
        yield from lines(row, below)
    if one.get("left_out"):
        yield None, depth, "…"


def printed(text):
    """The same of the text."""
    tree = re.split(r"^ +(?:leads to|retained) +% +objects\n", text, flags=re.M)[1]
    for line in tree.splitlines():
        objects, words = line[20:32].strip(), line[34:]
        yield int(objects.replace(",", "")) if objects else None, (len(words) - len(words.lstrip())) // 2, words.lstrip()


def weights(rows, key):
    """The weights of all rows."""
    for row in rows:
        yield row[key]
        yield from weights(row["rows"], key)


@pytest.mark.three_rubies
def test_trees(rbdump, core):
    text, parsed = answers(rbdump, "heap", "--core", core, "--why", "InCache", "--depth", 9)
    assert (parsed["found"], parsed["reached"], parsed["mode"], parsed["complete"]) == (2_000, 2_000, "core", True)
    assert [*lines(parsed)] == [*printed(text)]
    path = parsed["rows"]
    while path[0]["rows"]:
        assert path[0]["leads_to"] == 2_000
        path = path[0]["rows"]
    assert (path[0]["class"], path[0]["type"], path[0]["objects"]) == ("InCache", "T_OBJECT", 2_000)

    text = run(rbdump, "heap", "--core", core, "--dominators", "--all").stdout
    _, parsed = answers(rbdump, "heap", "--core", core, "--dominators")
    assert [*lines(parsed)] == [*printed(text)]
    assert sum(row["retained"] for row in parsed["rows"]) <= parsed["bytes"]
    assert all(weight >= parsed["bytes"] // 200 for weight in weights(parsed["rows"], "retained"))


@pytest.mark.three_rubies
def test_rows_and_levels(rbdump, core):
    def rows(*more):
        return [*printed(run(rbdump, "heap", "--core", core, "--dominators", *more).stdout)]

    everything = rows("--all", "--depth", 1000)
    assert not any(words == "…" for _, _, words in everything)
    few = rows("--top", 3, "--depth", 2)
    assert {depth for _, depth, _ in few if depth > 1} <= {2}
    assert [words for _, depth, words in few if depth == 0] == [words for _, depth, words in everything if depth == 0][:3] + ["…"]


@pytest.mark.three_rubies
def test_path_and_object(rbdump, core):
    tree = answers(rbdump, "heap", "--core", core, "--why", "InExtension")[1]
    array = next(row for row in rows_of(tree) if row.get("text", "").startswith("Array (2001 entries) "))
    text, parsed = answers(rbdump, "heap", "--core", core, "--why", array["address"])
    assert [step(one) for one in parsed["path"]] == [line[2:] for line in text.splitlines() if line.startswith("  ")]
    assert parsed["length"] == len(parsed["path"]) and parsed["path"][-1]["address"] == array["address"]

    text, parsed = answers(rbdump, "object", "--core", core, array["address"], "--all")
    one = parsed["object"]
    assert text.startswith(f"{one['text']}\n  {one['type']} in a slot of {one['slot_bytes']} bytes")
    assert (one["class"], one["type"], one["dead"]) == ("Array", "T_ARRAY", False)
    assert one["owned_bytes"] >= 2_001 * 8
    out, back, roots = parsed["refers_to"], parsed["referred_to_by"], parsed["roots"]
    # The class, and all elements but the first, which is nil.
    assert out["count"] == len(out["list"]) == 2_001 and out["complete"]
    assert sum(ref["text"].startswith("InExtension 0x") for ref in out["list"]) == 2_000
    parts = re.split(r"\n\nRefer.*", text)
    assert [step(ref) for ref in out["list"]] == [line[2:] for line in parts[1].splitlines() if line]
    assert [ref["text"] + ", " + ref["by"] + NOTES[ref["certainty"]] for ref in back["list"]] == [line[2:] for line in parts[2].splitlines() if line]
    assert roots["count"] == len(roots["list"]) == len([line for line in parts[3].splitlines() if line])
    assert any(root["text"] == "C variable held of truth.so" for root in roots["list"])
    few = answers(rbdump, "object", "--core", core, array["address"], "--top", 5)[1]["refers_to"]
    assert (few["count"], few["list"]) == (2_001, out["list"][:5])


SHOWN = '''
class Shown
  def initialize
    @number = 2**70
    @others = {"a b" => [1, -2.5, :name, nil], nil => "line\\n", [] => 1..3}
  end
end
KEPT = Shown.new
$stdout.sync = true
puts KEPT.instance_variable_get(:@others).inspect
sleep
'''


def test_value_of_object(ruby, rbdump):
    """An object is shown as its inspect would show it."""
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", SHOWN], stdout=subprocess.PIPE, text=True) as program:
        try:
            inner = program.stdout.readline().rstrip("\n")
            (shown,) = [row for row in rows_of(answers(rbdump, "heap", "--why", "Shown", program.pid)[1]) if row["class"] == "Shown"]
            text, parsed = answers(rbdump, "object", program.pid, shown["address"])
            parts = {ref["by"]: ref["address"] for ref in parsed["refers_to"]["list"]}
            others = answers(rbdump, "object", program.pid, parts["@others"])[1]
        finally:
            program.kill()
    assert inner.startswith("{") and "-2.5" in inner
    assert parsed["object"]["value"] == f"#<Shown @number={2**70}, @others={inner}>"
    assert f"\n  value: {parsed['object']['value']}\n" in text
    assert others["object"]["value"] == inner


def rows_of(tree):
    """All rows."""
    for row in tree["rows"]:
        yield row
        yield from rows_of(row)


@pytest.mark.outer_rubies
def test_declared(rbdump, ruby):
    """What C code has declared is marked: since 3.3, an Enumerator declares its receiver."""
    script = "class Other; end; E = Other.new.to_enum(:walk); $stdout.sync = true; puts 'ready'; $stdin.read"
    with subprocess.Popen([ruby.path, "--disable-gems", "-e", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        why = run(rbdump, "heap", "--why", "Other", program.pid)
        address = re.search(r"Enumerator (0x[0-9a-f]+)", why.stdout)[1]
        text, parsed = answers(rbdump, "object", program.pid, address)
        program.stdin.close()
    (one,) = [ref for ref in parsed["refers_to"]["list"] if ref["text"].startswith("Other 0x")]
    certainty = "declared" if ruby.series >= (3, 3) else "conservative"
    assert one["certainty"] == certainty and NOTES[certainty] + " → Other 0x" in text
    assert NOTES[certainty] + " → Other 0x" in why.stdout
