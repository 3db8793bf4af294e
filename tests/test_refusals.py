"""What rbdump refuses: one sentence, the right exit status, nothing on standard output, and the target untouched."""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile

import pytest
from conftest import note_not_applicable
from harness.debugger import GDB
from harness.dump import check, check_thread, current, dump, run
from harness.process import is_untouched, status, task_states, tasks, wait_until, wait_until_it_reads
from harness.recording import Recording, Running
from harness.refusals import FAILED, NO_PERMISSION, NOT_RUBY, USAGE, check_refusal
from harness.tracer import Tracer

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


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
    tid = next(int(entry) for entry in os.listdir(f"/proc/{target.pid}/task") if int(entry) != target.pid)
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
@pytest.mark.any_ruby
def test_all_processes_of_an_ordinary_user(ruby, public_rbdump, layouts):
    """Its Ruby is found at once among many processes that it may not read, though only some are looked at at the same time."""
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
    folder = pathlib.Path(public_rbdump).parent
    own_layout = shutil.copy(layouts(ruby), folder)
    os.chmod(own_layout, 0o644)
    program = shutil.copy(ruby.path, folder)
    os.chmod(folder, 0o777)
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            stack.callback(stack.enter_context(subprocess.Popen(["sleep", "1000"])).kill)
        code = "STDOUT.puts; STDOUT.flush; loop { x = 1 }"
        target = stack.enter_context(subprocess.Popen([*nobody, program, "--disable-gems", "-e", code], stdout=subprocess.PIPE))
        stack.callback(target.kill)
        assert target.stdout.readline() == b"\n"
        words = ["--all", "--mode", "paused", "--offsets", own_layout]
        with Recording(public_rbdump, *words, file=folder / "recording", below=nobody) as recording:
            # With three seconds for each of the others, eight at a time, it would take twice as long.
            recording.wait_until(lambda profile: target.pid in profile.pids(), "it is recorded", 15)
            status, _, errors = recording.end(signal.SIGINT)
        assert status == 0, errors


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


def spinning(pid, name):
    """The kernel thread of that name, which runs, and it alone; None if others do, too, or it does not."""
    running = [task for task in tasks(pid) if status(pid, "State", task)[0] == "R"]
    return running[0] if [status(pid, "Name", task) for task in running] == [name] else None


@pytest.mark.any_ruby
@pytest.mark.since((2, 3), "Thread#name")
def test_thread_already_traced(ruby, start, rbdump):
    """One that is not the main one: it goes on while the others are stopped, so nothing is said of its stack."""
    target = start(ruby, "states.rb", "1")
    wait_until_it_reads(target.pid)
    tid = wait_until(lambda: spinning(target.pid, "busy 0"), "the busy thread spins")
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
# Until the target stops, or has ended.
SEND_A_SIGNAL = """
import os, signal, time
os.kill({target}, signal.SIGUSR1)
while open("/proc/{target}/stat").read().rpartition(")")[2].split()[0] in "RSD":
    time.sleep(0.001)
"""
# rbdump gives up a pause that takes five seconds: what gdb can do before, it does before, and no step of it starts a process.
UNTIL_PAUSED = [
    "set pagination off", "set breakpoint pending on", "handle SIG34 nostop noprint pass",
    "break live_stop", "break ptrace", "break memory_prefetch", "disable 2 3", "run",
    f"python {KILL_THE_GUARD}", "enable 2", "continue", "finish", f"python exec({SEND_A_SIGNAL!r})",
    "disable 1 2", "enable 3", "continue", "echo paused\\n", "kill",
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
            [*GDB, *commands, "--args", rbdump, "-p", str(target.pid)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert " hit Breakpoint" in said.stdout.rpartition("memory_prefetch (")[0] and "paused\n" in said.stdout, said
        assert target.stdout.read() == b"signal\n"
        assert target.wait(30) == 0
