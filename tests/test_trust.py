"""
What a target, and others on the machine, can do to what rbdump believes: files that it keeps, folders that it reads from,
files that it writes, and ELF files that change while they are read. And what rbdump can do with few permissions.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import dump, run
from harness.kernel import numbers_mounts
from harness.process import task_states, tracers_of, wait_until
from harness.recording import Recording, Running
from harness.rubies import probe
from harness.target import TARGETS, Target

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOBODY = 65534
NOT_RUBY, NO_PERMISSION = 3, 4

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
SYSTEM_RUBY = pathlib.Path("/usr/bin/ruby")
needs_system_ruby = pytest.mark.skipif(not SYSTEM_RUBY.exists(), reason="no Ruby that every user can run")

# Of a series, one executable that has its debug info in itself.
WITH_DEBUG = next((ruby for ruby in RUBIES if ruby.has_debug and ruby.elf == ruby.path), None)
needs_debug = pytest.mark.skipif(WITH_DEBUG is None, reason="no Ruby with debug info in its executable")


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    """Nobody has looked at a Ruby before."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def elf_copy(folder, change=None):
    """A Ruby's executable beside its own, which finds its library where the original does."""
    original = pathlib.Path(WITH_DEBUG.path)
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True)
    (folder / "lib").symlink_to(original.resolve().parent.parent / "lib")
    copy = pathlib.Path(shutil.copy(original, bin_folder / original.name))
    if change:
        change(copy)
    return copy


def append_byte(path):
    """Another file with the same build-id."""
    with open(path, "ab") as file:
        file.write(b"\0")


def without_build_id(path):
    subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", path], check=True, capture_output=True, timeout=60)


def states(answer):
    return [thread["state"] for thread in answer["threads"]]


def exchange_states(path):
    """A layout in which two states of a thread are exchanged: the self-test has nothing against it."""
    text = re.sub(r"^digest .*\n", "", path.read_text(), flags=re.M)
    names = ("THREAD_STOPPED", "THREAD_STOPPED_FOREVER")
    values = [re.search(rf"^(\S+ (?:\S+ )?{name}) (\S+)$", text, re.M) for name in names]
    assert all(values), text[:2000]
    for match, other in zip(values, reversed(values)):
        text = text.replace(match[0], f"{match[1]} {other[2]}")
    path.write_text(text)


# ---- 13: what is kept


@contextlib.contextmanager
def sleeping(path):
    """A Ruby whose only thread sleeps for a while: the self-test cannot tell that from sleeping forever."""
    command = [path, "--disable-gems", "-e", "$stdout.sync = true; puts 1; sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "1\n"
            wait_until(lambda: task_states(process.pid) == {"S"}, "all of its threads are asleep")
            yield process.pid
        finally:
            process.kill()


@needs_debug
def test_layout_of_another_file_with_the_same_build_id(rbdump, empty_cache, tmp_path):
    """What was made of one process's file says nothing of another's, whatever build-id it states."""
    other = elf_copy(tmp_path / "other", append_byte)
    with sleeping(other) as pid:
        assert states(dump(rbdump, pid)) == ["sleeping"]
    (kept,) = [path for path in files_below(empty_cache) if path.suffix == ".layout"]
    exchange_states(kept)
    with sleeping(other) as pid:
        assert states(dump(rbdump, pid)) == ["sleeping_forever"]  # it is used: for that file
    with sleeping(WITH_DEBUG.path) as pid:
        genuine = dump(rbdump, pid)
    assert states(genuine) == ["sleeping"]
    file = pathlib.Path(genuine["layout"]["file"])
    assert file != kept
    assert file.stem == hashlib.sha256(pathlib.Path(WITH_DEBUG.elf).read_bytes()).hexdigest()


@needs_debug
def test_file_that_is_changed(rbdump, empty_cache, tmp_path):
    """Its digest is kept, and is used as long as the file is as it was: not after a change that its size and mtime do not tell."""
    other = elf_copy(tmp_path / "other", append_byte)
    before = other.stat()

    def kept():
        return [path for path in files_below(empty_cache) if path.name == "files"]

    with sleeping(other) as pid:
        file = pathlib.Path(dump(rbdump, pid)["layout"]["file"])
        if not numbers_mounts():
            dump(rbdump, pid)
            assert not kept()
            note_not_applicable("digests of files that are kept: this kernel does not number mounts")
            return
        wait_until(lambda: dump(rbdump, pid) and kept(), "its last change is old enough")
        (known,) = kept()
        assert known.read_text().endswith(f" {file.stem}\n")
        known.write_text(known.read_text().replace(file.stem, "0" * 64))
        wrong = dump(rbdump, pid)["layout"]
        assert wrong["source"] == "generated"  # nothing is kept for what is said to be its digest
        known.write_text(known.read_text().replace("0" * 64, file.stem))
        assert dump(rbdump, pid)["layout"] == {**wrong, "source": "build-id", "file": str(file)}
    other.write_bytes(other.read_bytes()[:-1] + b"1")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (other.stat().st_size, other.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with sleeping(other) as pid:
        layout = dump(rbdump, pid)["layout"]
    assert pathlib.Path(layout["file"]).stem == hashlib.sha256(other.read_bytes()).hexdigest() != file.stem


@needs_debug
def test_layout_without_build_id_is_not_kept(rbdump, empty_cache, tmp_path):
    copy = elf_copy(tmp_path / "other", without_build_id)
    with contextlib.closing(Target(str(copy), "cfuncs.rb")) as target:
        assert dump(rbdump, target.pid)["layout"]["source"] == "generated"
    assert files_below(empty_cache) == []


@needs_debug
def test_layout_that_does_not_fit_is_not_kept(rbdump, empty_cache, tmp_path):
    """A debug file of another Ruby, which claims to be that of this one: the self-test refuses what it says."""
    patched = pathlib.Path(WITH_DEBUG.path).parent.parent.parent / "patched-3.1/bin/ruby"
    genuine = patched.parent.parent.parent / "3.1/bin/ruby"
    if not patched.exists() or not genuine.exists():
        note_not_applicable("a debug file of another Ruby: no patched one is built")
        return
    folder = tmp_path / "mixed"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").symlink_to(genuine.resolve().parent.parent / "lib")
    elf, debug, note = folder / "bin/ruby", folder / "bin/ruby.debug", folder / "note"
    tool = {"check": True, "capture_output": True, "timeout": 120}
    subprocess.run(["objcopy", "--dump-section", f".note.gnu.build-id={note}", genuine, folder / "unused"], **tool)
    subprocess.run(["objcopy", "--only-keep-debug", patched, debug], **tool)
    shutil.copy(patched, folder / "whole")
    subprocess.run(["objcopy", "--update-section", f".note.gnu.build-id={note}", folder / "whole"], **tool)
    subprocess.run(["objcopy", "--only-keep-debug", folder / "whole", debug], **tool)
    subprocess.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", genuine, elf], **tool)
    alone = shutil.copy(rbdump, tmp_path)  # without the layouts that come with it
    with contextlib.closing(Target(str(elf), "cfuncs.rb")) as target:
        done = run(alone, "-p", target.pid)
    assert done.returncode == 3
    assert "the layout that was made from debug info does not fit" in done.stderr
    assert "self-test" in done.stderr
    assert [path for path in files_below(empty_cache) if path.suffix == ".layout"] == []


# ---- 14, 15: which folders are read


@pytest.fixture
def shared_folder():
    """A folder that everybody can reach."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rbdump-shared-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def plant(folder, owner):
    """Layouts in a folder that belongs to somebody."""
    folder.mkdir(parents=True)
    shutil.copy(sorted((ROOT / "offsets.d").glob("*.layout"))[0], folder)
    for path in [folder, *folder.iterdir(), *list(folder.parents)[:2]]:
        os.chown(path, owner, owner)


def listed(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True)
    return [line.split("  ")[-1] for line in done.stdout.splitlines()[1:]]


@needs_root
def test_layouts_beside_the_program(rbdump, shared_folder):
    """Those of PREFIX/share are for PREFIX/bin, and only if nobody else may change them."""
    for folder in ("x", "bin"):
        (shared_folder / folder).mkdir()
        shutil.copy(rbdump, shared_folder / folder)
    planted = shared_folder / "share/rbdump/offsets.d"
    plant(planted, NOBODY)
    assert listed(shared_folder / "x/rbdump") == []
    assert listed(shared_folder / "bin/rbdump") == []
    for path in [planted, *planted.iterdir(), *list(planted.parents)[:2]]:
        os.chown(path, 0, 0)
    assert listed(shared_folder / "x/rbdump") == []
    assert listed(shared_folder / "bin/rbdump") == [str(path) for path in planted.iterdir()]
    planted.parent.chmod(0o777)
    assert listed(shared_folder / "bin/rbdump") == []
    planted.parent.chmod(0o755)
    layout = next(planted.iterdir())
    layout.chmod(0o666)
    with subprocess.Popen([shared_folder / "bin/rbdump", "--version"], stdout=subprocess.PIPE, text=True) as program:
        assert "has write access" in program.communicate(timeout=60)[0]


@needs_debug
@needs_root
@pytest.mark.parametrize("how", ["belongs to another user", "a link of another user's", "others may write to it"])
def test_cache_that_is_not_trusted(rbdump, start, shared_folder, monkeypatch, how):
    """Nothing is written to it, and nothing is read from it."""
    cache, elsewhere = shared_folder / "cache", shared_folder / "elsewhere"
    cache.mkdir(0o755)
    elsewhere.mkdir(0o700)
    if how == "belongs to another user":
        os.chown(cache, NOBODY, NOBODY)
    elif how == "others may write to it":
        cache.chmod(0o777)
    else:
        (cache / "rbdump").symlink_to(elsewhere)
        os.lchown(cache / "rbdump", NOBODY, NOBODY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    target = start(WITH_DEBUG, "cfuncs.rb")
    assert dump(rbdump, target.pid)["layout"]["source"] == "generated"
    assert files_below(cache) == files_below(elsewhere) == []
    folder = cache / "rbdump/offsets.d"
    folder.mkdir(parents=True)
    made = folder / "x.layout"
    subprocess.run([rbdump, "--gen-offsets", WITH_DEBUG.elf, "-o", made], check=True, capture_output=True, timeout=60)
    assert dump(rbdump, target.pid)["layout"]["source"] == "generated"
    assert str(made) not in listed(rbdump)
    # What the user names is the user's own word.
    assert json.loads(run(rbdump, "--json", "-p", target.pid, "--offsets", made).stdout)["layout"]["source"] == "given"


# ---- 16: what is written


@pytest.mark.parametrize("there", ["link", "hard link", "another user's", "own"])
def test_default_output_file(rbdump, start, tmp_path, there):
    if there == "another user's" and os.geteuid() != 0:
        note_not_applicable("a file of another user's where the recording goes: becoming another user needs root")
        return
    target = start(RUBIES[-1], "cfuncs.rb")
    victim, output = tmp_path / "victim", tmp_path / f"rbdump-{target.pid}.rbdump"
    victim.write_text("precious\n")
    if there == "link":
        output.symlink_to(victim)
    elif there == "hard link":
        output.hardlink_to(victim)
    else:
        output.write_text("old")
        if there != "own":
            os.chown(output, NOBODY, NOBODY)
    done = subprocess.run(
        [rbdump, "record", "-p", str(target.pid), "-d", "0.2"], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert victim.read_text() == "precious\n"
    if there == "own":
        assert done.returncode == 0
        assert output.stat().st_size > 100
    else:
        assert done.returncode == 2
        assert f"rbdump does not write to {output.name}: " in done.stderr
        assert "-o FILE" in done.stderr


# ---- 17: a file that changes while it is read

CUTTER = """
import os, sys, time
path, kept = sys.argv[1], int(sys.argv[2])
content = open(path, "rb").read()
file = open(path, "r+b", buffering=0)
print("ready", flush=True)
while True:
    os.ftruncate(file.fileno(), kept)
    time.sleep(0.003)
    for at in range(kept, len(content), 1 << 20):
        os.pwrite(file.fileno(), content[at : at + (1 << 20)], at)
    time.sleep(0.003)
"""


def end_of_segments(path):
    """Where a file's contents end that are mapped by those that run it: what follows are symbols and debug info."""
    headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True, timeout=60).stdout
    loads = re.findall(r"^ +LOAD +0x(\w+) 0x\w+ 0x\w+ 0x(\w+)", headers, re.M)
    return max(int(offset, 16) + int(size, 16) for offset, size in loads)


@pytest.mark.long
def test_file_that_is_cut_short_while_it_is_read(rbdump, tmp_path):
    """A target that truncates and restores its own library: 60 dumps, each with an answer or a sentence."""
    shared = next((ruby for ruby in RUBIES if ruby.shared and ruby.has_debug), None)
    if not shared:
        note_not_applicable("a library that is cut short: no Ruby is built with one")
        return
    elf = pathlib.Path(probe("shared", shared.shared).elf).resolve()
    folder = tmp_path / "lib"
    folder.mkdir()
    library = pathlib.Path(shutil.copy(elf, folder))
    for name in elf.parent.glob("libruby*.so*"):
        if name.name != library.name:
            (folder / name.name).symlink_to(library.name)
    target = Target(shared.shared, "cfuncs.rb", environment={"LD_LIBRARY_PATH": str(folder)}, timeout=120)
    cutter = subprocess.Popen(
        [sys.executable, "-c", CUTTER, library, str(end_of_segments(library))], stdout=subprocess.PIPE, text=True
    )
    try:
        assert str(library) in pathlib.Path(f"/proc/{target.pid}/maps").read_text()
        assert cutter.stdout.readline() == "ready\n"
        statuses = [run(rbdump, "-p", target.pid).returncode for _ in range(60)]
        assert min(statuses) >= 0, f"killed by a signal: {statuses}"
        assert set(statuses) <= {0, 2, 3}
        assert target.process.poll() is None
    finally:
        cutter.kill()
        cutter.wait()
        target.close()


@needs_debug
def test_debug_info_is_read_by_a_confined_process(rbdump, tmp_path):
    """The process that reads it has no new privileges, a filter, and opens nothing for writing, before it parses."""
    subprocess.run(  # -ff: a file for each process, in which no call is cut in two by another process
        ["strace", "-ff", "-o", tmp_path / "log", rbdump, "--gen-offsets", WITH_DEBUG.elf, "-o", tmp_path / "x.layout"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    logs = [log.read_text().splitlines() for log in tmp_path.glob("log.*")]
    calls = next(log for log in logs if any("PR_SET_NO_NEW_PRIVS" in call and call.endswith("= 0") for call in log))
    filtered = next(i for i, call in enumerate(calls) if "SECCOMP" in call and "FILTER" in call and call.endswith("= 0"))
    before = calls[:filtered]
    assert any(call.startswith("capset(") for call in before)
    assert any("RLIMIT_AS" in call and "RLIM" in call for call in before)
    assert not [call for call in before if WITH_DEBUG.elf in call], "opened before it was confined"
    # What is open for others is not for it: neither standard input, output and error, nor memory that rbdump shares.
    assert {f"{fd}" for fd in range(3)} <= {re.match(r"dup2\(\d+, (\d)\)", call)[1] for call in before if "dup2(" in call}
    assert [call for call in calls[filtered:] if WITH_DEBUG.elf in call]
    others = [call for log in logs if log is not calls for call in log]
    assert others
    assert not [call for call in others if WITH_DEBUG.elf in call and call.startswith("open")]


def of_no_release(path):
    """Without debug info, and of a release that there is no layout for."""
    subprocess.run(["strip", "--strip-debug", path], check=True, timeout=60)
    version = WITH_DEBUG.version.encode()
    content = path.read_bytes()
    assert content.count(b"\0" + version + b"\0") > 0
    path.write_bytes(content.replace(b"\0" + version + b"\0", b"\0" + b"9" + version[1:] + b"\0"))


@needs_root
@needs_debug
@pytest.mark.parametrize("owner", [0, 1234])
def test_debuginfod_is_not_asked_for_a_file_of_others(rbdump, tmp_path, owner):
    """What reads debug info that a server has given has few limits: as root, it does not read a file of another user with it."""
    program = elf_copy(tmp_path, of_no_release)
    os.chown(program, owner, owner)
    target = Target(str(program), "waits.rb")
    try:
        done = run(rbdump, "-p", target.pid, env=dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:9"))
        assert done.returncode == NOT_RUBY
        assert ("was found on a debuginfod server" in done.stderr) == (owner == 0), done.stderr
        assert ("as root, rbdump does not ask a debuginfod server" in done.stderr) == (owner != 0), done.stderr
    finally:
        target.close()


@pytest.mark.long
@needs_debug
def test_recording_with_children_tells_why_there_is_none(rbdump, tmp_path):
    """Of the Ruby that was asked for; whatever its children are."""
    target = Target(str(elf_copy(tmp_path, of_no_release)), "waits.rb")
    try:
        done = run(rbdump, "record", "-p", target.pid, "--children", "-d", "8", "-o", tmp_path / "recording")
        assert done.returncode == NOT_RUBY
        assert len(re.findall("there is no layout for Ruby 9", done.stderr)) == 1, done.stderr
    finally:
        target.close()


@needs_debug
def test_debug_info_is_read_without_standard_files(rbdump, tmp_path):
    """What rbdump opens itself then has their numbers."""
    layouts = [tmp_path / "with", tmp_path / "without"]
    for layout, closed in zip(layouts, ("", "<&- >&- 2>&-")):
        command = f'"$0" --gen-offsets "$1" -o "$2" {closed}'
        subprocess.run(["sh", "-c", command, rbdump, WITH_DEBUG.elf, layout], check=True, capture_output=True, timeout=120)
    assert layouts[0].read_text() == layouts[1].read_text() != ""


# ---- 21: with few permissions


@pytest.fixture
def public(rbdump, shared_folder):
    """rbdump, its layouts, the targets and the probe where every user can read them."""
    (shared_folder / "bin").mkdir()
    shutil.copy(rbdump, shared_folder / "bin")
    shutil.copytree(ROOT / "offsets.d", shared_folder / "share/rbdump/offsets.d")
    shutil.copytree(TARGETS, shared_folder / "targets")
    probe_path = ROOT / "build" / ("san" if os.environ.get("SAN") == "1" else "") / "tests/probes/seccomp"
    assert probe_path.exists(), "the probe is not there: run make probes"
    shutil.copy(probe_path, shared_folder / "bin")
    return shared_folder


def as_user(uid, *capabilities):
    """A command that starts another as that user; as who we are, if it is None."""
    if uid is None:
        return []
    caps = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    sets = [f"--{kind}={caps}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *sets]


@contextlib.contextmanager
def sleeper(uid, rests="sleep"):
    """A Ruby of that user's, that says when it is ready, and then rests, or runs."""
    with subprocess.Popen(
        [*as_user(uid), SYSTEM_RUBY, "--disable-gems", "-e", f"def wait = {rests}\n$stdout.sync = true; puts 1; wait"],
        stdout=subprocess.PIPE, text=True, cwd="/",
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "1\n"
            if rests == "sleep":
                wait_until(lambda: task_states(process.pid) == {"S"}, "it sleeps")
            yield process.pid
        finally:
            process.kill()


def attempt(public, prefix, *arguments):
    return subprocess.run(
        [*prefix, public / "bin/rbdump", *arguments], capture_output=True, text=True, timeout=60, cwd="/",
        env={**os.environ, "HOME": "/nonexistent", "XDG_CACHE_HOME": ""},
    )  # fmt: skip


VERBS = {
    "dump": lambda pid: ("-p", str(pid)),
    "--no-stop": lambda pid: ("--no-stop", "-p", str(pid)),
    "record": lambda pid: ("record", "-p", str(pid), "-d", "0.3", "-o", "/dev/null"),
    "record unpaused": lambda pid: ("record", "--mode", "unpaused", "-p", str(pid), "-d", "0.3", "-o", "/dev/null"),
    "experiment": lambda pid: ("experiment", "-p", str(pid), "-d", "0.3"),
}


@needs_root
@needs_system_ruby
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("caps", [(), ("sys_ptrace",)], ids=["same user", "CAP_SYS_PTRACE only"])
def test_least_permissions(public, verb, caps):
    """The same user, or CAP_SYS_PTRACE alone for another user's process: nothing else is needed."""
    with sleeper(1234) as pid:
        done = attempt(public, as_user(4321 if caps else 1234, *caps), *VERBS[verb](pid))
        assert done.returncode == 0, done.stderr
        if verb in ("dump", "--no-stop"):
            assert "#wait" in done.stdout
        refused = attempt(public, as_user(4321), *VERBS[verb](pid))
        assert refused.returncode == NO_PERMISSION, refused.stderr
        assert "belongs to" in refused.stderr
        assert "security module" not in refused.stderr


def in_a_user_namespace(prefix, folder):
    """A dump of a process, both in a user namespace whose root is the user who has made it."""
    script = f"""
        cd {folder} || exit
        {SYSTEM_RUBY} --disable-gems -e 'def wait = sleep
        $stdout.sync = true; puts 1; wait' > fifo & exec 3< fifo; read line <&3
        until grep -q '^State:.S' /proc/$!/status; do :; done
        bin/rbdump -p $!; status=$?; kill $!; exit $status"""
    command = [*prefix, "unshare", "-Ur", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr:
        note_not_applicable(f"a user namespace: {done.stderr.strip()}")
        return None
    return done


@needs_root
@needs_system_ruby
@pytest.mark.parametrize("caps", [("sys_ptrace",), ("sys_ptrace", "perfmon")], ids=" ".join)
def test_exec_of_a_child_of_another_user(public, caps):
    """Of a child whose memory may not be opened, too, it is seen that it becomes a Ruby: soon, not when its turn comes."""
    (public / "out").mkdir()
    os.chmod(public / "out", 0o777)
    file = public / "out/recording.rbdump"
    ruby = types.SimpleNamespace(path=SYSTEM_RUBY)
    becomes = [SYSTEM_RUBY, "--disable-gems", "-e", "def wait_here = sleep; wait_here"]
    with Running(ruby, "shares/not_rubies.rb", 60, *becomes, below=as_user(1234)) as target:
        with Recording(public / "bin/rbdump", "-p", target.pid, "--children", file=file, below=as_user(4321, *caps)) as recording:
            recording.wait_for_samples()
            wait_until(lambda: len(tracers_of(recording.pid)) == 1, "those that are no Rubies were looked at", 60)
            target.process.stdin.write(b"\n")
            became, told = int(target.line()), time.monotonic()
            wait_until(lambda: len(tracers_of(recording.pid)) == 2, "what became a Ruby is recorded", 60)
            # Each of sixty is looked at once in so many seconds.
            assert time.monotonic() - told < 40
            recording.wait_until(lambda profile: any(one.verdict == "complete" for one in profile.of(became)), "it is sampled")
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors


@needs_system_ruby
def test_in_a_user_namespace(public):
    """Both in it: as anywhere. The process outside of it: refused, and the namespace is named."""
    os.mkfifo(public / "fifo")
    done = in_a_user_namespace([], public)
    assert done is None or (done.returncode == 0 and "#wait" in done.stdout), done
    if os.geteuid() == 0:
        with sleeper(1234) as pid:
            done = attempt(public, [*as_user(1234), "unshare", "-Ur"], "-p", str(pid))
            assert done.returncode == NO_PERMISSION
            assert "user namespace" in done.stderr


@needs_root
@needs_system_ruby
def test_in_a_user_namespace_that_does_not_know_root(public):
    """The layouts are root's, who is nobody there: they are trusted where nobody else can have put them."""
    os.mkfifo(public / "fifo")
    os.chmod(public / "fifo", 0o666)
    # What is in /tmp can be anybody's.
    elsewhere = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /mnt && exec "$@"', public]
    done = in_a_user_namespace([*elsewhere, *as_user(1234)], "/mnt")
    assert done is None or (done.returncode == 0 and "#wait" in done.stdout), done
    done = in_a_user_namespace(as_user(1234), public)
    assert done is None or (done.returncode == NOT_RUBY and "uid 65534" in done.stderr), done


@needs_system_ruby
@pytest.mark.parametrize(
    "calls, named",
    [
        ("ptrace", ["ptrace(2)", "--no-stop"]),
        ("process_vm_readv", ["process_vm_readv(2)"]),
        ("ptrace,process_vm_readv,perf_event_open,kcmp,bpf", ["process_vm_readv(2) and ptrace(2)"]),
        ("perf_event_open,kcmp,bpf,userfaultfd", None),
    ],
)
def test_under_a_seccomp_profile(public, calls, named):
    """Of a container: what is refused is named, and what can be done; what can be done without is done without."""
    user = 1234 if os.geteuid() == 0 else None
    prefix = [*as_user(user), public / "bin/seccomp", calls]
    with sleeper(user) as asleep, sleeper(user, "loop {}") as awake:
        # There is nobody to stop, and a dump can also read through /proc/PID/mem.
        done = attempt(public, prefix, *VERBS["dump"](asleep))
        assert done.returncode == 0, done.stderr
        for verb, pid in (("dump", awake), ("record", asleep)):
            done = attempt(public, prefix, *VERBS[verb](pid))
            if named is None or (calls == "process_vm_readv" and verb == "dump"):
                assert done.returncode == 0, done.stderr
                continue
            assert done.returncode == NO_PERMISSION, done.stderr
            for word in ("seccomp", *named):
                assert word in done.stderr, done.stderr
            assert "SELinux" not in done.stderr
        if calls == "ptrace":
            done = attempt(public, prefix, *VERBS["--no-stop"](awake))
            assert done.returncode in (0, 1), done.stderr
