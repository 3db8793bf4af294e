"""What the kernel says of a process, and waiting for it to say something, bounded in time."""

import contextlib
import os
import pathlib
import time
import typing


class Bound:
    """A time limit, in seconds from now."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return max(0, self.end - time.monotonic())


def status(pid, field, task=None):
    """A field of /proc/PID/status, or of one of the process's tasks: "TracerPid", "State", …"""
    folder = pathlib.Path(f"/proc/{pid}") if task is None else pathlib.Path(f"/proc/{pid}/task/{task}")
    for line in (folder / "status").read_text(errors="backslashreplace").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return value.strip()
    raise KeyError(field)


def tasks(pid):
    """The ids of its kernel threads."""
    return [int(entry.name) for entry in pathlib.Path(f"/proc/{pid}/task").iterdir()]


class SchedStat(typing.NamedTuple):
    """How long a kernel thread was on a CPU, and waited for one while it could have run, in ns; how often it was given one."""

    ran: int
    waited: int
    switches: int


def schedstat(pid, task=None):
    """What the kernel counts of one of its kernel threads; of its first one by default."""
    return SchedStat(*map(int, pathlib.Path(f"/proc/{pid}/task/{task or pid}/schedstat").read_text().split()))


def of_tasks(pid, field):
    """A field of /proc/PID/task/*/status: the set of its values. A thread that ends meanwhile is left out."""
    values = set()
    for task in tasks(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            values.add(status(pid, field, task))
    return values


def task_states(pid):
    """The letters that the kernel gives the states of its threads: R, S, T (stopped), t (by a tracer), …"""
    return {state[0] for state in of_tasks(pid, "State")}


def task_channels(pid):
    """The functions of the kernel that its threads are asleep in."""
    return {(task / "wchan").read_text() for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


def children_of(pid):
    """The ids of the processes that its main thread has forked, and that have not been waited for."""
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def family(pid):
    """A process, and all that descend from it, the first ones first."""
    return [pid, *(member for child in children_of(pid) for member in family(child))]


def innermost(pid):
    """A process; or the first of the pid namespace that it has made for its children, as unshare(1) does."""
    own, childrens = (os.readlink(f"/proc/{pid}/ns/{name}") for name in ("pid", "pid_for_children"))
    return pid if own == childrens else innermost(children_of(pid)[0])


def ids_inside(pid):
    """{ what the process itself calls a kernel thread of its: what we do }"""
    return {int(status(pid, "NSpid", task).split()[-1]): task for task in tasks(pid)}


def name_of(pid):
    """The name of a process as the kernel knows it; None if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def tracers_of(pid):
    """Those of rbdump's children that trace: all but its guard (dumper/guard/stop_guard.h). Empty before it has one."""
    names = {child: name_of(child) for child in children_of(pid)}
    return [child for child, name in names.items() if name == "rbdump"] if "rbdump-guard" in names.values() else []


def command_line(pid):
    """What it was started with, the words joined by blanks."""
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="backslashreplace").replace("\0", " ")


def has_ended(pid):
    """Whether a process is gone, or only its parent has not noticed yet."""
    try:
        return status(pid, "State")[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(condition, what, seconds=120):
    """Polls until `condition()` is true, and gives that; fails if it never is."""
    bound = Bound(seconds)
    while True:
        value = condition()
        if value:
            return value
        assert bound.left() > 0, f"waited {seconds} s until {what}"
        time.sleep(0.002)


def wait_until_one_reads(pids):
    """
    Waits until a thread of one of some processes is in its read(2) of standard input, where the watcher of a target stays
    once it has told what Ruby shows: nothing runs in it then, and two dumps of it agree.
    """

    def reads():
        for pid in pids:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for task in tasks(pid):
                    if pathlib.Path(f"/proc/{pid}/task/{task}/syscall").read_text().startswith("0 0x0 "):
                        return True
        return False

    wait_until(reads, f"one of the processes {pids} reads its standard input")


def wait_until_it_reads(pid):
    wait_until_one_reads([pid])


def is_untouched(pid):
    """Whether it runs as if nobody had looked: no tracer, and no thread is stopped."""
    return of_tasks(pid, "TracerPid") == {"0"} and not task_states(pid) & {"T", "t"}
