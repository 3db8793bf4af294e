"""Commands for gdb that show the Ruby stacks of a live process or of a core. They need Ruby's debug info.

To load the commands, `source` this file; `help rb-bt` describes the first of them. The commands call no function in the
process, and write nothing to it, so they work on a core, too.
"""

import codecs
import contextlib
import functools
import json
import os
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from ruby_memory import Unreadable  # noqa: E402
from ruby_walk import CFP, Walk  # noqa: E402


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


def _evaluate(expression) -> int:
    with _no_calls():
        return int(gdb.parse_and_eval(expression))


def text(raw):
    """UTF-8 as text. NUL, and bytes that are not UTF-8, become \\xNN, as in rbdump's own JSON."""
    if raw is None:
        return None
    return raw.decode("utf-8", "rb-bt").replace("\0", "\\x00")


def _escape(error):
    return "".join(f"\\x{byte:02X}" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("rb-bt", _escape)


def _selected(stacks, argument):
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
    number = _evaluate(argument)
    if number:
        for wanted in (
            [s for s in stacks if number in (s.ec, s.fiber)],
            [s for s in stacks if number in (s.thread, s.self_value, s.tid)],
        ):
            if wanted:
                return wanted
    raise gdb.GdbError(f"{argument} is not a Ruby thread or fiber: see rb-threads.")


def _tell_problems(walk):
    for problem in walk.problems:
        gdb.write(f"rb-bt: {problem}\n", gdb.STDERR)


def _title(stack):
    words = [f"fiber {stack.fiber:#x} of" if stack.fiber is not None else "", f"thread {stack.thread:#x}"]
    if stack.name is not None:
        words.append(f'"{text(stack.name)}"')
    if stack.main:
        words.append("main")
    if stack.ractor is not None:
        words.append(f"ractor {stack.ractor}")
    if stack.tid is not None:
        words.append(f"tid {stack.tid} (gdb thread {stack.gdb_thread})")
    words.append(stack.status)
    return " ".join(word for word in words if word)


def _line(frame):
    if frame.kind == "unreadable":
        return f"<unreadable frame at {frame.cfp:#x}: {frame.reason}>"
    where = "?" if frame.path is None else text(frame.path)
    if frame.line:
        where += f":{frame.line}"
    return f"{where}:in " + (f"'{text(frame.label)}'" if frame.label is not None else "unknown method")


def _json(stack):
    return {
        "name": text(stack.name),
        "tid": stack.tid,
        "thread": stack.thread,
        "ractor": stack.ractor,
        "main": stack.main,
        "status": stack.status,
        "fiber": stack.fiber,
        "reason": stack.reason,
        "frames": [
            {
                "kind": frame.kind,
                "path": text(frame.path),
                "line": frame.line,
                "label": text(frame.label),
                "cfp": frame.cfp,
                "reason": frame.reason,
            }
            for frame in stack.frames
        ],
    }


class RubyBacktrace(gdb.Command):
    """Print Ruby stacks, innermost frame first: rb-bt [--json] [all | here | THREAD]

all     all threads of all ractors, and all suspended fibers, if this Ruby keeps a list of its fibers (3.3 and later;
        3.2 with a JIT); this is the default
here    the Ruby thread that the selected gdb thread runs
THREAD  an expression: rb_thread_t *, Thread object, rb_execution_context_t *, rb_fiber_t * or kernel thread id

--json  print a list of stacks, as JSON on one line. Each stack has name, tid, thread, ractor, main, status, fiber,
        reason and frames. Each frame has kind (ruby, cfunc, unreadable), path, line, label, cfp and reason"""

    name = "rb-bt"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_STACK)

    @sentences_only
    def invoke(self, argument, from_tty):
        words = argument.split()
        as_json = "--json" in words
        walk = Walk()
        stacks = _selected(walk.stacks(), " ".join(word for word in words if word != "--json"))
        for stack in stacks:
            walk.fill(stack)
        _tell_problems(walk)
        if as_json:
            gdb.write(json.dumps([_json(stack) for stack in stacks]) + "\n")
            return
        for stack in stacks:
            gdb.write(_title(stack) + "\n")
            if stack.reason:
                gdb.write(f"    <unreadable: {stack.reason}>\n")
            for number, frame in enumerate(stack.frames):
                gdb.write(f"#{number:<3} {_line(frame)}\n")


class RubyThreads(gdb.Command):
    """List the Ruby threads of all ractors, and the suspended fibers, each with its innermost frame."""

    name = "rb-threads"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_STACK)

    @sentences_only
    def invoke(self, argument, from_tty):
        walk = Walk()
        for stack in walk.stacks():
            walk.fill(stack)
            top = _line(stack.frames[0]) if stack.frames else f"<{stack.reason or 'no frames'}>"
            gdb.write(f"{_title(stack)}, {len(stack.frames)} frames, {top}\n")
        _tell_problems(walk)


class RubyFrame(gdb.Command):
    """Show frame N of a Ruby stack with its addresses: rb-frame N [here | THREAD]

N is the number that rb-bt shows for the frame. Default stack: the stack that the selected gdb thread runs (here).
Afterwards, $rb_cfp is the control frame of frame N: p *$rb_cfp"""

    name = "rb-frame"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_STACK)

    @sentences_only
    def invoke(self, argument, from_tty):
        number, _, which = argument.strip().partition(" ")
        if not number.isdecimal():
            raise gdb.GdbError("Usage: rb-frame N [here | THREAD]")
        walk = Walk()
        stack = _selected(walk.stacks(), which.strip() or "here")[0]
        walk.fill(stack)
        if int(number) >= len(stack.frames):
            raise gdb.GdbError(f"The stack has only {len(stack.frames)} frames." if not stack.reason else stack.reason)
        frame = stack.frames[int(number)]
        gdb.write(f"#{number} {_line(frame)}\n")
        gdb.set_convenience_variable("rb_cfp", gdb.Value(frame.cfp).cast(walk.types.struct(CFP).pointer()))
        gdb.write(f"  cfp {frame.cfp:#x}  kind {frame.kind}\n")
        gdb.write(f"  pc {frame.pc:#x}  iseq {frame.iseq:#x}  ep {frame.ep:#x}\n")
        gdb.write(f"  self {walk.memory.get(frame.cfp, CFP, 'self'):#x}\n")
        gdb.write(f"  method entry {walk.method_entry(frame.ep):#x}\n")


class RubyString(gdb.Command):
    """Print the bytes of a Ruby String, or with -i the name of an ID: rb-str [-i] EXPRESSION"""

    name = "rb-str"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA)

    @sentences_only
    def invoke(self, argument, from_tty):
        is_id, expression = argument.startswith("-i "), argument.removeprefix("-i ").strip()
        if not expression:
            raise gdb.GdbError("Usage: rb-str [-i] EXPRESSION")
        values = Walk().values
        number = _evaluate(expression)
        raw = values.id_name(number) if is_id else values.string(number)
        gdb.write("nil\n" if raw is None else f'"{text(raw)}"\n')


class RubyIseq(gdb.Command):
    """Show the path, the line, the label and the addresses of an rb_iseq_t *: rb-iseq EXPRESSION"""

    name = "rb-iseq"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA)

    @sentences_only
    def invoke(self, argument, from_tty):
        if not argument.strip():
            raise gdb.GdbError("Usage: rb-iseq EXPRESSION")
        iseq = Walk().iseq(_evaluate(argument))
        gdb.write(f"{text(iseq.path)}:{iseq.first_line}:in '{text(iseq.label)}'\n")
        gdb.write(f"  body {iseq.body:#x}  code {iseq.encoded:#x}–{iseq.encoded + 8 * iseq.size:#x}\n")


for command in (RubyBacktrace, RubyThreads, RubyFrame, RubyString, RubyIseq):
    command()
