"""`--locals`, `--self`: each variable of programs that are made at random, as Ruby itself sees it; live and from a core."""

import json
import zlib

import pytest
from harness.core import gcore_of, settle
from harness.dump import as_text, run
from harness.programs import make

PROGRAMS, PROGRAMS_OF_SOAK = 12, 60
ENVIRONMENT = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def rows(answer, name):
    """{ (path, line): [{ name: variable }] } of the frames of a thread, outermost first."""
    thread = next(thread for thread in answer["threads"] if thread["name"] == name)
    assert thread["verdict"] == "complete"
    frames = [frame for frame in thread["frames"] if frame["kind"] == "ruby"]
    assert all(frame["locals_missing"] is None for frame in frames)
    found = {}
    for frame in reversed(frames):
        found.setdefault((frame["path"], frame["line"]), []).append({local["name"]: local for local in frame["locals"]})
    return found


def differs(local, text, kind):
    """What is wrong with a variable; None if it is right, or says that it may not be."""
    if local is None:
        return "is missing"
    if local["doubt"] == "nil-or-block":
        return None if text == "nil" or text.startswith("#<Proc") else f"is nil or a block, not {text}"
    if local["doubt"]:
        return f"is {local['doubt']}"
    if kind != "object" and (local["value"], local["kind"]) != (text, kind):
        return f"is {local['value']} ({local['kind']}), not {text} ({kind})"
    return None if local["kind"] == kind else f"is of kind {local['kind']}, not {kind}"


def compare(answer, told):
    """Compares all that the programs have told. Gives how many values were compared, and what was wrong."""
    count, wrong = 0, []
    for name, frames in told:
        shown = rows(answer, as_text(name))
        for path, line, variables in frames:
            at = shown[(as_text(path), line)].pop(0)
            for variable, text, kind in variables:
                problem = differs(at.get(as_text(variable)), as_text(text), as_text(kind))
                count += 1
                if problem:
                    wrong.append(f"{as_text(path)}:{line}: {as_text(variable)} {problem}")
    return count, wrong


@pytest.mark.long
def test_programs(ruby, start, rbdump, tmp_path, request):
    count = PROGRAMS_OF_SOAK if request.config.option.soak else PROGRAMS
    script = tmp_path / "programs.rb"
    script.write_text("# encoding: utf-8\n" + make(zlib.crc32(ruby.id.encode()), count))
    target = start(ruby, str(script), flags=("-W0",), environment=ENVIRONMENT)
    settle(rbdump, target.pid)
    told = target.ready["told"]
    done = run(rbdump, target.pid, "--locals", "--self", "--json")
    assert done.returncode == 0, done.stderr
    values, wrong = compare(json.loads(done.stdout), told)
    assert not wrong, "\n".join(wrong[:40])
    assert values > 15 * count
    with gcore_of(target.pid, tmp_path) as core:
        done = run(rbdump, "--core", core, ruby.elf if ruby.id != "debian" else ruby.path, "--locals", "--self", "--json")
        assert done.returncode == 0, done.stderr
        assert compare(json.loads(done.stdout), told) == (values, [])
