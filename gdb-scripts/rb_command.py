"""Functions for the commands of rb_bt.py and rb_looks.py: they evaluate expressions, select stacks, write titles and
print errors."""

import contextlib
import functools

import gdb

from ruby_memory import Unreadable
from ruby_text import printable


def sentences_only(invoke):
    """Changes a command so that it prints each failure as one sentence, not as a Python traceback."""

    @functools.wraps(invoke)
    def wrapped(self, argument, from_tty):
        try:
            if not gdb.selected_inferior().pid:
                raise gdb.GdbError("There is no process and no core: use attach or core-file.")
            invoke(self, argument, from_tty)
        except (Unreadable, gdb.error) as problem:
            raise gdb.GdbError(f"{self.name}: {problem}") from None

    return wrapped


@contextlib.contextmanager
def _no_calls():
    """Within this context, an expression that the user typed cannot call functions in the process."""
    before = gdb.parameter("may-call-functions")
    gdb.execute("set may-call-functions off")
    try:
        yield
    finally:
        gdb.execute("set may-call-functions " + ("on" if before else "off"))


def evaluate(expression) -> int:
    """The value of an expression that the user typed."""
    with _no_calls():
        return int(gdb.parse_and_eval(expression))


def selected(stacks, argument):
    """The stacks that the user wants: all stacks; the stack that the selected gdb thread runs; or the stacks for a
    number: the address of a thread, a Thread object, an execution context or a fiber, or a kernel thread id."""
    if argument in ("", "all"):
        return stacks
    if argument == "here":
        thread = gdb.selected_thread()
        wanted = [s for s in stacks if s.fiber is None and s.gdb_thread == (thread.num if thread else 0)]
        if not wanted:
            raise gdb.GdbError("The selected gdb thread does not run a Ruby thread: see rb-threads.")
        return wanted
    number = evaluate(argument)
    if number:
        for wanted in (
            [s for s in stacks if number in (s.ec, s.fiber)],
            [s for s in stacks if number in (s.thread, s.self_value, s.tid)],
        ):
            if wanted:
                return wanted
    raise gdb.GdbError(f"{argument} is not a Ruby thread or fiber: see rb-threads.")


def tell_problems(command, walk):
    for problem in walk.problems:
        gdb.write(f"{command}: {problem}\n", gdb.STDERR)


def title(stack):
    """Returns a line that describes a thread or fiber."""
    words = [f"fiber {stack.fiber:#x} of" if stack.fiber is not None else "", f"thread {stack.thread:#x}"]
    if stack.name is not None:
        words.append(f'"{printable(stack.name)}"')
    if stack.main:
        words.append("main")
    if stack.ractor is not None:
        words.append(f"ractor {stack.ractor}")
    if stack.tid is not None:
        words.append(f"tid {stack.tid} (gdb thread {stack.gdb_thread})")
    words.append(stack.status)
    return " ".join(word for word in words if word)


def frame_line(frame):
    """Returns a line that describes a frame."""
    if frame.kind == "unreadable":
        return f"<unreadable frame at {frame.cfp:#x}: {frame.reason}>"
    where = "?" if frame.path is None else printable(frame.path)
    if frame.line:
        where += f":{frame.line}"
    return f"{where}:in " + (f"'{printable(frame.label)}'" if frame.label is not None else "unknown method")
