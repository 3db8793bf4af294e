"""Programs with the types of a Ruby that never was, made from fields.def and tests/dwarf/: compiled in many ways."""

import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "tests/dwarf"
sys.path.insert(0, str(ROOT / "gen"))

from fields import parse  # noqa: E402

# Facts that hold wherever the code lies.
FACTS = ("size", "member", "enumerator", "constant", "function", "macro")


def tool(*command, folder):
    """Runs a compiler or the like."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def nested(paths):
    """Paths as a tree of their components."""
    tree = {}
    for path in paths:
        at = tree
        for component in path.split("."):
            at = at.setdefault(component, {})
    return tree


def members(tree, depth=1):
    """Members of a struct: the leaves are of sizes 1, 2, 4, 8 in turn."""
    text = ""
    for number, (name, inner) in enumerate(tree.items()):
        indent = "\t" * depth
        if inner:
            text += f"{indent}struct {{\n{members(inner, depth + 1)}{indent}}} {name};\n"
        else:
            text += f"{indent}{('char', 'short', 'int', 'long')[number % 4]} {name};\n"
    return text


@functools.cache
def types(special):
    """types.h: every struct and enumerator of fields.def that special.h does not have, and a list of them all."""
    with open(ROOT / "gen/fields.def", encoding="utf-8") as file:
        fields = parse(file.read())
    text, truth, users = "", [], ""
    for struct in fields.entries["struct"]:
        name = struct.names[0]
        if re.search(rf"struct {name} \{{|\}} {name};|typedef \w+ {name};", special):
            continue
        paths = [
            entry.names[0].removeprefix(name + ".") for entry in fields.entries["member"] if entry.parent is struct
        ]
        text += f"struct {name} {{\n{members(nested(paths))}\tchar behind_all;\n}};\n"
        truth.append(f'STRUCT(struct {name}, "{name}")')
        truth += [f'MEMBER(struct {name}, "{name}", {path})' for path in paths]
        users += f"\tstruct {name} use_{name};\n"
    values = []
    constants = [entry.names[0] for entry in fields.entries["constant"]]
    enumerators = [entry for entry in fields.entries["enumerator"] if entry.names[0] not in constants]
    for number, entry in enumerate(enumerators):
        # What is shifted by must be a number of bits.
        value = number % 64 if "SHIFT" in entry.names[0] or entry.names[0].endswith("_bit") else number * 37 - 50
        values.append(f"\t{entry.names[0]} = {value},\n")
        truth.append(f"ENUMERATOR({entry.names[0]})")
    text += f"enum all_of_them {{\n{''.join(values)}}};\n"
    users += "\tenum all_of_them use_enumerators;\n"
    for name in re.findall(r"^struct (\w+) \{", special, re.M):
        users += f"\tstruct {name} use_{name};\n"
    # One variable of them all: a linker that optimises can make a unit of each variable.
    users = f"struct {{\n{users}}} use_all;\n"
    defined = "#define GENERATED_TRUTH(STRUCT, MEMBER, ENUMERATOR) \\\n\t" + " \\\n\t".join(truth) + "\n"
    return f'{text}\n#include "special.h"\n\n{users}\n{defined}'


def write_types(folder):
    """Puts types.h into a folder in which a program is to be compiled."""
    (folder / "types.h").write_text(types((SOURCES / "special.h").read_text()))


def compile_program(folder, *flags, compiler="gcc", output="ruby", sources=("other.c", "vm.c", "rust.s")):
    """Compiles and links the program; gives its path."""
    write_types(folder)
    paths = [SOURCES / name for name in sources]
    flags = ["-w", "-Wl,--build-id=sha1", "-rdynamic", f"-I{folder}", f"-I{SOURCES}", *flags]
    tool(compiler, *flags, "-o", output, *paths, folder=folder)
    return folder / output


def facts(text, kinds=FACTS):
    """The lines of a layout that state these kinds of facts."""
    return [line for line in text.splitlines() if line.split(" ", 1)[0] in kinds]


def as_built_without_jit(text):
    """A layout without what a JIT changes: members at the end of a struct that nothing is read by the size of."""
    of_jits = re.compile(r"size rb_iseq_constant_body |member rb_iseq_constant_body\.(jit_entry|zjit_payload) ")
    lines = [line for line in text.splitlines()[:-1] if not of_jits.match(line)]
    stated = facts("\n".join(lines), (*FACTS, "symbol", "window"))
    return "\n".join([*lines, f"end {len(stated)}"]) + "\n"


def truth(program):
    """What a layout of the program must say."""
    return sorted(tool(program, folder=program.parent).splitlines())
