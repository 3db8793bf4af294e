"""gdb-scripts/torn.py: a line of a torn log leads gdb to the code that it is of."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import RUBIES
from harness.debugger import GDB
from harness.process import is_untouched
from harness.rubies import probe
from harness.symbolize import SECONDS, Image, ask_rbdump, run, windows
from harness.target import Target

pytestmark = pytest.mark.three_rubies

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "gdb-scripts/torn.py"
CODE = re.compile(r"^(=>|  ) (0x[0-9a-f]+)(?: <(\S+?)(?:\+(\d+))?>)?:\t", re.M)
AROUND = 16


def debug_rubies():
    for ruby in RUBIES:
        if ruby.has_debug:
            yield ruby
        if ruby.shared:
            yield probe(f"{ruby.id}-shared", ruby.shared)


DEBUG_RUBIES = list(debug_rubies())


def test_there_are_rubies():
    assert DEBUG_RUBIES, "no Ruby with debug info: run tests/rubies/build"


def gdb(command, *arguments):
    """Runs gdb with the script, and a command of it; gives what it wrote to standard output and standard error."""
    done = subprocess.run(
        [*GDB, *map(str, arguments), "-x", SCRIPT, "-ex", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stderr and "Python Exception" not in done.stderr, done.stderr
    return done.stdout, done.stderr


def build_id(elf):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-nW", elf))[1]


def line_of(target, ruby, answer, **changes):
    """The line that a torn log would have of a sample there."""
    sample = {
        "schema_version": 1,
        "time": "2026-01-02T03:04:05.678901Z",
        "pid": target.pid,
        "tid": target.pid,
        "mode": "paused-naive",
        "verdict": "torn",
        "reason": "window",
        "build_id": build_id(ruby.elf),
        "elf": answer["module"],
        "registers": {"rip": hex(answer["address"])},
        "ip": {
            "address": hex(answer["address"]),
            "module": answer["module"],
            "module_address": hex(answer["module_address"]),
            "function": answer["function"],
            "offset": answer["offset"],
            "inlined": answer["inlined"],
            "window": "vm_push_frame",
        },
        "frames": [{"kind": "ruby", "label": "m", "name": "A#m", "path": "a.rb", "line": 3}],
        "tries": 1,
        "steps": 0,
    }
    for name, value in changes.items():
        inner = sample["ip"] if name in sample["ip"] else sample
        inner[name] = value
    return json.dumps(sample)


@pytest.fixture(scope="module", params=DEBUG_RUBIES, ids=lambda ruby: ruby.id)
def torn(request, rbdump):
    """A process at rest, its Ruby, and what is known of an instruction in the middle of a torn window."""
    ruby = request.param
    low, high = max(windows(rbdump, ruby.elf), key=lambda window: window[1] - window[0])
    said = run(*GDB, "-ex", f"disassemble {low:#x},{high:#x}", ruby.elf)
    starts = [int(match[2], 16) for match in CODE.finditer(said)]
    target = Target(ruby.path, "methods.rb", timeout=SECONDS)
    try:
        (answer,) = ask_rbdump(target.pid, [Image(ruby.elf).bias(target.pid) + starts[len(starts) // 2]])
        assert answer["function"] and "vm_push_frame" in [inlined["function"] for inlined in answer["inlined"]]
        yield target, ruby, answer
        assert is_untouched(target.pid)
        assert target.release() == 0
    finally:
        target.close()


@pytest.fixture
def log(torn, tmp_path):
    """A torn log: its second line is the sample."""
    file = tmp_path / "torn.log"
    file.write_text(line_of(*torn, reason="cfp-outside") + "\n" + line_of(*torn) + "\n")
    return file


def check(said, answer, address):
    """Asserts that everything is shown, with the instruction at that address."""
    at = f"{answer['function']}+{answer['offset']}"
    assert "sample 2: torn, window; mode paused-naive" in said
    assert "a.rb:3:in 'm'" in said
    assert f"\n{at} ({answer['module_address']:#x} of " in said and "in the torn window vm_push_frame" in said
    for inlined in answer["inlined"]:
        place = f"{inlined['file']}:{inlined['line']}"
        assert re.search(rf"^    {inlined['function']} .*at {re.escape(place)}$", said, re.M)
    code = [(int(match[2], 16), match[1]) for match in CODE.finditer(said)]
    assert [where for where, arrow in code if arrow == "=>"] == [address]
    (arrow,) = [match for match in CODE.finditer(said) if match[1] == "=>"]
    assert f"{arrow[3]}+{arrow[4]}" == at
    addresses = sorted({where for where, _ in code})
    before = addresses.index(address)
    assert 0 < before <= AROUND
    assert len(addresses) - before - 1 == AROUND


def test_file(torn, log):
    """With nothing but the log: the file is loaded, and the source shown if it is there."""
    _, _, answer = torn
    said, complaints = gdb(f"rb-torn {log} 2")
    assert complaints == ""
    check(said, answer, answer["module_address"])
    if os.path.exists(answer["file"]):
        with open(answer["file"], encoding="utf-8", errors="replace") as source:
            text = source.read().split("\n")[answer["line"] - 1]
        assert f"\n{answer['line']}\t{text}\n" in said
        assert f" ({answer['file']}:{answer['line']})." in said
    else:
        assert f"The source file does not exist: {answer['file']}:{answer['line']}" in said


def test_process(torn, log):
    """In a process, it is the code there."""
    target, _, answer = torn
    said, _ = gdb(f"rb-torn {log} 2", "-p", target.pid)
    check(said, answer, answer["address"])


def test_core(torn, log, tmp_path):
    """So it is in a core."""
    target, ruby, answer = torn
    core = tmp_path / "core"
    run(*GDB, "-p", target.pid, "-ex", f"generate-core-file {core}")
    said, _ = gdb(f"rb-torn {log} 2", ruby.path, core)
    core.unlink()
    check(said, answer, answer["address"])


def test_source_gone(torn, log):
    _, _, answer = torn
    folder, name = os.path.split(answer["file"])
    said, complaints = gdb(f"rb-torn {log} 2", "-iex", f"set substitute-path {folder} /gone")
    assert complaints == ""
    assert f"The source file does not exist: /gone/{name}:{answer['line']}" in said
    check(said, answer, answer["module_address"])


def test_other_build(torn, log):
    """A file of another build is shown all the same, with a warning."""
    _, _, answer = torn
    log.write_text(line_of(*torn, build_id="0" * 40) + "\n")
    said, complaints = gdb(f"rb-torn {log}")
    assert "is not the file that ran: the build-ids differ" in complaints and "0" * 40 in complaints
    assert f"=> {answer['module_address']:#018x}" in said


def test_other_function(torn, log):
    """So is one in which something else is there."""
    _, _, answer = torn
    log.write_text(line_of(*torn, function="vm_other") + "\n")
    said, complaints = gdb(f"rb-torn {log}")
    assert f"gdb finds {answer['function']}+{answer['offset']} at this address, so" in complaints
    assert f"=> {answer['module_address']:#018x}" in said


def test_moved_file(torn, log, tmp_path):
    """A file of the same build will do, wherever it is."""
    _, ruby, answer = torn
    moved = shutil.copy(ruby.elf, tmp_path / "moved")
    log.write_text(line_of(*torn) + "\n" + line_of(*torn, module="/gone", elf="/gone") + "\n")
    said, complaints = gdb(f"rb-torn {log} 2", moved)
    assert complaints == ""
    check(said, answer, answer["module_address"])


def test_refusals(torn, log):
    """Each mistake gets a sentence, and nothing in a log is run or reaches the terminal as it is."""
    lines = {
        "{": "is not JSON",
        "[]": "is not a sample of a torn log",
        line_of(*torn, schema_version=2): "is not a sample of a torn log",
        "[" * 100000: "is not JSON",
        line_of(*torn, ip=None): "The sample has no registers",
        line_of(*torn, module=None): "is not from a file",
        line_of(*torn, module="[vdso]"): "was stopped in [vdso], which is not a file",
        line_of(*torn, module="/gone", elf="/gone"): "was stopped in /gone, but this file does not exist",
        line_of(*torn, module='/gone" \n\x1b[31m'): r"/gone\" \x0A\x1B[31m, but this".replace('\\"', '"'),
        line_of(*torn, module_address="1; shell touch /gone"): "has no valid module_address",
        line_of(*torn, module_address="0xfffffffffffffff0"): "",
    }
    log.write_text("\n".join(lines) + "\n")
    for number, told in enumerate(lines.values(), 1):
        said, complaints = gdb(f"rb-torn {log} {number}")
        assert told in complaints and len(complaints.splitlines()) >= 1, (number, complaints)
        assert "\x1b" not in said + complaints
    for mistake, told in {
        "rb-torn": "Usage: rb-torn FILE [N]",
        f"rb-torn {log} x": "Usage: rb-torn FILE [N]",
        f"rb-torn {log} 99": f"has only {len(lines)} samples",
        f"rb-torn {log}.gone": "No such file or directory",
    }.items():
        _, complaints = gdb(mistake)
        assert told in complaints


def test_other_file(torn, log):
    """gdb has a file already that the sample was not in."""
    _, complaints = gdb(f"rb-torn {log}", shutil.which("gdb"))
    assert ", but gdb has loaded " in complaints


def test_copy_of_a_function(torn, tmp_path):
    """The log has the name that the file has, x.constprop.0, which gdb demangles to x.constprop."""
    target, ruby, _ = torn
    copy = re.search(r"^(\w+) t ([a-z_]+\.constprop\.\d+)$", run("nm", "--defined-only", ruby.elf), re.M)
    (answer,) = ask_rbdump(target.pid, [Image(ruby.elf).bias(target.pid) + int(copy[1], 16)])
    assert (answer["function"], answer["offset"]) == (copy[2], 0)
    log = tmp_path / "torn.log"
    log.write_text(line_of(target, ruby, answer) + "\n")
    said, complaints = gdb(f"rb-torn {log}")
    assert complaints == ""
    assert f"\n{copy[2]}+0 (" in said
    (arrow,) = [match for match in CODE.finditer(said) if match[1] == "=>"]
    assert (arrow[3], int(arrow[4] or 0)) == (answer["inlined"][-1]["function"], 0)
