#!/usr/bin/env python3
"""Makes the layout of a Ruby that was not built: from its sources, or from its headers.

usage: layout_from_source.py [options] TREE

TREE is a folder with Ruby's vm_core.h, where it was configured: ruby/config.h and what is generated for the compiler
(id.h, insns.inc, …) are in it, or in --build FOLDER. Of its sources those are compiled that have types in them which
no header has; nothing is linked, installed or run. A tree of headers only will do as far as it goes: what it has is
compiled by a unit that includes it, and sources of the same version can be given with --unit. What is then missing
and required, `rbdump --gen-offsets` names, and there is no layout.

The layout is for every build of that version. Its `source` line names the object that the compiler made (sources.o,
or that of --object), its `description` the revision that version.c tells.
"""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What has types in it that headers lack, in any version; each with what is read from it first.
UNITS = (
    "vm.c",  # rb_thread_t and all that a frame has; method entries
    "vm_backtrace.c",  # rb_backtrace_location_t, how labels are made
    "cont.c",  # rb_fiber_t, rb_jit_cont
    "thread.c",  # rb_blocking_region_buffer
    "ractor.c",  # RVALUE in 3.4
    "gc.c",  # rb_objspace; since 3.4 it includes gc/default/default.c
    "load.c",  # rb_darray_meta in 3.2
    "iseq.c",  # succ_index_table
    "symbol.c",  # rb_symbols_t, ID_ENTRY_UNIT
    "parse.c",  # the same up to 2.1, which has no symbol.c
    "st.c",  # st_table_entry
    "variable.c",  # gen_ivtbl
    "hash.c",  # ar_table_struct
    "io.c",  # the numbers of encodings, of encindex.h
    # What core classes keep in a T_DATA:
    "class.c", "dir.c", "enumerator.c", "imemo.c", "io_buffer.c", "object.c", "proc.c", "process.c", "random.c", "re.c",
    "set.c", "shape.c", "struct.c", "time.c", "transcode.c", "vm_trace.c", "weakmap.c",
    "version.c",  # ruby_version, ruby_description
)

# What is in headers, for a tree that has no vm.c.
HEADERS = (
    "ruby/ruby.h",
    "ruby/encoding.h",
    "internal.h",
    "vm_core.h",
    "eval_intern.h",
    "method.h",
    "iseq.h",
    "symbol.h",
    "ractor_core.h",
    "shape.h",
    "vm_callinfo.h",
    "vm_insnhelper.h",
    "constant.h",
    "internal/array.h",
    "internal/class.h",
    "internal/cont.h",
    "internal/gc.h",
    "internal/imemo.h",
    "internal/string.h",
    "internal/symbol.h",
    "internal/variable.h",
    "id.h",
)

# What version.c has, for a tree that lacks it. RUBY_VERSION was in version.h up to 2.6.
VERSION = """
#if __has_include("ruby/version.h")
#include "ruby/version.h"
#endif
#include "version.h"
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#ifndef RUBY_VERSION
#define RUBY_VERSION TEXT(RUBY_API_VERSION_MAJOR) "." TEXT(RUBY_API_VERSION_MINOR) "." TEXT(RUBY_VERSION_TEENY)
#endif
const char ruby_version[] = RUBY_VERSION;
"""

# Without optimisation, but for what a constant's value is to be written into the debug info of: at -O0 it is in memory.
OPTIMISED = ("symbol.c",)

# Types and enumerators that a unit has no use for are wanted, too: another unit's code has.
FLAGS = (
    "-c", "-g", "-gdwarf-5", "-w", "-fno-eliminate-unused-debug-types", "-fno-eliminate-unused-debug-symbols",
    "-fno-strict-aliasing", "-fcommon", "-DRUBY_EXPORT", "-D_GNU_SOURCE",
)  # fmt: skip


class Failed(Exception):
    """One sentence, or what a compiler said."""


def run(*command, folder=None):
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}\n{done.stderr.strip()}")
    return done


def config_folder(places):
    """The folder that `ruby/config.h` is below: one of the places, or the machine's below their include folders."""
    for place in places:
        for below in (".", "include", ".ext/include"):
            for folder in [place / below, *sorted((place / below).glob("*-linux*"))]:
                if (folder / "ruby/config.h").is_file():
                    return folder
    raise Failed(f"no ruby/config.h in {', '.join(map(str, places))}: configure it, or name its folder with --build")


class Tree:
    """Where the sources, what was generated from them, and the headers are."""

    def __init__(self, tree, build, includes, scratch):
        self.tree = tree
        self.build = build
        self.scratch = scratch
        if not (tree / "vm_core.h").is_file():
            raise Failed(f"{tree}: there is no vm_core.h in it")
        places = [build, tree, *includes]
        # Where public headers come from elsewhere, so does their config.h.
        self.includes = [scratch, config_folder(places), build, tree / "include", tree, *includes]
        self._write_probes()

    def _write_probes(self):
        """make copies probes.h, if there is no DTrace."""
        if any((folder / "probes.h").is_file() for folder in self.includes):
            return
        for folder in self.includes:
            if (folder / "probes.dmyh").is_file():
                (self.scratch / "probes.h").write_bytes((folder / "probes.dmyh").read_bytes())
                return

    def units(self, more):
        """The sources to compile, and the probe if vm.c is not among them."""
        places = [self.tree] if self.build == self.tree else [self.tree, self.build]
        found = [folder / name for name in UNITS for folder in places if (folder / name).is_file()] + more
        names = [unit.name for unit in found]
        if "symbol.c" in names:
            found = [unit for unit in found if unit.name != "parse.c"]
        if "vm.c" not in names or "version.c" not in names:
            found.append(self.probe("vm.c" not in names, "version.c" not in names))
        return found

    def probe(self, types, version):
        text = ""
        if types:
            text += "".join(f'#if __has_include("{name}")\n#include "{name}"\n#endif\n' for name in HEADERS)
        if version:
            text += VERSION
        path = self.scratch / "probe.c"
        path.write_text(text)
        return path


def compile_units(tree, units, compiler):
    """The objects."""
    objects = []
    includes = [f"-I{folder}" for folder in tree.includes]
    for number, unit in enumerate(units):
        output = tree.scratch / f"{number}-{unit.stem}.o"
        optimisation = "-O1" if unit.name in OPTIMISED else "-O0"
        # The name of the unit is all that the debug info has to tell of where it was.
        mapped = [f"-ffile-prefix-map={folder}=." for folder in (tree.tree, tree.build, tree.scratch)]
        run(*compiler, *FLAGS, optimisation, *mapped, *includes, "-o", output, unit, folder=tree.build)
        objects.append(output)
    return objects


def link(objects, output):
    """One object of them all, without their code's bytes being changed."""
    run("ld", "-r", "-o", output, *objects)


def main():
    parser = argparse.ArgumentParser(
        usage="layout_from_source.py [options] TREE", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument("tree", type=pathlib.Path, metavar="TREE")
    parser.add_argument("--build", type=pathlib.Path, metavar="FOLDER", help="where it was configured, if not in TREE")
    parser.add_argument("-I", dest="include", type=pathlib.Path, metavar="FOLDER", action="append", default=[],
                        help="more headers")  # fmt: skip
    parser.add_argument("--unit", type=pathlib.Path, metavar="FILE", action="append", default=[],
                        help="compile this source, too")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE",
                        help='the layout; "-": standard output; without it, where rbdump finds it')  # fmt: skip
    parser.add_argument("--object", type=pathlib.Path, metavar="FILE",
                        help="keep what the compiler made, which rbdump --gen-offsets reads again")  # fmt: skip
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"), metavar="COMMAND", help="the compiler")
    parser.add_argument("--rbdump", default=ROOT / "build/rbdump", metavar="FILE")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="rbdump-layout-") as scratch:
            folder = arguments.tree.resolve()
            build = (arguments.build or folder).resolve()
            includes = [path.resolve() for path in arguments.include]
            tree = Tree(folder, build, includes, pathlib.Path(scratch))
            units = tree.units([path.resolve() for path in arguments.unit])
            whole = arguments.object or tree.scratch / "sources.o"
            link(compile_units(tree, units, shlex.split(arguments.cc)), whole)
            output = ["-o", arguments.output] if arguments.output else []
            done = subprocess.run([arguments.rbdump, "--gen-offsets", whole, "--any-build", *output], check=False)
            return done.returncode
    except (Failed, OSError) as problem:
        print(f"layout_from_source.py: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
