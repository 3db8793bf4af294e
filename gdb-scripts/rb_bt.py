"""Commands for gdb that show the Ruby stacks, locks and variables of a live process or of a core.

To load the commands, `source` this file; `help rb-bt` describes the first of them. The commands call no function in the
process, and write nothing to it, so they work on a core, too. For a Ruby without debug info, they use a layout file of
rbdump (`help rb-layout`).
"""

import json
import os
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import rb_looks  # noqa: E402
from rb_command import evaluate, frame_line, selected, sentences_only, tell_problems, title  # noqa: E402
from ruby_text import printable, text  # noqa: E402
from ruby_walk import CFP, Walk  # noqa: E402


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
        stacks = selected(walk.stacks(), " ".join(word for word in words if word != "--json"))
        for stack in stacks:
            walk.fill(stack)
        tell_problems(self.name, walk)
        if as_json:
            gdb.write(json.dumps([_json(stack) for stack in stacks]) + "\n")
            return
        for stack in stacks:
            gdb.write(title(stack) + "\n")
            if stack.reason:
                gdb.write(f"    <unreadable: {stack.reason}>\n")
            for number, frame in enumerate(stack.frames):
                gdb.write(f"#{number:<3} {frame_line(frame)}\n")


class RubyThreads(gdb.Command):
    """List the Ruby threads of all ractors, and the suspended fibers, each with its innermost frame: rb-threads

Each line has the address of the rb_thread_t, the name, the ractor, the kernel thread id, gdb's number of the thread, the
state as Ruby knows it (runnable, stopped, stopped_forever, killed; for a fiber: suspended, created, terminated), the
number of frames, and the innermost frame. rb-locks shows what a stopped thread waits for."""

    name = "rb-threads"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_STACK)

    @sentences_only
    def invoke(self, argument, from_tty):
        if argument.strip():
            raise gdb.GdbError("Usage: rb-threads")
        walk = Walk()
        for stack in walk.stacks():
            walk.fill(stack)
            top = frame_line(stack.frames[0]) if stack.frames else f"<{stack.reason or 'no frames'}>"
            gdb.write(f"{title(stack)}, {len(stack.frames)} frames, {top}\n")
        tell_problems(self.name, walk)


class RubyFrame(gdb.Command):
    """Show frame N of a Ruby stack with its addresses: rb-frame N [here | THREAD]

N is the number that rb-bt shows for the frame. Default stack: the stack that the selected gdb thread runs (here).
Afterwards, $rb_cfp is the control frame of frame N: p *$rb_cfp. Without debug info, $rb_cfp is only its address."""

    name = "rb-frame"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_STACK)

    @sentences_only
    def invoke(self, argument, from_tty):
        number, _, which = argument.strip().partition(" ")
        if not number.isdecimal():
            raise gdb.GdbError("Usage: rb-frame N [here | THREAD]")
        walk = Walk()
        stack = selected(walk.stacks(), which.strip() or "here")[0]
        walk.fill(stack)
        if int(number) >= len(stack.frames):
            raise gdb.GdbError(f"The stack has only {len(stack.frames)} frames." if not stack.reason else stack.reason)
        frame = stack.frames[int(number)]
        gdb.write(f"#{number} {frame_line(frame)}\n")
        record = walk.types.struct(CFP)  # None if a layout file is used
        cfp = gdb.Value(frame.cfp)
        gdb.set_convenience_variable("rb_cfp", cfp.cast(record.pointer()) if record is not None else cfp)
        gdb.write(f"  cfp {frame.cfp:#x}  kind {frame.kind}\n")
        gdb.write(f"  pc {frame.pc:#x}  iseq {frame.iseq:#x}  ep {frame.ep:#x}\n")
        gdb.write(f"  self {walk.memory.get(frame.cfp, CFP, 'self'):#x}\n")
        gdb.write(f"  method entry {walk.method_entry(frame.ep):#x}\n")


class RubyString(gdb.Command):
    """Print the bytes of a Ruby String, or, with -i, the name of an ID: rb-str [-i] EXPRESSION"""

    name = "rb-str"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA)

    @sentences_only
    def invoke(self, argument, from_tty):
        is_id, expression = argument.startswith("-i "), argument.removeprefix("-i ").strip()
        if not expression:
            raise gdb.GdbError("Usage: rb-str [-i] EXPRESSION")
        values = Walk().values
        number = evaluate(expression)
        raw = values.id_name(number) if is_id else values.string(number)
        gdb.write("nil\n" if raw is None else f'"{printable(raw)}"\n')


class RubyIseq(gdb.Command):
    """Show the path, the line, the label and the addresses of an rb_iseq_t *: rb-iseq EXPRESSION"""

    name = "rb-iseq"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA)

    @sentences_only
    def invoke(self, argument, from_tty):
        if not argument.strip():
            raise gdb.GdbError("Usage: rb-iseq EXPRESSION")
        iseq = Walk().iseq(evaluate(argument))
        gdb.write(f"{printable(iseq.path)}:{iseq.first_line}:in '{printable(iseq.label)}'\n")
        gdb.write(f"  body {iseq.body:#x}  code {iseq.encoded:#x}–{iseq.encoded + 8 * iseq.size:#x}\n")


for command in (RubyBacktrace, RubyThreads, RubyFrame, RubyString, RubyIseq):
    command()
rb_looks.define()
