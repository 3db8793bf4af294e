"""The generator on programs made for it: every way in which compilers and linkers write debug info, and what is wrong."""

import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest
from harness.dump import run
from harness.synthetic import FACTS, SOURCES, compile_program, facts, tool, truth, write_types

FAILED, NOT_RUBY = 2, 3

GCC = [
    "-gdwarf-5 -O2",
    "-gdwarf-4 -O2",
    "-gdwarf-3 -gstrict-dwarf -O2",
    "-gdwarf-2 -gstrict-dwarf -O2",
    "-g -O0",
    "-g3 -O2",
    "-gdwarf-4 -gstrict-dwarf -O2",
    "-gdwarf-4 -fdebug-types-section -O2",
    "-gdwarf-5 -fdebug-types-section -O2",
    "-gdwarf-5 -gdwarf64 -O2",
    "-g -gz=zlib -O2",
    "-g -gz=zlib-gnu -O2",
    "-g -flto -O2",
    "-g -flto -flto-partition=max -O2",
    "-g -no-pie -O2",
    "-g -O2 -static-pie",
    "-gdwarf-5 -gsplit-dwarf -O2",
    "-gdwarf-4 -gsplit-dwarf -O2",
]
CLANG = ["-gdwarf-5 -O2", "-gdwarf-4 -O2", "-gdwarf-5 -O0", "-gdwarf-4 -fdebug-types-section -O2"]
BUILDS = [("gcc", flags) for flags in GCC] + [("clang", flags) for flags in CLANG if shutil.which("clang")]


def generate(rbdump, elf, *arguments, **options):
    """The layout of an ELF file, which must succeed."""
    done = run(rbdump, "--gen-offsets", elf, "-o", "-", *arguments, **options)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"-: [0-9]+ fields, [0-9]+ absent \(optional\)\n", done.stderr)
    return done.stdout


def refused(rbdump, elf, status, *words, **options):
    """One sentence, nothing on standard output; gives the sentence."""
    done = run(rbdump, "--gen-offsets", elf, "-o", "-", **options)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert re.fullmatch(r"rbdump: [^\n]+\n", done.stderr), done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program with debug info of DWARF 5; not to be changed."""
    return compile_program(tmp_path_factory.mktemp("program"), "-gdwarf-5", "-O2")


def check_windows(layout, program):
    """Every copy of vm_push_frame, which symbols mark, lies in a window under the name of the function around it."""
    symbols = [line.split() for line in tool("nm", "-S", program, folder=program.parent).splitlines()]
    functions = [
        (int(words[0], 16), int(words[0], 16) + int(words[1], 16), words[3])
        for words in symbols
        if len(words) == 4 and words[2] in "tT"
    ]
    marks = [int(words[0], 16) for words in symbols if words[-1].startswith("rbdump_mark")]
    windows = [
        (int(low, 16), int(high, 16), function)
        for _, _, low, high, function in (line.split() for line in facts(layout, ("window",)))
    ]
    assert marks
    around = set()
    for mark in marks:
        names = {name.split(".")[0] for low, high, name in functions if low <= mark < high}
        assert len(names) == 1
        assert names == {function for low, high, function in windows if low <= mark < high}
        around |= names
    assert around == {function for _, _, function in windows}


@pytest.mark.parametrize(("compiler", "flags"), BUILDS, ids=lambda value: value.replace(" ", ""))
def test_build(rbdump, tmp_path, compiler, flags):
    program = compile_program(tmp_path, *flags.split(), compiler=compiler)
    layout = generate(rbdump, program, cwd=tmp_path)
    assert sorted(facts(layout)) == truth(program)
    addresses = dict(line.split()[1:3] for line in facts(layout, ("symbol",)))
    for line in tool("nm", program, folder=tmp_path).splitlines():
        address, _, name = line.rpartition(" ")
        name = re.sub(r"\.(lto_priv\.)?[0-9]+$", "", name)
        if name in addresses:
            assert int(addresses.pop(name), 16) == int(address.split()[0], 16)
    assert not addresses
    check_windows(layout, program)
    assert "\nversion 9.8.7\n" in layout
    assert "\ndescription ruby 9.8.7 (1999-12-31 a test) [nowhere]\n" in layout
    assert "\nsource ruby\n" in layout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", program, folder=tmp_path)).group(1)
    assert f"\nbuild-id {build_id}\n" in layout


def test_sorted_and_same_again(rbdump, program):
    layout = generate(rbdump, program)
    lines = [line for line in layout.splitlines() if line.split()[0] in (*FACTS, "symbol", "window")]
    assert lines == sorted(lines)
    assert layout.splitlines()[-1] == f"end {len(lines)}"
    assert generate(rbdump, program) == layout


def test_any_build(rbdump, program):
    exact, loose = generate(rbdump, program), generate(rbdump, program, "--any-build")
    assert facts(exact) == facts(loose)
    assert facts(exact, ("build-id", "symbol", "window"))
    assert not facts(loose, ("build-id", "symbol", "window"))


def test_object_file(rbdump, tmp_path):
    """A relocatable object: the offsets in its debug info are in relocations."""
    program = compile_program(tmp_path, "-gdwarf-4", "-O2")
    whole = compile_program(tmp_path, "-gdwarf-4", "-O2", "-r", output="all.o")
    layout = generate(rbdump, whole)
    assert sorted(facts(layout)) == truth(program)
    assert "\nversion 9.8.7\n" in layout
    assert not facts(layout, ("symbol", "window", "build-id"))


def test_dwz(rbdump, program, tmp_path):
    tool("dwz", "-o", tmp_path / "ruby", program, folder=tmp_path)
    assert generate(rbdump, tmp_path / "ruby") == generate(rbdump, program)


def test_dwz_common_file(rbdump, program, tmp_path):
    """What two files share is moved to a third."""
    for name in ("ruby", "another"):
        shutil.copy(program, tmp_path / name)
    tool("dwz", "-m", "common", "-M", tmp_path / "common", "ruby", "another", folder=tmp_path)
    assert (tmp_path / "common").exists()
    assert generate(rbdump, tmp_path / "ruby") == generate(rbdump, program)
    (tmp_path / "common").rename(tmp_path / "moved")
    refused(rbdump, tmp_path / "ruby", FAILED, "dwz", str(tmp_path / "common"))


def split_debug(program, folder):
    """The program without debug info and symbols in `folder`, and its debug file in a folder `.debug` there."""
    (folder / ".debug").mkdir()
    debug = folder / ".debug" / "ruby.debug"
    tool("objcopy", "--only-keep-debug", program, debug, folder=folder)
    tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program, folder / "ruby", folder=folder)
    return folder / "ruby", debug


def test_debuglink(rbdump, program, tmp_path):
    stripped, _ = split_debug(program, tmp_path)
    assert generate(rbdump, stripped) == generate(rbdump, program)


def test_debug_file_of_another_build(rbdump, program, tmp_path):
    """The link says one thing, the file found there is another one."""
    stripped, debug = split_debug(program, tmp_path)
    other = compile_program(tmp_path, "-gdwarf-5", "-O0", output="other")
    tool("objcopy", "--only-keep-debug", other, debug, folder=tmp_path)
    refused(rbdump, stripped, FAILED, "no debug info", "ruby.debug", "build-id")


def test_debuglink_without_build_id(rbdump, tmp_path):
    """Then the checksum says whether it is the right one."""
    (tmp_path / "program").mkdir()
    program = compile_program(tmp_path / "program", "-gdwarf-5", "-O2", "-Wl,--build-id=none")
    stripped, debug = split_debug(program, tmp_path)
    layout = generate(rbdump, stripped)
    assert sorted(facts(layout)) == truth(program)
    assert not facts(layout, ("build-id", "symbol", "window"))
    with debug.open("ab") as file:
        file.write(b"more")
    refused(rbdump, stripped, FAILED, "no debug info", "ruby.debug", "checksum")


def test_unknown_compression(rbdump, program, tmp_path):
    tool("objcopy", "--compress-debug-sections=zlib", program, tmp_path / "ruby", folder=tmp_path)
    content = bytearray((tmp_path / "ruby").read_bytes())
    offset, _ = section(tmp_path / "ruby", ".debug_info")
    content[offset] = 2  # ELFCOMPRESS_ZSTD
    (tmp_path / "ruby").write_bytes(content)
    refused(rbdump, tmp_path / "ruby", FAILED, "zstd")


def test_debug_file_itself(rbdump, program, tmp_path):
    """Its version is in the file that it was split from."""
    stripped, debug = split_debug(program, tmp_path)
    layout, whole = generate(rbdump, debug), generate(rbdump, program)
    kinds = (*FACTS, "version", "description", "build-id", "symbol", "window")
    assert facts(layout, kinds) == facts(whole, kinds)
    stripped.unlink()
    refused(rbdump, debug, FAILED, "ruby_version", "split")


@pytest.mark.parametrize("dwarf", ["-gdwarf-5", "-gdwarf-4"])
def test_debug_file_alone(rbdump, tmp_path, dwarf):
    """Its version is in its macros, if it has any."""
    program = compile_program(tmp_path, dwarf, "-g3", "-O2", sources=("version.c", "vm.c"))
    whole = generate(rbdump, program)
    tool("objcopy", "--only-keep-debug", program, "alone.debug", folder=tmp_path)
    program.unlink()
    layout = generate(rbdump, tmp_path / "alone.debug")
    kinds = (*FACTS, "version", "build-id", "symbol", "window")
    assert facts(layout, kinds) == facts(whole, kinds)
    assert not facts(layout, ("description",))


def stub(folder, *flags):
    """A libruby, and an executable that has its Ruby from it."""
    lib = folder / "lib"
    lib.mkdir()
    compile_program(folder, "-gdwarf-5", "-O2", "-shared", "-fPIC", "-Wl,-soname,libruby.so.9", output="lib/libruby.so.9")
    (folder / "stub.c").write_text("extern const char ruby_version[]; int main(void) { return !ruby_version[0]; }\n")
    tool("gcc", "-o", "ruby", "stub.c", "lib/libruby.so.9", *flags, folder=folder)
    return folder / "ruby", lib / "libruby.so.9"


@pytest.mark.parametrize("flag", ["--enable-new-dtags", "--disable-new-dtags"], ids=["runpath", "rpath"])
def test_libruby_by_origin(rbdump, tmp_path, flag):
    executable, library = stub(tmp_path, f"-Wl,{flag},-rpath,$ORIGIN/lib")
    assert generate(rbdump, executable) == generate(rbdump, library)


def test_libruby_through_a_link(rbdump, tmp_path):
    """$ORIGIN is where the executable is, not where a link to it is."""
    executable, library = stub(tmp_path, "-Wl,-rpath,$ORIGIN/lib")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ruby").symlink_to(executable)
    assert generate(rbdump, tmp_path / "bin/ruby") == generate(rbdump, library)


def test_libruby_by_environment(rbdump, tmp_path):
    executable, library = stub(tmp_path)
    refused(rbdump, executable, NOT_RUBY, "libruby.so.9 (not found)")
    environment = {"LD_LIBRARY_PATH": f"/nowhere:{library.parent}"}
    assert generate(rbdump, executable, env=environment) == generate(rbdump, library)


def test_look_alike_with_all_members(rbdump, tmp_path):
    program = compile_program(tmp_path, "-g", sources=("vm.c", "conflict.c"))
    refused(rbdump, program, FAILED, "rb_control_frame_struct is defined differently", "vm.c", "conflict.c")


def test_missing_member(rbdump, tmp_path):
    write_types(tmp_path)
    source = (SOURCES / "special.h").read_text()
    (tmp_path / "special.h").write_text(source.replace("const long *ep;", "const long *epp;").replace(", ep)", ", epp)"))
    tool("gcc", "-w", "-g", f"-I{tmp_path}", "-o", "ruby", SOURCES / "vm.c", folder=tmp_path)
    refused(rbdump, tmp_path / "ruby", FAILED, "the member rb_control_frame_struct.ep, ", " is missing", "searched", "1 units, 1 of them")


def test_types_that_refer_to_themselves(rbdump, tmp_path):
    """They end nowhere; what is found elsewhere counts."""
    program = compile_program(tmp_path, "-g", sources=("endless.s", "vm.c"))
    assert sorted(facts(generate(rbdump, program))) == truth(program)


def test_split_debug_info_is_gone(rbdump, tmp_path):
    program = compile_program(tmp_path, "-g", "-gsplit-dwarf", sources=("vm.c",))
    for path in tmp_path.glob("*.dwo"):
        path.unlink()
    refused(rbdump, program, FAILED, "split", "vm.dwo", cwd=tmp_path)


def test_without_types(rbdump, tmp_path):
    refused(rbdump, compile_program(tmp_path, "-g1"), FAILED, "is missing", "searched")


def test_without_debug_info(rbdump, tmp_path):
    program = compile_program(tmp_path, "-g0", sources=("vm.c",))
    refused(rbdump, program, FAILED, "no debug info", "/usr/lib/debug/.build-id/", "DEBUGINFOD_URLS is not set")


# ---- files that are no Ruby


def test_not_a_ruby(rbdump, tmp_path):
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    tool("gcc", "-g", "-o", "a", "a.c", folder=tmp_path)
    refused(rbdump, tmp_path / "a", NOT_RUBY, "not a Ruby", "libc.so.6")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"#!/usr/bin/env ruby\n", "not an ELF file"),
        (b"\x7fELF", "cut short"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "cut short"),
    ],
    ids=["empty", "script", "magic", "ident"],
)
def test_no_elf(rbdump, tmp_path, content, word):
    (tmp_path / "file").write_bytes(content)
    refused(rbdump, tmp_path / "file", FAILED, word, str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("offset", "value", "word"),
    [(4, 1, "32-bit"), (5, 2, "big-endian"), (18, 183, "aarch64"), (18, 77, "machine 77"), (16, 4, "ELF type 4")],
    ids=["32-bit", "big-endian", "aarch64", "unknown", "core"],
)
def test_other_architecture(rbdump, program, tmp_path, offset, value, word):
    content = bytearray(program.read_bytes())
    content[offset] = value
    (tmp_path / "ruby").write_bytes(content)
    refused(rbdump, tmp_path / "ruby", FAILED, word)


def test_no_file(rbdump, tmp_path):
    refused(rbdump, tmp_path / "nothing", FAILED, "No such file")
    refused(rbdump, tmp_path, FAILED, "directory")


def test_any_path(rbdump, program, tmp_path):
    """A path of any bytes is opened as it is; messages have it escaped, a layout file only what is printable ASCII."""
    folder = tmp_path / os.fsdecode(b"\xc3\xbc\x1b\xff")
    folder.mkdir()
    shutil.copy(program, folder / "r\xfcby")
    assert "\nsource r??by\n" in generate(rbdump, folder / "r\xfcby")
    refused(rbdump, folder / "nothing", FAILED, "/\xfc\\x1B\\xFF/nothing: cannot be opened")


def damaged(rbdump, path, content):
    """rbdump on a damaged file: a layout, or one sentence, but never a crash, and in bounded time."""
    path.write_bytes(content)
    done = subprocess.run(
        [rbdump, "--gen-offsets", path, "-o", "-"], capture_output=True, timeout=30, check=False, text=True
    )
    assert done.returncode in (0, FAILED, NOT_RUBY), f"{done.returncode}: {done.stderr}"
    assert len(done.stderr.splitlines()) == 1
    assert bool(done.stdout) == (done.returncode == 0)
    return done.returncode


def test_truncated(rbdump, program, tmp_path):
    """Cut anywhere, an ELF file lacks its section headers: the whole is useless."""
    content = program.read_bytes()
    for length in (64, 65, 1000, len(content) // 2, len(content) - 64, len(content) - 1):
        assert damaged(rbdump, tmp_path / "ruby", content[:length]) != 0


def section(program, name):
    """Where a section lies in the file: offset and size."""
    table = tool("readelf", "-SW", program, folder=program.parent)
    words = re.search(rf" {re.escape(name)} +\S+ +\S+ +(\S+) +(\S+)", table)
    return int(words.group(1), 16), int(words.group(2), 16)


@pytest.mark.parametrize("name", [".debug_info", ".debug_abbrev", ".symtab", ".dynamic", "header"])
def test_damaged(rbdump, program, tmp_path, name):
    """Some bytes of it changed at random, by a seed that is always the same."""
    content = program.read_bytes()
    offset, size = (0, 64) if name == "header" else section(program, name)
    rng = random.Random(name)
    for _ in range(60):
        copy = bytearray(content)
        for _ in range(rng.choice((1, 4, 64))):
            copy[offset + rng.randrange(size)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        damaged(rbdump, tmp_path / "ruby", copy)


# ---- where the layout goes


def named(folder):
    return sorted(path.name for path in folder.iterdir())


def test_default_places(rbdump, program, tmp_path):
    """$RBDUMP_OFFSETS_D, else offsets.d here if it is the program's own, else the user's cache."""
    build_id = re.search(r"^build-id (.{12})", generate(rbdump, program), re.M).group(1)
    name = f"9.8.7-x86_64-{build_id}.layout"
    given, cache, here = tmp_path / "a/b", tmp_path / "cache", tmp_path / "here"
    here.mkdir()

    def make(*arguments, **environment):
        done = run(rbdump, "--gen-offsets", program, *arguments, cwd=here, env={"HOME": "/nowhere", **environment})
        assert done.returncode == 0, done.stderr
        return done.stderr.partition(": ")[0]

    assert make(RBDUMP_OFFSETS_D=f"{given}:/nowhere") == f"{given}/{name}"
    assert make(XDG_CACHE_HOME=str(cache)) == f"{cache}/rbdump/offsets.d/{name}"
    assert make(HOME=str(tmp_path)) == f"{tmp_path}/.cache/rbdump/offsets.d/{name}"
    (here / "offsets.d").mkdir()
    assert make(XDG_CACHE_HOME=str(cache)) == f"{cache}/rbdump/offsets.d/{name}"
    assert named(given) == [name] and named(cache / "rbdump/offsets.d") == [name]
    assert named(here / "offsets.d") == []
    installed = tmp_path / "prefix"
    (installed / "bin").mkdir(parents=True)
    (installed / "share/rbdump/offsets.d").mkdir(parents=True)
    rbdump = shutil.copy(rbdump, installed / "bin/rbdump")
    here = installed / "share/rbdump"
    assert make("--any-build") == "offsets.d/9.8.7-x86_64.layout"
    assert named(here / "offsets.d") == ["9.8.7-x86_64.layout"]


def test_names_of_any_bytes(rbdump, program, tmp_path):
    """Messages are in ASCII; where a file goes to is not bound to it."""
    for name in ("é", "a\tb"):
        done = run(rbdump, "--gen-offsets", program, "--any-build", env={"RBDUMP_OFFSETS_D": str(tmp_path / name)})
        assert done.returncode == 0, done.stderr
        output = tmp_path / name / "given.layout"
        assert run(rbdump, "--gen-offsets", program, "--any-build", "-o", output).returncode == 0
        assert named(tmp_path / name) == ["9.8.7-x86_64.layout", "given.layout"]


def test_output_file(rbdump, program, tmp_path):
    output = tmp_path / "a.layout"
    output.write_text("what was there before")
    for status, elf in ((FAILED, "/dev/null"), (0, program)):
        done = run(rbdump, "--gen-offsets", elf, "-o", output)
        assert done.returncode == status
        if status:
            assert output.read_text() == "what was there before"
    assert output.read_text() == generate(rbdump, program)
    assert named(tmp_path) == ["a.layout"]
    refused_output = run(rbdump, "--gen-offsets", program, "-o", tmp_path / "no/such/folder")
    assert refused_output.returncode == FAILED
    assert "No such file" in refused_output.stderr


def test_full_device(rbdump, program):
    done = run(rbdump, "--gen-offsets", program, "-o", "/dev/full")
    assert done.returncode == FAILED
    assert done.stderr == "rbdump: /dev/full: cannot be written: No space left on device\n"
    assert pathlib.Path("/dev/full").is_char_device()
