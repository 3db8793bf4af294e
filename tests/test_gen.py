"""The generator on real Rubies: the layout is the same, however its debug info is kept."""

import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import RUBIES, note_not_applicable
from harness import debuginfod
from harness.dump import run
from harness.layouts import shipped_for
from harness.synthetic import FACTS, as_built_without_jit, facts, tool
from harness.target import Target

DEBUG_RUBIES = [ruby for ruby in RUBIES if ruby.has_debug]
STRIPPED_RUBIES = [ruby for ruby in RUBIES if not ruby.has_debug]
ADDRESSES = ("symbol", "window")
FAILED = 2

for stripped in STRIPPED_RUBIES:
    note_not_applicable(f"generating the layout of {stripped.id}: it has no debug info (that it is refused is tested)")


@pytest.fixture(scope="module", params=DEBUG_RUBIES, ids=lambda ruby: ruby.id)
def debug_ruby(request):
    return request.param


@pytest.fixture(params=STRIPPED_RUBIES, ids=lambda ruby: ruby.id)
def stripped_ruby(request):
    return request.param


def test_there_are_rubies():
    assert DEBUG_RUBIES, "no Ruby with debug info: run tests/rubies/build"


def generate(rbdump, elf):
    """The layout of an ELF file, which must succeed."""
    done = run(rbdump, "--gen-offsets", elf, "-o", "-")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"-: [0-9]+ fields, [0-9]+ absent \(optional\)\n", done.stderr)
    return done.stdout


def without_source(layout):
    """All but the line that says from which file it was made."""
    return [line for line in layout.splitlines() if not line.startswith("source ")]


@pytest.fixture(scope="module")
def layout(rbdump, debug_ruby):
    return generate(rbdump, debug_ruby.elf)


def test_header(debug_ruby, layout):
    build_id = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", debug_ruby.elf, folder="/")).group(1)
    description = tool(debug_ruby.path, "--disable-gems", "-e", "print RUBY_DESCRIPTION", folder="/")
    lines = layout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.split()[0] in (*FACTS, *ADDRESSES))
    header = dict(line.split(" ", 1) for line in lines[:first])
    assert header["rbdump-layout"] == "1"
    assert header["arch"] == "x86_64"
    assert header["build-id"] == build_id
    assert header["version"] == debug_ruby.version
    # Ruby may add to it what it finds out when it starts ("+PRISM").
    assert set(header["description"].split()) <= set(description.split())
    assert header["source"] == pathlib.Path(debug_ruby.elf).name
    assert header["producer"].startswith(("GNU C", "clang", "Debian clang"))
    assert lines.pop() == f"end {len(lines) - first}"
    assert lines[first:] == sorted(lines[first:])


def test_same_again(rbdump, debug_ruby, layout):
    assert generate(rbdump, debug_ruby.elf) == layout


def test_symbols(debug_ruby, layout):
    """The symbol table says the same."""
    symbols = {}
    for line in tool("nm", debug_ruby.elf, folder="/").splitlines():
        words = line.split()
        if len(words) == 3:
            symbols[words[2]] = int(words[0], 16)
    found = {name: int(address, 16) for _, name, address in map(str.split, facts(layout, ("symbol",)))}
    # Until 2.4, and until 2.6, they have other names.
    assert {"ruby_current_vm_ptr", "ruby_current_vm"} & found.keys()
    assert {"ruby_global_symbols", "global_symbols"} & found.keys()
    assert found == {name: symbols[name] for name in found}


def test_windows(debug_ruby, layout):
    """They lie in the functions that they name, as the symbol table has them."""
    functions = {}
    for line in tool("nm", "-S", debug_ruby.elf, folder="/").splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT":
            low = int(words[0], 16)
            functions.setdefault(words[3].split(".")[0], []).append((low, low + int(words[1], 16)))
    windows = [line.split() for line in facts(layout, ("window",))]
    least = 40 if debug_ruby.series >= (2, 2) else 30
    assert len(windows) > least
    for _, name, low, high, function in windows:
        assert name in ("vm_push_frame", "rb_ec_set_vm_stack", "rb_ec_initialize_vm_stack", "rb_ec_clear_vm_stack")
        assert any(first <= int(low, 16) < int(high, 16) <= last for first, last in functions[function]), function
    pushing = [function for _, name, *_, function in windows if name == "vm_push_frame"]
    assert len(pushing) > least
    # 1.9.3 has all of it in one function.
    if debug_ruby.series >= (2, 0):
        assert any(function.startswith("vm_call_iseq_setup") for function in pushing)
        assert any(function.startswith("vm_call_cfunc") for function in pushing)
    assert any(name == "rb_ec_set_vm_stack" for _, name, *_ in windows) == (debug_ruby.series >= (2, 6))


def test_shared(rbdump, debug_ruby, layout):
    """The same source as libruby: DWARF 4, -g -O2 without macros, reached through the executable that links it."""
    if not debug_ruby.shared:
        note_not_applicable(f"{debug_ruby.id}: there is no build of it with libruby")
        return
    shared = generate(rbdump, debug_ruby.shared)
    assert facts(shared) == facts(layout)
    assert re.search(r"^source libruby", shared, re.M)
    assert facts(shared, ADDRESSES)


def split_debug(elf, folder):
    """The ELF file stripped, with a link to its debug info beside it."""
    debug = folder / "ruby.debug"
    tool("objcopy", "--only-keep-debug", elf, debug, folder=folder)
    tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", elf, folder / "ruby", folder=folder)
    return folder / "ruby"


def test_dwarf_versions(debug_ruby):
    """Of a Ruby with both, the builds are what their comparison is there for: DWARF 5 with macros, and 4 without."""
    if not debug_ruby.shared:
        note_not_applicable(f"{debug_ruby.id}: there is no build of it with libruby")
        return
    (libruby,) = (path for path in pathlib.Path(debug_ruby.shared).parents[1].glob("lib/libruby*.so*") if not path.is_symlink())
    for elf, version, macros in [(debug_ruby.elf, "5", True), (libruby, "4", False)]:
        assert (".debug_macro" in tool("readelf", "-SW", elf, folder=".")) == macros
        with subprocess.Popen(["readelf", "--debug-dump=info", "--dwarf-depth=1", elf], stdout=subprocess.PIPE) as dump:
            found = next(line for line in dump.stdout if b"Version:" in line)
            dump.kill()
        assert found.split()[-1].decode() == version


def test_stripped_with_debuglink(rbdump, debug_ruby, layout, tmp_path):
    assert without_source(generate(rbdump, split_debug(debug_ruby.elf, tmp_path))) == without_source(layout)


@pytest.mark.newest_ruby
def test_debuginfod(rbdump, debug_ruby, layout, tmp_path, monkeypatch):
    """From a server on the loopback interface that has the debug file under its build-id, and nothing else."""
    split_debug(debug_ruby.elf, tmp_path)
    build_id = re.search("^build-id (.*)", layout, re.M)[1]
    debuginfod.put(tmp_path / "served", build_id, tmp_path / "ruby.debug")
    with debuginfod.serving(tmp_path / "served") as (url, _):
        for name, value in debuginfod.settings(url, tmp_path / "cache").items():
            monkeypatch.setenv(name, value)
        assert without_source(generate(rbdump, tmp_path / "ruby")) == without_source(layout)


def test_debug_file(rbdump, debug_ruby, layout, tmp_path):
    split_debug(debug_ruby.elf, tmp_path)
    assert without_source(generate(rbdump, tmp_path / "ruby.debug")) == without_source(layout)


@pytest.mark.newest_ruby
@pytest.mark.long
def test_compressed(rbdump, debug_ruby, layout, tmp_path):
    tool("objcopy", "--compress-debug-sections=zlib", debug_ruby.elf, tmp_path / "ruby", folder=tmp_path)
    assert without_source(generate(rbdump, tmp_path / "ruby")) == without_source(layout)


@pytest.mark.newest_ruby
def test_dwz(rbdump, debug_ruby, layout, tmp_path):
    tool("dwz", "-o", tmp_path / "ruby", debug_ruby.elf, folder=tmp_path)
    assert without_source(generate(rbdump, tmp_path / "ruby")) == without_source(layout)


@pytest.mark.newest_ruby
@pytest.mark.long
def test_dwz_common_file(rbdump, debug_ruby, layout, tmp_path):
    """As Debian's packages of debug symbols have it: stripped, debug info by link, part of it in a common file."""
    split_debug(debug_ruby.elf, tmp_path)
    shutil.copy(tmp_path / "ruby.debug", tmp_path / "another.debug")
    tool("dwz", "-m", "common", "-M", tmp_path / "common", "ruby.debug", "another.debug", folder=tmp_path)
    assert (tmp_path / "common").exists()
    # dwz has changed the debug file, and with it the checksum; the build-id stays.
    assert without_source(generate(rbdump, tmp_path / "ruby")) == without_source(layout)


@pytest.mark.newest_ruby
def test_object_file(rbdump, debug_ruby, layout, tmp_path):
    """All of Ruby's objects as one that can be linked."""
    archive = pathlib.Path(debug_ruby.path).parent.parent / "lib/libruby-static.a"
    if not archive.exists():
        note_not_applicable(f"{debug_ruby.id}: {archive.name} is not there")
        return
    tool("ld", "-r", "-o", tmp_path / "all.o", "--whole-archive", archive, folder=tmp_path)
    found = generate(rbdump, tmp_path / "all.o")
    assert facts(found) == facts(layout)
    assert not facts(found, ("build-id", *ADDRESSES))
    (tmp_path / "all.o").unlink()  # it is large


def test_shipped(debug_ruby, layout):
    """The layout that is shipped for this version agrees; of other builds of it the debug info decides."""
    shipped = shipped_for(debug_ruby.version)
    if not shipped:
        note_not_applicable(f"{debug_ruby.id}: no layout is shipped for {debug_ruby.version}")
        return
    text = shipped.read_text()
    if not debug_ruby.has_yjit:
        text, layout = as_built_without_jit(text), as_built_without_jit(layout)
    assert facts(text) == facts(layout)
    assert not facts(text, ("build-id", *ADDRESSES))
    assert not re.search(r"[ =]/", text), "a path of the machine that it was made on"


def test_running(rbdump, debug_ruby, layout):
    """Read through /proc, as it is done for a running process."""
    target = Target(debug_ruby.path, "deadlock.rb")
    try:
        elf = f"/proc/{target.pid}/root{debug_ruby.elf}"
        assert without_source(generate(rbdump, elf)) == without_source(layout)
    finally:
        target.close()


def test_no_debug_info(rbdump, stripped_ruby):
    """A Ruby without debug info is refused, and the sentence says what was looked at."""
    build_id = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", stripped_ruby.elf, folder="/")).group(1)
    if pathlib.Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug").exists():
        assert facts(generate(rbdump, stripped_ruby.path), FACTS)
        return
    done = run(rbdump, "--gen-offsets", stripped_ruby.path, "-o", "-")
    assert done.returncode == FAILED
    assert done.stdout == ""
    assert re.fullmatch(r"rbdump: [^\n]+\n", done.stderr)
    for word in ("no debug info", "libruby", f"{build_id[:2]}/{build_id[2:]}.debug"):
        assert word in done.stderr
