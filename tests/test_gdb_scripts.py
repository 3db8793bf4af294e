"""gdb-scripts/: what rb-bt shows equals what Ruby itself shows, and check-layout finds every wrong line."""

import contextlib
import json
import pathlib
import re
import subprocess

import pytest
from conftest import RUBIES, note_not_applicable
from harness.debugger import GDB, PLAIN_GDB, Debugger
from harness.dump import as_text
from harness.process import is_untouched, status, tasks
from harness.rubies import probe
from harness.synthetic import as_built_without_jit
from harness.target import TARGETS, Target, needs

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "gdb-scripts"
SECONDS = 120  # for any one command; they take about one

# What the two commands print at their best.
AGREES = re.compile(r"^([0-9]+) lines checked, 0 differ$", re.M)
DIFFERS = re.compile(r"^([0-9]+) lines checked, ([1-9][0-9]*) differ$", re.M)


def debug_rubies():
    """All Rubies that gdb can read, the builds with libruby included."""
    found = []
    for ruby in RUBIES:
        found.append(ruby)
        if ruby.shared:
            found.append(probe(f"{ruby.id}-shared", ruby.shared))
    for ruby in found:
        if not ruby.has_debug:
            note_not_applicable(f"gdb-scripts on {ruby.id}: it has no debug info")
    return [ruby for ruby in found if ruby.has_debug]


DEBUG_RUBIES = debug_rubies()


@pytest.fixture(params=DEBUG_RUBIES, ids=lambda ruby: ruby.id)
def debug_ruby(request):
    return request.param


def test_there_are_rubies():
    assert DEBUG_RUBIES, "no Ruby with debug info: run tests/rubies/build"


def gdb(*arguments, seconds=SECONDS, command=GDB):
    """Runs gdb and returns its result; stdout and stderr are text."""
    return subprocess.run(
        [*command, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=seconds,
        check=False,
    )


def commands(*lines):
    return [word for line in lines for word in ("-ex", line)]


@pytest.fixture(scope="module")
def look(tmp_path_factory):
    """look(ruby, pid, commands…): what the gdb of a Ruby says of a process; it stays for the next one."""
    debuggers = {}

    def look_at(ruby, pid, *lines):
        if ruby.path not in debuggers:
            debuggers[ruby.path] = Debugger(SCRIPTS / "rb_bt.py", tmp_path_factory.mktemp("gdb") / "errors", SECONDS)
        return debuggers[ruby.path].look(pid, *lines)

    yield look_at
    for debugger in debuggers.values():
        debugger.close()


def stacks_of(result):
    """The lists that `rb-bt --json` printed, one for each time."""
    assert "Traceback" not in result.stderr, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("[{")]


def stack_of(subject, stacks):
    """The one stack that rb-bt shows for a thread: by its kernel thread, where Ruby tells that, and its name."""
    found = [
        stack
        for stack in stacks
        if stack["fiber"] is None
        and stack["name"] == as_text(subject["name"])
        and (subject["tid"] is None or stack["tid"] == subject["tid"])
        and (subject["name"] is not None or stack["main"] == (subject["key"] == b"main"))
    ]
    assert len(found) == 1, f"{len(found)} stacks for the thread {subject['key']}"
    return found[0]


def subjects(target):
    """What it tells of its threads, and of that of its ractor."""
    return target.ready["threads"] + [target.ready[key] for key in ("ractor",) if key in target.ready]


def compare(target, stacks):
    """Asserts that the stacks are, frame by frame, what Ruby says."""
    assert subjects(target)
    for subject in subjects(target):
        stack = stack_of(subject, stacks)
        want = [(as_text(path), line, as_text(label)) for path, _, line, label in subject["frames"]]
        have = [(frame["path"], frame["line"], frame["label"]) for frame in stack["frames"]]
        assert have == want, subject["key"]
        assert stack["reason"] is None


@contextlib.contextmanager
def running(ruby, script, flags=()):
    """A target that rests; asserts that it is well until it may end."""
    target = Target(str(ruby.path), script, "2", flags=flags, timeout=SECONDS)  # states.rb wants to know how many busy
    try:
        yield target
        assert is_untouched(target.pid)
        assert target.release() == 0
    finally:
        target.close()


# ---- rb-bt


# What has no subjects, or never rests: with that, gdb needs many times as long.
UNSUITED = {"still.rb", "garbage.rb", "forked.rb", "churn.rb", "crowd.rb", "operators.rb", "contention.rb", "contention_others.rb", "fibers_busy.rb"}
# What a release, a JIT, and another way to build the same Ruby may change.
VARIED = ("blocks.rb", "cfuncs.rb", "evals.rb", "fibers.rb", "rescues.rb")


def cases():
    """
    Every Ruby; on the oldest and the newest with every target but those that tell later what they show: on the oldest only
    with --soak, as it is the same code of rb-bt that shows them, and test_dump.py has them on each Ruby.
    """
    by_age = sorted((ruby for ruby in DEBUG_RUBIES if not ruby.id.endswith("-shared")), key=lambda ruby: ruby.series)
    outer = {ruby.id for ruby in by_age[:1] + by_age[-1:]}
    for ruby in DEBUG_RUBIES:
        for script in sorted(path.name for path in TARGETS.glob("*.rb")):
            if script in UNSUITED:
                continue
            if ruby.series < needs(script):
                continue  # test_dump.py notes it
            if ruby.id not in outer and script not in VARIED:
                continue
            marks = [] if script in VARIED else [pytest.mark.newest_ruby]
            yield pytest.param(ruby, script, (), marks=marks, id=f"{ruby.id}-{script.removesuffix('.rb')}")
        if ruby.has_yjit:
            for script in VARIED:
                flags = ("--yjit", "--yjit-call-threshold=1")
                marks = [pytest.mark.newest_ruby]
                yield pytest.param(ruby, script, flags, marks=marks, id=f"{ruby.id}-yjit-{script.removesuffix('.rb')}")


@pytest.mark.outer_rubies
@pytest.mark.long
@pytest.mark.parametrize("ruby_here, script, flags", cases())
def test_live(ruby_here, script, flags, look):
    with running(ruby_here, script, flags) as target:
        (stacks,) = stacks_of(look(ruby_here, target.pid, "rb-bt --json"))
        compare(target, stacks)


def test_forked(debug_ruby, look):
    """In a child, 3.1 itself takes its parent's kernel thread for its main thread's: here it is the kernel's word."""
    with running(debug_ruby, "forked.rb") as target:
        child = target.ready["pid"]
        for subject in target.ready["threads"]:
            subject["tid"] = kernel_thread(child, subject)
        (stacks,) = stacks_of(look(debug_ruby, child, "rb-bt --json"))
        compare(target, stacks)
        assert is_untouched(child)


def kernel_thread(pid, subject):
    """By the name that Ruby gives it in the kernel too; main is the process's first."""
    if subject["key"] == b"main":
        return pid
    found = [tid for tid in tasks(pid) if status(pid, "Name", tid).encode() == subject["name"]]
    assert len(found) == 1
    return found[0]


@pytest.mark.outer_rubies
def test_core(debug_ruby, tmp_path, look):
    """A core gives the same, to the last address, as the process that it is of."""
    core = tmp_path / "core"
    with running(debug_ruby, "fibers.rb") as target:
        (live,) = stacks_of(look(debug_ruby, target.pid, "rb-bt --json", f"generate-core-file {core}"))
        compare(target, live)
    (dead,) = stacks_of(gdb(debug_ruby.path, core, "-x", SCRIPTS / "rb_bt.py", *commands("rb-bt --json")))
    core.unlink()
    assert dead == live


@pytest.mark.parametrize(
    "with_list", [ruby for ruby in DEBUG_RUBIES if ruby.series >= (3, 3)], ids=lambda ruby: ruby.id
)
def test_suspended_fibers(with_list, look):
    """The three fibers that fibers.rb leaves in Fiber.yield are shown by a Ruby that keeps a list of its fibers."""
    with running(with_list, "fibers.rb") as target:
        (stacks,) = stacks_of(look(with_list, target.pid, "rb-bt --json"))
        beside = next(thread for thread in subjects(target) if thread["key"] == b"suspended beside")
        owner = stack_of(beside, stacks)
    fibers = [stack for stack in stacks if stack["fiber"] is not None and stack["thread"] == owner["thread"]]
    yielding = [fiber for fiber in fibers if fiber["frames"] and fiber["frames"][0]["label"].endswith("yield")]
    assert len(yielding) == 3
    for fiber in yielding:
        assert fiber["status"] == "suspended"
        assert [frame["label"].split("#")[-1] for frame in fiber["frames"][2:3]] == ["each"]
        assert {frame["path"] for frame in fiber["frames"]} == {"fibers.rb"}


def test_other_commands(debug_ruby, look):
    with running(debug_ruby, "methods.rb") as target:
        main = next(thread for thread in subjects(target) if thread["key"] == b"main")
        path, _, line, label = main["frames"][-1]
        number = len(main["frames"]) - 1
        result = look(
            debug_ruby,
            target.pid,
            "rb-bt here",
            f"rb-bt {target.pid}",
            "rb-threads",
            f"rb-frame {number} {target.pid}",
            "rb-iseq $rb_cfp->iseq",
            "rb-str $rb_cfp->iseq->body->location.label",
        )
        assert "Traceback" not in result.stderr
        shown = f"{as_text(path)}:{line}:in '{as_text(label)}'"
        lines = result.stdout.splitlines()
        # gdb attaches with the main thread selected, which is the one whose id is the process's.
        assert sum(at.startswith("#") and at.endswith(shown) for at in lines) == 3  # rb-bt twice, rb-frame
        assert sum(re.search(r" \d+ frames, ", at) is not None for at in lines) >= len(subjects(target))
        path, label = re.escape(as_text(path)), re.escape(as_text(label))
        assert any(re.fullmatch(rf"{path}:\d+:in '{label}'", at) for at in lines)
        assert any(re.fullmatch(f'"{label}"', at) for at in lines)


def test_unreadable_frame(debug_ruby, look):
    """A frame that makes no sense is shown as such, at its place, and all others as before."""
    with running(debug_ruby, "blocks.rb") as target:
        main = next(thread for thread in subjects(target) if thread["key"] == b"main")
        number = len(main["frames"]) - 1
        result = look(
            debug_ruby,
            target.pid,
            "rb-bt --json",
            f"rb-frame {number} {target.pid}",
            "set var $saved = $rb_cfp->iseq",
            "set var $rb_cfp->iseq = (void *) 0x10",
            "rb-bt --json",
            "rb-bt",
            "set var $rb_cfp->iseq = $saved",
        )
        before, after = stacks_of(result)
        whole, damaged = stack_of(main, before), stack_of(main, after)
        assert len(whole["frames"]) == len(damaged["frames"]) == number + 1
        assert damaged["frames"][number]["kind"] == "unreadable"
        assert damaged["frames"][number]["cfp"] == whole["frames"][number]["cfp"]
        assert damaged["frames"][number]["reason"]
        assert f"<unreadable frame at {whole['frames'][number]['cfp']:#x}: " in result.stdout
        others = [stack for stack in before if stack is not whole]
        assert others == [stack for stack in after if stack is not damaged]


@pytest.mark.outer_rubies
@pytest.mark.long
def test_unreadable_stack(debug_ruby, look):
    """So is a stack whose control frame lies elsewhere."""
    with running(debug_ruby, "deadlock.rb") as target:
        ec = "((struct rb_thread_struct *) $thread)->ec->cfp"
        (stacks,) = stacks_of(look(debug_ruby, target.pid, "rb-bt --json"))
        thread = next(stack for stack in stacks if not stack["main"])["thread"]
        result = look(
            debug_ruby,
            target.pid,
            "rb-bt --json",
            f"set var $thread = {thread}",
            f"set var $saved = {ec}",
            f"set var {ec} = (void *) ((char *) $saved + 8)",
            "rb-bt --json",
            f"set var {ec} = $saved",
        )
        before, after = stacks_of(result)
        damaged = next(stack for stack in after if stack["thread"] == thread)
        assert "is not in the VM stack" in damaged["reason"]
        assert damaged["frames"] == []
        assert [s for s in after if s is not damaged] == [s for s in before if s["thread"] != thread]


@pytest.mark.three_rubies
def test_refusals(debug_ruby, look):
    """Each mistake gets a sentence."""
    result = gdb(debug_ruby.path, "-x", SCRIPTS / "rb_bt.py", *commands("rb-bt"))
    assert "There is no process and no core" in result.stderr
    mistakes = {
        "rb-bt 12345": "rb-threads",
        "rb-bt ruby_sysinit(0, 0)": "function",  # gdb may not call it
        "rb-bt no_such_name": "no_such_name",
        "rb-frame": "Usage: ",
        "rb-frame 1000": "The stack has ",
        "rb-str": "Usage: ",
        "rb-str 7": "is not an object",
        "rb-str 0x10000": "cannot read memory at 0x10000",
        "rb-iseq 0x10000": "cannot read memory at 0x10000",
        "rb-iseq ruby_current_vm_ptr": "rb-iseq: ",
    }
    with running(debug_ruby, "deadlock.rb") as target:
        before = look(debug_ruby, target.pid)
        result = look(debug_ruby, target.pid, *mistakes)
    # Not what gdb says of the sources of libc, if there is debug info of libc.
    first, sentences = ([line for line in one.stderr.splitlines() if not re.match(r"\d+\t", line)] for one in (before, result))
    sentences = sentences[len(first) :]
    assert len(sentences) == len(mistakes), sentences
    for (mistake, told), sentence in zip(mistakes.items(), sentences):
        assert told in sentence, mistake
    assert "#" not in result.stdout.replace(before.stdout, "")


# ---- check-layout


@pytest.fixture
def layout(debug_ruby, rbdump, tmp_path):
    """The lines of the layout that rbdump generates for the Ruby."""
    file = tmp_path / "layout"
    subprocess.run(
        [str(rbdump), "--gen-offsets", str(debug_ruby.path), "-o", str(file)],
        check=True,
        timeout=SECONDS,
        capture_output=True,
    )
    return file.read_text().splitlines()


# What gdb says of an address, or of a line that is right, is the same for all layouts: it is asked once.
ASKED_ONCE = [
    "python import functools",
    "python functions_at, places_of, check_fact = map(functools.cache, (functions_at, places_of, check_fact))",
]


def check_layout(elf, *lines, seconds=SECONDS):
    return gdb("-x", SCRIPTS / "check_layout.py", *commands(*lines), elf, seconds=seconds, command=PLAIN_GDB)


def check_layouts(ruby, folder, *layouts, seconds=SECONDS):
    """Runs check-layout over each of LAYOUTS, which are lists of lines, in one gdb; returns its result."""
    lines = list(ASKED_ONCE) if len(layouts) > 1 else []
    for index, layout in enumerate(layouts):
        file = folder / f"checked-{index}"
        file.write_text("\n".join(layout) + "\n")
        lines.append(f"check-layout {file}")
    result = check_layout(ruby.elf, *lines, seconds=seconds)
    assert "Traceback" not in result.stderr and "Python Exception" not in result.stderr, result.stderr
    return result


def shipped_for(ruby):
    """The lines of the layout in offsets.d/ for its version, as one that it was built for; None if there is none."""
    file = SCRIPTS.parent / "offsets.d" / f"{ruby.version}-x86_64.layout"
    if not file.exists():
        return None
    return (file.read_text() if ruby.has_yjit else as_built_without_jit(file.read_text())).splitlines()


def test_layouts_agree(debug_ruby, layout, tmp_path):
    """The one that is generated, that with a line in its header that gdb cannot check, and that which is shipped."""
    shipped = shipped_for(debug_ruby)
    of_a_configuration = [layout[0], "configuration setjmp", *layout[1:]]
    layouts = [layout, of_a_configuration, *([shipped] if shipped else [])]
    result = check_layouts(debug_ruby, tmp_path, *layouts)
    assert result.returncode == 0, result.stdout + result.stderr
    counts = [int(count) for count in AGREES.findall(result.stdout)]
    assert len(counts) == len(layouts), result.stdout + result.stderr
    headers = sum(line.split(" ")[0] in ("arch", "build-id", "description", "version") for line in layout)
    assert counts[0] == counts[1] == int(layout[-1].split(" ")[1]) + headers


def add(line, word, number):
    """LINE with NUMBER added to its word of that index."""
    words = line.split(" ")
    in_hex = words[word].startswith("0x")
    value = int(words[word], 0) + number
    words[word] = hex(value) if in_hex else str(value)
    return " ".join(words)


def mutations(layout):
    """What is to be found out: pairs of a name and the lines."""

    def first(pattern):
        return next(index for index, line in enumerate(layout) if re.match(pattern, line))

    def changed(name, pattern, change):
        index = first(pattern)
        return name, layout[:index] + [change(layout[index])] + layout[index + 1 :]

    yield changed("size", r"size rb_control_frame_struct ", lambda line: add(line, 2, 8))
    yield changed("offset", r"member rb_control_frame_struct\.ep ", lambda line: add(line, 2, 8))
    yield changed("member's size", r"member RString\.as\.heap\.ptr ", lambda line: add(line, 3, -4))
    yield changed("bit", r"member .* bits ", lambda line: add(line, 5, 1))
    yield changed("width", r"member .* bits ", lambda line: add(line, 6, 1))
    yield changed("no bitfield", r"member .* bits ", lambda line: line[: line.index(" bits")])
    yield changed("no such member", r"member rb_control_frame_struct\.ep ", lambda line: line.replace("ep", "epp"))
    yield changed("no such struct", r"size RString ", lambda line: line.replace("RString", "RStrung"))
    yield changed("enumerator", r"enumerator VM_FRAME_MAGIC_METHOD ", lambda line: add(line, 2, 1))
    yield changed("sign", r"enumerator imemo_iseq ", lambda line: line.replace("iseq ", "iseq -"))
    yield changed("constant", r"constant ", lambda line: add(line, 2, 1))
    yield changed("symbol", r"symbol ruby_current_vm_ptr ", lambda line: add(line, 2, 8))
    yield changed("architecture", r"arch ", lambda line: "arch aarch64")
    yield changed("build-id", r"build-id ", lambda line: "build-id " + "0" * 40)
    yield changed("version", r"version ", lambda line: line + "1")
    yield changed("description", r"description ", lambda line: line + "1")
    yield changed("end", r"end ", lambda line: add(line, 1, 1))
    yield "short", layout[:-1]
    yield "format", ["rbdump-layout 2"] + layout[1:]

    def with_fact(fact):
        return layout[:-1] + [fact, add(layout[-1], 1, 1)]

    yield "function", with_fact("function no_such_function_is_in_ruby")
    yield "expression", with_fact("symbol ruby_current_vm_ptr+8 0x0")
    yield "kind of fact", with_fact("colour blue")

    windows = [index for index, line in enumerate(layout) if line.startswith("window ")]
    assert len(windows) > 10  # as many places that vm_push_frame is inlined at, at the very least
    edges = [edge for index in windows for edge in layout[index].split(" ")[2:4]]
    for index in windows[::25]:
        name = layout[index]
        _, _, low, high, _ = name.split(" ")
        for what, word, number in (
            ("begins early", 2, -1),
            ("begins late", 2, 1),
            ("ends early", 3, -1),
            ("ends late", 3, 1),
        ):
            if edges.count(low if word == 2 else high) == 1:  # else the next window is there, and nothing is wrong
                yield f"{name} {what}", layout[:index] + [add(name, word, number)] + layout[index + 1 :]
        yield f"{name} elsewhere", layout[:index] + [name + "_"] + layout[index + 1 :]
        # The script knows the windows' names by the layout only: one of them must stay.
        if sum(layout[other].split(" ")[1] == name.split(" ")[1] for other in windows) > 1:
            left_out = layout[:index] + layout[index + 1 : -1] + [add(layout[-1], 1, -1)]
            yield f"{name} left out", left_out


@pytest.mark.long
@pytest.mark.newest_ruby
def test_layout_differs(debug_ruby, layout, tmp_path):
    """Whatever is changed in a layout is found, and it is the changed line that is named."""
    changed = list(mutations(layout))
    # Some ninety of them, one after the other.
    result = check_layouts(debug_ruby, tmp_path, *(lines for _, lines in changed), seconds=5 * SECONDS)
    assert result.returncode == 1
    assert not AGREES.search(result.stdout)
    found = DIFFERS.findall(result.stderr)
    assert len(found) == len(changed), [name for name, _ in changed]
    # Each difference is one line on stdout, in the order of the layouts.
    told = iter(result.stdout.splitlines())
    for (name, lines), (_, count) in zip(changed, found):
        differences = [next(told) for _ in range(int(count))]
        new = [line for line in lines if line not in layout]
        # A window that is too short is right as far as it goes: it is its absence that is told.
        told_here = [line for line in differences if line.startswith((*new[:1], "window: gdb says "))]
        assert told_here or not new, name
    assert next(told, None) is None


@pytest.mark.newest_ruby
def test_layout_refusals(debug_ruby, tmp_path):
    result = check_layout(debug_ruby.elf, f"check-layout {tmp_path}/none")
    assert result.returncode == 1
    assert "No such file or directory" in result.stderr
    empty = tmp_path / "empty"
    empty.write_text("")
    result = check_layout(debug_ruby.elf, f"check-layout {empty}")
    assert result.returncode == 1
    assert "not a layout file" in result.stdout
