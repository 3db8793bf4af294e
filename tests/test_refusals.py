"""What rbdump refuses: one sentence, the right exit status, nothing on standard output, and the target untouched."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile

import pytest
from conftest import note_not_applicable
from harness.dump import check, check_thread, current, dump, run
from harness.layouts import SHIPPED
from harness.process import is_untouched, status, task_states, tasks, wait_until
from harness.recording import Running
from harness.target import needs
from harness.tracer import Tracer

OFFSETS_D = pathlib.Path(__file__).parent.parent / "offsets.d"
NOBODY = 65534
FAILED, NOT_RUBY, NO_PERMISSION, USAGE = 2, 3, 4, 64

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


def check_refusal(done, status, *words):
    """One line on standard error which holds all the words, whatever their case."""
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
    assert done.stdout == ""
    assert re.fullmatch(r"rbdump: [^\n]+\n", done.stderr), done.stderr
    for word in words:
        assert word.lower() in done.stderr.lower(), done.stderr


def unused_pid():
    """A process id that nothing has: of a child that has ended and was waited for."""
    with subprocess.Popen(["true"]) as child:
        pass
    return child.pid


@pytest.fixture
def public_rbdump(rbdump):
    """A copy of rbdump that every user can run."""
    folder = tempfile.mkdtemp(prefix="rbdump-public-")
    os.chmod(folder, 0o755)
    yield shutil.copy(rbdump, folder)
    shutil.rmtree(folder)


def without_digest(text):
    """A layout as if a person had written it: what is changed in it is then found by its content, or on the target."""
    return re.sub(r"^digest .*\n", "", text, flags=re.M)


def numbers(version):
    return [int(number) for number in version.split(".")]


def holds_for(text, version):
    """Whether a layout is that of a release, or claims a range that it is in (doc/layout-format.md)."""
    if re.search(rf"^version {re.escape(version)}$", text, re.M):
        return True
    claimed = re.search(r"^versions (\S+) (\S+)$", text, re.M)
    return claimed is not None and numbers(claimed[1]) <= numbers(version) <= numbers(claimed[2])


def generate_layout(ruby, rbdump, path):
    """The layout of a Ruby: from its debug info if it has it, else the shipped one for its version."""
    if ruby.has_debug:
        subprocess.run([rbdump, "--gen-offsets", ruby.elf, "-o", path], capture_output=True, timeout=60, check=True)
        return path
    for shipped in SHIPPED:
        if holds_for(shipped.read_text(), ruby.version):
            return pathlib.Path(shutil.copy(shipped, path))
    pytest.fail(f"no layout for {ruby.id}: no debug info, and none is shipped for {ruby.version}")


@pytest.fixture(scope="session")
def layouts(rbdump, tmp_path_factory):
    """layouts(ruby) gives the file of its layout, made once."""
    folder = tmp_path_factory.mktemp("layouts")
    made = {}

    def layout(ruby):
        if ruby not in made:
            made[ruby] = generate_layout(ruby, rbdump, folder / f"{ruby.id}.layout")
        return made[ruby]

    return layout


# ---- processes


@pytest.mark.parametrize("more", [[], ["--json"], ["--no-stop"]], ids=["paused", "json", "unpaused"])
def test_no_such_process(rbdump, more):
    pid = unused_pid()
    check_refusal(run(rbdump, "-p", pid, *more), FAILED, "no process", str(pid))


@pytest.mark.parametrize("more", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_not_a_ruby(rbdump, more):
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            check_refusal(run(rbdump, "-p", sleeper.pid, *more), NOT_RUBY, "ruby", str(sleeper.pid))
            assert is_untouched(sleeper.pid)
        finally:
            sleeper.kill()



@pytest.mark.target("waits.rb")
def test_thread_that_is_no_process(ruby, start, rbdump):
    target = start(ruby, "waits.rb")
    tid = max(int(entry) for entry in os.listdir(f"/proc/{target.pid}/task"))
    assert tid != target.pid
    check_refusal(run(rbdump, "-p", tid), FAILED, f"{tid} is a thread of process {target.pid}")
    assert is_untouched(target.pid)


@pytest.mark.parametrize("version", ["", "ruby"])
def test_program_that_only_has_the_symbol(rbdump, tmp_path, version):
    """Nothing refuses access, and no layout would help: it is no Ruby, and that is what is said."""
    program, source = tmp_path / "program", tmp_path / "program.c"
    source.write_text(
        f'#include <unistd.h>\nconst char ruby_version[] = "{version}";\nint main(void) {{ char c; write(1, "x", 1); return read(0, &c, 1) < 0; }}\n'
    )
    subprocess.run(["gcc", "-w", "-rdynamic", "-o", program, source], check=True, timeout=60)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(1) == b"x"
        check_refusal(run(rbdump, "-p", process.pid), NOT_RUBY, "is not a Ruby", str(program), "version")
        assert is_untouched(process.pid)
        process.stdin.close()
        assert process.wait(60) == 0


def test_zombie(rbdump):
    """A process that has ended, and is there until its parent notices."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        check_refusal(run(rbdump, "-p", child), FAILED, str(child), "ended")
    finally:
        os.waitpid(child, 0)


# ---- permission


@needs_root
@pytest.mark.parametrize("more", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_other_user(ruby, start, public_rbdump, more):
    target = start(ruby, "cfuncs.rb")
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = subprocess.run(
        [*nobody, public_rbdump, "-p", str(target.pid), *more], capture_output=True, text=True, timeout=60, check=False
    )
    check_refusal(done, NO_PERMISSION, "nobody", "root", "sudo")
    assert is_untouched(target.pid)


@needs_root
@pytest.mark.parametrize("more", [[], ["--no-stop"]], ids=["paused", "unpaused"])
def test_missing_capability(public_rbdump, more):
    """Root that may not trace (as in a container), and a process of another user."""
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with subprocess.Popen([*nobody, "sleep", "1000"]) as sleeper:
        try:
            wait_until(lambda: pathlib.Path(f"/proc/{sleeper.pid}/comm").read_text() == "sleep\n", "sleep has started")
            done = subprocess.run(
                ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", public_rbdump]
                + ["-p", str(sleeper.pid), *more],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            check_refusal(done, NO_PERMISSION, "CAP_SYS_PTRACE")
            assert is_untouched(sleeper.pid)
        finally:
            sleeper.kill()


@needs_root
def test_own_process_of_an_ordinary_user(ruby, public_rbdump, layouts):
    """What those two must not refuse: the same user, without any capability."""
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
    own_layout = shutil.copy(layouts(ruby), pathlib.Path(public_rbdump).parent)
    os.chmod(own_layout, 0o644)
    sources = pathlib.Path(public_rbdump).parent / "rest.rb"
    sources.write_text("def rest\n  STDOUT.puts\n  STDOUT.flush\n  STDIN.read\nend\nrest\n")
    program = shutil.copy(ruby.path, pathlib.Path(public_rbdump).parent)  # it may lie where only root can enter
    with subprocess.Popen(
        [*nobody, program, "--disable-gems", sources], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as target:
        assert target.stdout.readline() == b"\n"
        wait_until(lambda: task_states(target.pid) == {"S"}, "it has gone on to read")
        done = subprocess.run(
            [*nobody, public_rbdump, "-p", str(target.pid), "--json", "--offsets", own_layout],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        (thread,) = json.loads(done.stdout)["threads"]
        assert [frame["label"].rpartition("#")[2] for frame in thread["frames"]] == ["read", "rest", "<main>"]
        target.stdin.close()
        assert target.wait(30) == 0


@needs_root
def test_library_replaced(ruby, public_rbdump):
    """Who may not open what is mapped itself is told that its name is another file's now; root sees the old one."""
    if not pathlib.Path(ruby.elf).name.startswith("libruby"):
        note_not_applicable(f"{ruby.id}: it has no libruby that could be replaced")
        return
    folder = pathlib.Path(public_rbdump).parent
    library = pathlib.Path(shutil.copy(ruby.elf, folder))
    for name in pathlib.Path(ruby.elf).parent.glob("libruby*.so*"):
        if name.is_symlink():
            (folder / name.name).symlink_to(library)
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
    with subprocess.Popen(
        [*nobody, ruby.path, "--disable-gems", "-e", "STDOUT.puts; STDOUT.flush; STDIN.read"],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as target:
        assert target.stdout.readline() == b"\n"
        wait_until(lambda: task_states(target.pid) == {"S"}, "it has gone on to read")

        def look(*before):
            return subprocess.run(
                [*before, public_rbdump, "-p", str(target.pid)], capture_output=True, text=True, timeout=60, check=False
            )

        assert "the file of this name" not in look(*nobody).stderr
        library.unlink()
        check_refusal(look(*nobody), NOT_RUBY, str(library), "replaced", "root")
        # The kernel says " (deleted)" after the name; a file may be called so.
        for name in (library.name, f"{library.name} (deleted)"):
            shutil.copy("/usr/bin/true", folder / name)
            check_refusal(look(*nobody), NOT_RUBY, str(library), "replaced", "root")
        assert "the file of this name" not in look().stderr
        target.stdin.close()
        assert target.wait(30) == 0


@pytest.mark.any_ruby
def test_already_traced(ruby, start, rbdump):
    """What runs cannot be stopped then; what sleeps need not be."""
    with Running(ruby, "shares/loops.rb") as running, Tracer(running.pid) as other:
        check_refusal(run(rbdump, "-p", running.pid), NO_PERMISSION, "traced", "python", str(other.process.pid), "--no-stop")
        # The cure that it names is one.
        assert run(rbdump, "-p", running.pid, "--no-stop").returncode in (0, 1)
    target = start(ruby, "cfuncs.rb")
    with Tracer(target.pid):
        check(dump(rbdump, target.pid), target, ruby)
        check(dump(rbdump, target.pid, "--no-stop"), target, ruby, mode="unpaused")
    wait_until(lambda: is_untouched(target.pid), "the other tracer has gone")
    check(dump(rbdump, target.pid), target, ruby)


def spinning(pid):
    """The only kernel thread of a process that runs; None if others do, too, or none does."""
    running = [task for task in tasks(pid) if status(pid, "State", task)[0] == "R"]
    return running[0] if len(running) == 1 else None


@pytest.mark.any_ruby
@pytest.mark.since((2, 3), "Thread#name")
def test_thread_already_traced(ruby, start, rbdump):
    """One that is not the main one: it goes on while the others are stopped, so nothing is said of its stack."""
    target = start(ruby, "states.rb", "1")
    tid = wait_until(lambda: spinning(target.pid), "the busy thread spins")
    with Tracer(tid):
        answer_ = dump(rbdump, target.pid, status=1)
        (refused,) = [thread for thread in current(answer_) if thread["reason"]]
        assert (refused["verdict"], refused["reason"], refused["frames"]) == ("unreadable", "refused", [])
        assert refused["name"] == "busy 0"
        for subject in target.ready["threads"]:
            if subject["name"] != b"busy 0":
                assert not check_thread(answer_, subject)
        assert ": it has another tracer]" in run(rbdump, "-p", target.pid).stdout
    with Tracer(target.ready["tasks"]["queue"]):
        check(dump(rbdump, target.pid), target, ruby)
    wait_until(lambda: is_untouched(target.pid), "the other tracer has gone")
    dump(rbdump, target.pid)
    assert target.release() == 0


# ---- layout files


def check_layout_refused(rbdump, target, path, status, *words):
    check_refusal(run(rbdump, "-p", target.pid, "--offsets", path), status, *words)
    assert is_untouched(target.pid)


def test_given_layout_serves(ruby, start, rbdump, layouts):
    """So that the refusals below are for what was changed."""
    target = start(ruby, "cfuncs.rb")
    answer = dump(rbdump, target.pid, "--offsets", layouts(ruby))
    check(answer, target, ruby)
    assert answer["layout"]["source"] == "given"


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda text: "", ["empty"]),
        (lambda text: text[: len(text) // 2], ["line"]),
        (lambda text: text[: text.rindex("end ")], ["cut short"]),
        (lambda text: text[:100], []),
        (lambda text: text.replace("rbdump-layout 1\n", "rbdump-layout 2\n"), ["format", "2"]),
        (lambda text: text.replace("rbdump-layout 1\n", "rbdump-layout 99999999999999999999\n"), ["format"]),
        (lambda text: "not a layout\n" + text, []),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 9223372036854775808", text), ["line"]),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 -8", text), ["line"]),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 4294967312", text), ["line"]),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 70000", text), ["line"]),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+", r"\1 0", text), []),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+", r"\1 1000000000", text), ["line"]),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+", r"\1 0x40", text), ["line"]),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+\n", "", text), []),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) .*\n", "", text), []),
        (lambda text: re.sub(r"((?:enumerator|macro) VM_FRAME_MAGIC_MASK) \d+", r"\1 many", text), ["line"]),
        (lambda text: re.sub(r"(member \S+ .*\n)", r"\1\1", text, count=1), ["line"]),
        (lambda text: re.sub(r"(producer|source) .*", lambda m: f"{m[1]} {'x' * 2000}", text), ["line"]),
        (lambda text: text + "x" * (2 << 20), []),
        (lambda text: text.replace("\narch x86_64\n", "\narch mips\n"), ["mips"]),
    ],
    ids=[
        "empty", "half", "no-end", "first-bytes", "format-2", "format-huge", "no-layout", "offset-2^63", "offset-negative",
        "offset-2^32", "offset-beyond-64k", "size-0", "size-huge", "size-in-hex", "size-missing", "member-missing",
        "no-number", "line-twice", "long-line", "too-big", "other-architecture",
    ],
)  # fmt: skip
def test_broken_layout(ruby, start, rbdump, layouts, tmp_path, change, words):
    target = start(ruby, "cfuncs.rb")
    broken = tmp_path / "broken.layout"
    right = without_digest(layouts(ruby).read_text())
    text = change(right)
    assert text != right
    broken.write_text(text)
    check_layout_refused(rbdump, target, broken, NOT_RUBY, "broken.layout", *words)


def test_layout_file_not_there(ruby, start, rbdump, tmp_path):
    target = start(ruby, "cfuncs.rb")
    check_layout_refused(rbdump, target, tmp_path / "none", NOT_RUBY, "none", "no such file")


def test_layout_file_is_a_folder(ruby, start, rbdump, tmp_path):
    target = start(ruby, "cfuncs.rb")
    check_layout_refused(rbdump, target, tmp_path, NOT_RUBY, str(tmp_path))


def members(text):
    return re.findall(r"^(?:member|enumerator) .*", text, re.M)


def only_fibers_differ(text, other):
    """Of releases of 2.1: a target that has no fiber cannot contradict where things are in one, nor use it."""
    return all(line.startswith("member rb_fiber_struct.") for line in set(members(text)) ^ set(members(other)))


@pytest.mark.long
@pytest.mark.target("waits.rb")
def test_layout_of_another_ruby(ruby, start, rbdump, layouts, tmp_path):
    """Every shipped layout of another version, as it is and under this one's version, is refused on the target itself."""
    target = start(ruby, "waits.rb")
    versions = set()
    for shipped in sorted(OFFSETS_D.glob("*.layout")):
        text = shipped.read_text()
        version = re.search(r"^version (.*)", text, re.M)[1]
        if holds_for(text, ruby.version):
            continue
        versions.add(version)
        check_layout_refused(rbdump, target, shipped, NOT_RUBY, ruby.version, version)
        if members(text) == members(layouts(ruby).read_text()):
            continue  # what differs is the size of structs that stand alone
        disguised = tmp_path / f"{version}-as-{ruby.version}.layout"
        text = re.sub(r"^(versions|levels) .*\n", "", without_digest(text), flags=re.M)
        disguised.write_text(re.sub(r"^version .*", f"version {ruby.version}", text, flags=re.M))
        if re.search("^configuration ", text, re.M) and only_fibers_differ(text, layouts(ruby).read_text()):
            # Its fibers are elsewhere by more than a release moves them: that is seen as soon as a thread has used one.
            if run(rbdump, "-p", target.pid, "--offsets", disguised).returncode == NOT_RUBY:
                check_layout_refused(rbdump, target, disguised, NOT_RUBY, "self-test")
                continue
        if only_fibers_differ(text, layouts(ruby).read_text()):
            assert frames(dump(rbdump, target.pid, "--offsets", disguised)) == frames(dump(rbdump, target.pid))
            continue
        check_layout_refused(rbdump, target, disguised, NOT_RUBY, "self-test")
    assert versions >= {"2.7.4", "3.1.2", "3.3.8", "3.4.5", "4.0.5"} - {ruby.version}


def mutants(text):
    """(what was changed, text) for each member of a layout: a word further, and a word back; a bitfield by one bit."""
    for line in re.findall(r"^member .*", text, re.M):
        word, name, offset, size, *bits = line.split()
        if bits:
            changed = [[word, name, offset, size, bits[0], str((int(bits[1]) + 1) % 8), bits[2]]]
        else:
            changed = [[word, name, str(int(offset) + by), size] for by in (8, -8) if int(offset) + by >= 0]
        for new in changed:
            yield f"{name} {offset}→{new[2]}", text.replace(line + "\n", " ".join(new) + "\n")


def answer(done):
    """What is printed, but for how long it took and by which layout."""
    printed = json.loads(done.stdout)
    del printed["pause_us"], printed["layout"]
    return printed


def frames(printed):
    return [thread["frames"] for thread in printed["threads"]]


def try_mutants(rbdump, target, text, folder):
    """Offers every mutant, and sorts what comes of them: lists of names for "refused", "wrong stacks", …"""
    (folder / "right.layout").write_text(text)
    right = answer(run(rbdump, "-p", target.pid, "--json", "--offsets", folder / "right.layout"))
    outcomes = {}
    for name, mutant in mutants(text):
        (folder / "mutant.layout").write_text(mutant)
        done = run(rbdump, "-p", target.pid, "--json", "--offsets", folder / "mutant.layout")
        if done.returncode == 0 and frames(answer(done)) != frames(right):
            outcome = "wrong stacks"
        elif done.returncode == 0:
            outcome = "same answer" if answer(done) == right else "wrong details"
        elif done.returncode == 1:
            outcome = "marked stacks"
        else:
            check_refusal(done, NOT_RUBY)
            assert re.search("self-test|do not fit into its struct|out of range|digest", done.stderr), done.stderr
            outcome = "refused"
        outcomes.setdefault(outcome, []).append(name)
    assert is_untouched(target.pid)
    return outcomes


@pytest.mark.target("waits.rb")
def test_layout_with_one_member_moved(ruby, start, rbdump, layouts, tmp_path):
    """Each is refused: whatever its digest does not belong to, and nothing is printed."""
    target = start(ruby, "waits.rb")
    text = layouts(ruby).read_text()
    assert re.search(r"^digest ", text, re.M)
    outcomes = try_mutants(rbdump, target, text, tmp_path)
    assert set(outcomes) == {"refused"}, outcomes
    assert len(outcomes["refused"]) > 100


@pytest.mark.outer_rubies
@pytest.mark.since((2, 3), "a self-test that finds each member that is wrong")
def test_layout_of_a_person_with_one_member_moved(ruby, start, rbdump, layouts, tmp_path):
    """Without a digest the target is all that can tell: what passes the self-test prints no wrong stack unmarked.

    A target at rest cannot contradict that no thread of it is in a blocking region: where that is wrong, the state of a
    thread is, and no frame.
    """
    target = start(ruby, "waits.rb")
    outcomes = try_mutants(rbdump, target, without_digest(layouts(ruby).read_text()), tmp_path)
    assert not outcomes.get("wrong stacks"), outcomes["wrong stacks"]
    details = {name.split()[0] for name in outcomes.get("wrong details", [])}
    assert details <= {"rb_thread_struct.blocking_region_buffer"}
    assert len(outcomes["refused"]) > 50


def test_outdated_layout_is_made_anew(ruby, start, rbdump, layouts, tmp_path, monkeypatch):
    """One of this very build, in the cache, whose generator did not look for all that this rbdump reads."""
    if not ruby.has_debug:
        note_not_applicable(f"making the layout of {ruby.id} anew: it has no debug info")
        return
    target = start(ruby, "cfuncs.rb")
    cache = tmp_path / "rbdump/offsets.d"
    cache.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    right = layouts(ruby).read_text()
    build_id = re.search(r"^build-id ([0-9a-f]{12})", right, re.M)[1]
    kept = cache / f"{ruby.version}-x86_64-{build_id}.layout"
    kept.write_text(re.sub(r"^asked \w+$", "asked 0123456789abcdef", without_digest(right), flags=re.M))
    answer_ = dump(rbdump, target.pid)
    (made,) = tmp_path.glob("rbdump/by-digest/*/*.layout")
    assert answer_["layout"] == {**answer_["layout"], "source": "generated", "file": str(made)}
    assert made.read_text() == right
    again = dump(rbdump, target.pid)["layout"]
    assert (again["source"], again["file"]) == ("build-id", str(made))


@pytest.mark.parametrize("by", [8, -8])
@pytest.mark.parametrize("struct", ["rb_control_frame_(struct|t)", "iseq_(insn|line)_info_entry", "succ_dict_block"])
def test_layout_with_another_size(ruby, start, rbdump, layouts, tmp_path, struct, by):
    """Of structs that stand in a row, of which the size is the step from one to the next."""
    if struct == "succ_dict_block" and ruby.series < (2, 6):
        note_not_applicable(f"another size of {struct} on {ruby.id}: it has none")
        return
    target = start(ruby, "multiline.rb" if ruby.series >= needs("multiline.rb") else "oldest.rb")
    mutant = tmp_path / "mutant.layout"

    def changed(match):
        return f"{match[1]} {int(match[match.lastindex]) + by}"

    right = without_digest(layouts(ruby).read_text())
    text, changes = re.subn(rf"^(size {struct}) (\d+)$", changed, right, flags=re.M)
    assert changes == 1
    mutant.write_text(text)
    check_layout_refused(rbdump, target, mutant, NOT_RUBY)


# ---- usage


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["-p"], ["-p", "x"], ["-p", ""], ["-p", "0"], ["-p", "-1"], ["-p", "1x"], ["-p", "99999999999999999999"],
        ["-p", "1", "more"], ["--no-such-option"], ["-p", "1", "--offsets"], ["--json"], ["--gen-offsets"],
        ["-p", "1", "--gen-offsets", "/usr/bin/ruby"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_usage(rbdump, arguments):
    check_refusal(run(rbdump, *arguments), USAGE)


@pytest.mark.parametrize("arguments, words", [(["--help"], ["-p", "--json", "--no-stop"]), (["--version"], ["rbdump"])])
def test_help_and_version(rbdump, arguments, words):
    done = run(rbdump, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(word in done.stdout for word in words)


# ---- rbdump itself goes wrong


def test_standard_output_is_full(ruby, start, rbdump):
    target = start(ruby, "cfuncs.rb")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [rbdump, "-p", str(target.pid)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == FAILED
    assert re.fullmatch(r"rbdump: [^\n]+\n", done.stderr), done.stderr
    assert is_untouched(target.pid)


@pytest.mark.any_ruby
def test_killed_in_the_middle(ruby, start, rbdump):
    """However rbdump ends, the target runs on, untraced, and is as it was."""
    target = start(ruby, "threads.rb")
    dump(rbdump, target.pid)  # with the layout in the cache, the kills hit the reading
    times = random.Random(1)
    for _ in range(50):
        with subprocess.Popen(
            [rbdump, "-p", str(target.pid), "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as running:
            try:
                running.wait(times.uniform(0, 0.010))
            except subprocess.TimeoutExpired:
                running.kill()
        wait_until(lambda: is_untouched(target.pid), "the target is as it was", 5)
    check(dump(rbdump, target.pid), target, ruby)
    assert target.release() == 0


# The first thread is seized; then a signal comes, which a seized thread stops at; and rbdump gets as far as copying. The
# guard, which is rbdump's only child, is killed before: it kills an rbdump that a debugger holds. SIG34 is SIGRTMIN, by
# which a wait of PTRACE_SEIZE is interrupted (dumper/target/exec_lock.c).
KILL_THE_GUARD = (
    "import os, signal; pid = gdb.selected_inferior().pid; "
    "[os.kill(int(child), signal.SIGKILL) for child in open(f'/proc/{pid}/task/{pid}/children').read().split()]"
)
UNTIL_PAUSED = [
    "set pagination off", "handle SIG34 nostop noprint pass", "break live_stop", "run", f"python {KILL_THE_GUARD}", "break ptrace", "continue", "finish",
    "shell kill -USR1 {target}", "shell until grep -q '^State:.t' /proc/{target}/status; do sleep 0.01; done",
    "delete", "break memory_prefetch", "continue", "echo paused\\n", "kill",
]  # fmt: skip


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
def test_killed_in_a_pause_with_a_signal_on_its_way(ruby, rbdump):
    """The target is let go, and gets its signal."""
    # One that sleeps would not be stopped.
    script = "$stdout.sync = true; trap('USR1') { puts 'signal'; exit!(0) }; puts 'ready'; loop {}"
    with subprocess.Popen(
        [ruby.path, "--disable-gems", "-e", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as target:
        assert target.stdout.readline() == b"ready\n"
        commands = [word for command in UNTIL_PAUSED for word in ("-ex", command.replace("{target}", str(target.pid)))]
        said = subprocess.run(
            ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *commands, "--args", rbdump, "-p", str(target.pid)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert " hit Breakpoint" in said.stdout.rpartition("memory_prefetch (")[0] and "paused\n" in said.stdout, said
        assert target.stdout.read() == b"signal\n"
        assert target.wait(30) == 0
