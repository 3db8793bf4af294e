"""The symbolizer says of an address what gdb says: `info symbol`, `info line`, and the functions inlined there."""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest
from conftest import RUBIES, note_not_applicable
from harness.debugger import GDB
from harness.process import is_untouched
from harness.rubies import probe
from harness.symbolize import SECONDS, Image, ask_rbdump, probe_path, run, windows
from harness.target import Target

GDB_SCRIPT = pathlib.Path(__file__).resolve().parent / "harness/gdb_symbolize.py"
ADDRESSES = 1000
SEED = 3


# ---- what there is


def rubies():
    for ruby in RUBIES:
        yield ruby
        if ruby.shared:
            yield probe(f"{ruby.id}-shared", ruby.shared)


ALL = list(rubies())
WITH_DEBUG = [ruby for ruby in ALL if ruby.has_debug]
STRIPPED = [ruby for ruby in ALL if not ruby.has_debug]


@pytest.fixture(params=ALL, ids=lambda ruby: ruby.id, scope="module")
def any_ruby(request):
    return request.param


@pytest.fixture(params=WITH_DEBUG, ids=lambda ruby: ruby.id, scope="module")
def debug_ruby(request):
    return request.param


@pytest.fixture(params=STRIPPED, ids=lambda ruby: ruby.id, scope="module")
def stripped_ruby(request):
    return request.param


@pytest.fixture
def target(request):
    """A process of the Ruby that the test is given, at rest."""
    (kind,) = {"any_ruby", "debug_ruby", "stripped_ruby"}.intersection(request.fixturenames)
    target = Target(request.getfixturevalue(kind).path, "methods.rb", timeout=SECONDS)
    yield target
    assert is_untouched(target.pid)
    assert target.release() == 0


# ---- asking


def ask_gdb(pid, addresses, folder, *arguments):
    """What gdb says of them."""
    file = folder / "addresses"
    file.write_text("".join(f"{address:#x}\n" for address in addresses))
    said = run(
        *(*GDB, *arguments, "-p", pid),
        *("-ex", f"python FILE = {str(file)!r}", "-x", GDB_SCRIPT),
    )
    answers = [json.loads(line) for line in said.splitlines() if line.startswith('{"address"')]
    assert [answer["address"] for answer in answers] == addresses
    return answers


def symbol(answer):
    return (answer["function"], answer["offset"]) if answer["function"] else None


def line(answer):
    return (os.path.normpath(answer["file"]), answer["line"]) if answer["file"] else None


def functions(answer):
    return [function["function"] for function in answer["inlined"]]


def gdb_symbol(answer):
    return tuple(answer["symbol"][:2]) if answer["symbol"] else None


def gdb_line(answer):
    return (os.path.normpath(answer["full_name"]), answer["line"][1]) if answer["line"] else None


def gdb_functions(answer):
    """For a Rust function without a linkage name (#[no_mangle]) gdb makes up a path, whose last word is its name."""
    return [name if name.startswith("_") else name.rsplit("::", 1)[-1] for name in answer["functions"]]


def compare(answers, gdb_answers):
    """Asserts that they say the same of every address."""
    for answer, gdb_answer in zip(answers, gdb_answers, strict=True):
        where = f"{answer['module_address']:#x} of {answer['module']}"
        assert symbol(answer) == gdb_symbol(gdb_answer), where
        assert line(answer) == gdb_line(gdb_answer), where
        assert functions(answer) == gdb_functions(gdb_answer), where
        if answer["inlined"]:
            assert (answer["inlined"][0]["file"], answer["inlined"][0]["line"]) == (answer["file"], answer["line"])


def spread(image, pid, count):
    """Addresses of a process, spread over .text."""
    choice = random.Random(SEED)
    bias = image.bias(pid)
    return [bias + choice.randrange(*image.text) for _ in range(count)]


# ---- tests


def test_there_are_rubies():
    assert WITH_DEBUG, "no Ruby with debug info: run tests/rubies/build"


@pytest.mark.outer_rubies
def test_as_gdb(debug_ruby, target, rbdump, tmp_path):
    """1,000 addresses: half of them spread over .text, half of them in torn windows."""
    choice = random.Random(SEED)
    image = Image(debug_ruby.elf)
    bias = image.bias(target.pid)
    addresses = [bias + choice.randrange(*image.text) for _ in range(ADDRESSES // 2)]
    for low, high in choice.choices(windows(rbdump, debug_ruby.elf), k=ADDRESSES // 2):
        addresses.append(bias + choice.randrange(low, high))
    answers = ask_rbdump(target.pid, addresses)
    compare(answers, ask_gdb(target.pid, addresses, tmp_path))
    for answer in answers:
        assert answer["known"] and answer["module_address"] == answer["address"] - bias
        assert os.path.realpath(answer["module"]) == os.path.realpath(debug_ruby.elf)
    for answer in answers[ADDRESSES // 2 :]:
        assert "vm_push_frame" in functions(answer)


def test_without_debug_info(stripped_ruby, target, tmp_path):
    """A stripped Ruby has its exported symbols, and no more is said than that."""
    addresses = spread(Image(stripped_ruby.elf), target.pid, ADDRESSES)
    answers = ask_rbdump(target.pid, addresses)
    compare(answers, ask_gdb(target.pid, addresses, tmp_path))
    assert sum(answer["function"] is not None for answer in answers) > 100
    assert any(answer["function"] is None for answer in answers)


@pytest.mark.three_rubies
def test_shared_addresses(any_ruby, target, tmp_path):
    """Of several symbols at one address, gdb's choice is taken."""
    image = Image(any_ruby.elf)
    bias = image.bias(target.pid)
    addresses = [bias + address + offset for address in image.shared_addresses for offset in (0, 1)]
    assert addresses
    compare(ask_rbdump(target.pid, addresses), ask_gdb(target.pid, addresses, tmp_path))


def test_lines_of_calls(debug_ruby, target, rbdump):
    """Where an inlined function was called is what addr2line says, which reads the same debug info by itself."""
    choice = random.Random(SEED)
    bias = Image(debug_ruby.elf).bias(target.pid)
    inside = [choice.randrange(low, high) for low, high in windows(rbdump, debug_ruby.elf)]
    said = run("addr2line", "-a", "-i", "-f", "-e", debug_ruby.elf, *map(hex, inside)).splitlines()
    chains = []
    for text in said:
        if text.startswith("0x"):
            chains.append([])
        else:
            chains[-1].append(text)
    for answer, chain in zip(ask_rbdump(target.pid, [bias + address for address in inside]), chains, strict=True):
        calls = [re.sub(r" \(discriminator \d+\)$", "", place).rsplit(":", 1) for place in chain[1::2]]
        assert functions(answer) == chain[0::2]
        assert [
            [os.path.normpath(function["file"]), str(function["line"])] for function in answer["inlined"][1:]
        ] == [[os.path.normpath(file), number] for file, number in calls[1:]]


# ---- what is not as usual, on one Ruby: the first with debug info, in a file that is the test's own


@contextlib.contextmanager
def resting(ruby, *command, **options):
    """A process of a Ruby that waits for the end of its standard input."""
    with subprocess.Popen(
        [*command, ruby, "--disable-gems", "-e", "$stdout.puts; $stdout.flush; $stdin.read"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **options,
    ) as process:
        try:
            assert process.stdout.readline() == b"\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def own_ruby(tmp_path):
    return shutil.copy(WITH_DEBUG[0].path, tmp_path / "ruby")


def split(ruby, dwz=False):
    """Strips it, and gives it a debug file that it links to."""
    debug = ruby.with_name("ruby.debug")
    run("objcopy", "--only-keep-debug", ruby, debug)
    if dwz:
        other = shutil.copy(debug, ruby.with_name("other.debug"))
        run("dwz", "-m", ruby.with_name("common"), debug, other)
        assert ".gnu_debugaltlink" in run("readelf", "-SW", debug)
    run("strip", ruby)
    run("objcopy", f"--add-gnu-debuglink={debug}", ruby)


@pytest.mark.long
@pytest.mark.parametrize("dwz", [False, True], ids=["plain", "dwz"])
def test_debug_file(own_ruby, tmp_path, dwz):
    """Stripped, with a debug file that it links to, which dwz may have moved a part of to a common one."""
    split(own_ruby, dwz)
    with resting(own_ruby) as process:
        addresses = spread(Image(str(own_ruby)), process.pid, 200)
        answers = ask_rbdump(process.pid, addresses)
        compare(answers, ask_gdb(process.pid, addresses, tmp_path))
    assert sum(bool(answer["inlined"]) for answer in answers) > 150


@pytest.mark.parametrize("where", ["ruby.debug", ".debug/ruby.debug"])
def test_pipe_for_debug_file(own_ruby, tmp_path, where):
    """What has the debug file's name may be a pipe that nobody writes to: then there is no debug info."""
    split(own_ruby)
    (tmp_path / "ruby.debug").unlink()
    (tmp_path / ".debug").mkdir()
    os.mkfifo(tmp_path / where)
    with resting(own_ruby) as process:
        answers = ask_rbdump(process.pid, spread(Image(str(own_ruby)), process.pid, 20))
    assert all(answer["known"] and not answer["inlined"] for answer in answers)


def test_after_the_end(own_ruby):
    """It answers when the process has ended and its file is gone, and for a file that was gone before."""
    with resting(own_ruby) as process:
        addresses = spread(Image(str(own_ruby)), process.pid, 20)
        before = ask_rbdump(process.pid, addresses)
        own_ruby.unlink()
        assert ask_rbdump(process.pid, addresses) == before
        with subprocess.Popen(
            [probe_path("symbolize"), str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as asked:
            assert asked.stdout.readline() == "{}\n"
            process.kill()
            process.wait()
            said, _ = asked.communicate("".join(f"{address:#x}\n" for address in addresses), timeout=SECONDS)
    assert [json.loads(text) for text in said.splitlines()] == before


def test_no_code(own_ruby):
    """Where no file is mapped, nothing is known; in the kernel's own library, only where."""
    with resting(own_ruby) as process:
        maps = [text.split() for text in pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()]
        starts = {words[5]: int(words[0].split("-")[0], 16) for words in reversed(maps) if len(words) > 5}
        nowhere = [0, 1, (1 << 63) - 1, starts["[heap]"] + 16, starts["[stack]"]]
        *unknown, vdso = ask_rbdump(process.pid, [*nowhere, starts["[vdso]"] + 0x10])
    for answer in unknown:
        assert not answer["known"] and answer["module"] is None and answer["function"] is None
        assert answer["inlined"] == []
    assert vdso["module"] == "[vdso]" and vdso["module_address"] == 0x10 and vdso["function"] is None


def test_other_root(own_ruby, tmp_path):
    """A process in a root folder of its own, with a file of the same path that is another one here."""
    if os.geteuid() != 0:
        note_not_applicable("test_symbolize.py, test_other_root: only root may chroot")
        return
    root = tmp_path / "root"
    for library in re.findall(r"(/\S+) \(0x", run("ldd", own_ruby)):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    inside = root / str(own_ruby)[1:]
    inside.parent.mkdir(parents=True)
    shutil.move(own_ruby, inside)
    own_ruby.write_text("not a program")
    with resting(own_ruby, "chroot", root) as process:
        image = Image(str(inside))
        start = next(
            int(text.split("-")[0], 16)
            for text in pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()
            if text.endswith("/ruby")
        )
        bias = start - image.first_load
        address = address_of(inside, "rb_funcallv")
        (answer,) = ask_rbdump(process.pid, [bias + address + 4])
    assert answer["module_address"] == address + 4
    assert symbol(answer) is not None and symbol(answer)[1] == 4
    assert answer["inlined"]


def address_of(elf, name):
    """Where a function begins, as in the file."""
    lines = [text.split() for text in run("readelf", "-sW", elf).splitlines()]
    return next(int(words[1], 16) for words in lines if len(words) == 8 and words[7] == name)


def test_no_such_process():
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    done = subprocess.run(
        [probe_path("symbolize"), str(ended.pid)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert str(ended.pid) in done.stderr


@pytest.mark.parametrize("seed", range(12))
def test_damaged(own_ruby, seed):
    """Whatever is in its symbols and debug info, it ends well, with an answer to every question."""
    choice = random.Random(seed)
    section = re.compile(r"\] (\.\S+) +\S+ +[0-9a-f]+ +([0-9a-f]+) +([0-9a-f]+)")
    damaged = {
        name: (int(start, 16), int(size, 16))
        for name, start, size in section.findall(run("readelf", "-SW", own_ruby))
        if name.startswith(".debug_") or name in (".symtab", ".strtab")
    }
    assert ".debug_info" in damaged and ".debug_line" in damaged and ".symtab" in damaged
    image = Image(str(own_ruby))
    assert image.text and image.first_load == 0  # kept from before
    with open(own_ruby, "r+b") as file:
        for start, size in damaged.values():
            for _ in range(choice.choice((1, 30, 1000, 30000)) if choice.random() < 0.7 else 0):
                file.seek(start + choice.randrange(size))
                file.write(bytes([choice.choice((0, 0xFF, 0x80, choice.randrange(256)))]))
    with resting(own_ruby) as process:
        addresses = spread(image, process.pid, 300)
        assert len(ask_rbdump(process.pid, addresses)) == 300
