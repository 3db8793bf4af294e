"""The commands rb-locals, rb-locks, rb-print and rb-layout. rb_bt.py loads them."""

import json
import os

import gdb

import ruby_roots
from rb_command import evaluate, frame_line, selected, sentences_only, tell_problems, title
from ruby_inspect import Inspect
from ruby_layout import Refused
from ruby_locals import locals_of
from ruby_locks import Locks
from ruby_memory import Unreadable
from ruby_objects import Objects
from ruby_text import escaped, printable, text
from ruby_walk import Walk

DOUBTS = {
    "in-register": "unknown: the JIT may have the value in a register",
    "not-a-value": "not a value: Ruby's own data about this method call",
    "nil-or-block": "or the block, if this variable is the block parameter",
}
HIDDEN = ("in-register", "not-a-value")  # the word in memory is not the value

OBJECTS = {  # for each kind of wait: the words before the object, and the class to show if it cannot be read
    "mutex": ("to lock", "Mutex"),
    "monitor": ("to enter", "Monitor"),
    "condition": ("for a signal of", "ConditionVariable"),
    "queue_pop": ("for an element of", "Queue"),
    "queue_push": ("for room in", "SizedQueue"),
    "join": ("for the end of", "Thread"),
}
OTHERS = {"gvl": "for the GVL", "process": "for a child process", "sleep": "in sleep"}


class Reading:
    """The readers that a command uses for one look at the process or core."""

    def __init__(self):
        self.walk = Walk()
        self.objects = Objects(self.walk.values, self.walk.vm)
        self.inspect = Inspect(self.objects)

    def stacks(self):
        stacks = self.walk.stacks()
        for stack in stacks:
            self.walk.fill(stack)
        return stacks


class RubyLocals(gdb.Command):
    """Print the local variables of Ruby frames: rb-locals [--json] [--frame N] [all | here | THREAD]

here    the Ruby thread that the selected gdb thread runs; this is the default
all     all threads, and all suspended fibers, if this Ruby keeps a list of its fibers
THREAD  an expression, as for rb-bt

--frame N  only the frame with the number that rb-bt shows
--json     print a list of stacks, as JSON on one line. Each stack has name, thread, fiber and frames. Each frame that
           is not a C function has number, path, line, locals and reason. Each variable has name, depth, value and doubt

A variable of the code around a block has a depth: 1 for the code directly around the block, 2 for the code around that
code, and so on. Values are shown as rb-print shows them. If a JIT may have a variable in a register, its value is
unknown."""

    name = "rb-locals"
    usage = "Usage: rb-locals [--json] [--frame N] [all | here | THREAD]"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_STACK)

    @sentences_only
    def invoke(self, argument, from_tty):
        words, only = argument.split(), None
        as_json = "--json" in words
        words = [word for word in words if word != "--json"]
        if "--frame" in words:
            at = words.index("--frame")
            if at + 1 >= len(words) or not words[at + 1].isdecimal():
                raise gdb.GdbError(self.usage)
            only = int(words[at + 1])
            del words[at : at + 2]
        reading = Reading()
        stacks = selected(reading.walk.stacks(), " ".join(words) or "here")
        shown = []
        for stack in stacks:
            reading.walk.fill(stack)
            if only is not None and only >= len(stack.frames):
                raise gdb.GdbError(stack.reason or f"The stack has only {len(stack.frames)} frames.")
            frames = [(n, frame) for n, frame in enumerate(stack.frames) if only in (None, n)]
            shown.append((stack, [(n, frame, *self._read(reading, n, frame)) for n, frame in frames]))
        tell_problems(self.name, reading.walk)
        if as_json:
            gdb.write(json.dumps([self._json(*one) for one in shown]) + "\n")
            return
        for stack, frames in shown:
            self._write(stack, frames)

    @staticmethod
    def _read(reading, number, frame):
        """A pair: a list with (name, depth, value, doubt) for each variable of a frame; and the reason why variables are
        missing, or None."""
        found = []
        if frame.kind != "ruby":  # code that Ruby shows as a C function has variables of Ruby's own
            return found, frame.reason
        try:
            for local in locals_of(reading.walk, frame, number == 0):
                value = None if local.doubt in HIDDEN else reading.inspect.value(local.value)
                found.append((local.name, local.depth, value, local.doubt))
        except Unreadable as problem:
            return found, str(problem)
        return found, None

    @staticmethod
    def _json(stack, frames):
        return {
            "name": text(stack.name),
            "thread": stack.thread,
            "fiber": stack.fiber,
            "frames": [
                {
                    "number": number,
                    "path": text(frame.path),
                    "line": frame.line,
                    "locals": [
                        {"name": text(name), "depth": depth, "value": value, "doubt": doubt}
                        for name, depth, value, doubt in found
                    ],
                    "reason": reason,
                }
                for number, frame, found, reason in frames
                if frame.kind != "cfunc"
            ],
        }

    @staticmethod
    def _write(stack, frames):
        gdb.write(title(stack) + "\n")
        if stack.reason:
            gdb.write(f"    <unreadable: {stack.reason}>\n")
        for number, frame, found, reason in frames:
            gdb.write(f"#{number:<3} {frame_line(frame)}\n")
            for name, depth, value, doubt in found:
                outer = f" [{depth} outside]" if depth else ""
                note = f" ({DOUBTS[doubt]})" if doubt else ""
                gdb.write(f"       {printable(name)}{outer} ={' ' + value if value is not None else ''}{note}\n")
            if reason and frame.kind != "unreadable":
                gdb.write(f"       <variables may be missing: {reason}>\n")


class RubyPrint(gdb.Command):
    """Print a Ruby value as its own inspect would print it: rb-print VALUE

VALUE is an expression of type VALUE: a number, a member such as $rb_cfp->self, or a C variable.

Integer, Float, String, Symbol, Array, Hash, Range, Struct, Data, Rational, Complex, true, false and nil are written as
Ruby writes them. A class is written as its name. Any other object is written as #<Class @ivar=…>, down to a small depth.
No method of the program is called. Large values are shortened: "…" stands for the omitted part. What cannot be read is
written as (unreadable)."""

    name = "rb-print"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_DATA)

    @sentences_only
    def invoke(self, argument, from_tty):
        if not argument.strip():
            raise gdb.GdbError("Usage: rb-print VALUE")
        value = evaluate(argument) & ((1 << 64) - 1)
        reading = Reading()
        if reading.objects.is_object(value):
            reading.walk.values.flags(value)  # a wrong address is an error, not an unreadable part
        gdb.write(reading.inspect.value(value) + "\n")


class RubyLocks(gdb.Command):
    """Show what Ruby threads wait for, and who holds it: rb-locks [--json]

Deadlocks come first: threads that can never go on, because each of them waits for the next one, and the last one for the
first. Then rb-locks lists each thread and each suspended fiber that waits, or that holds a Mutex. It shows what the
thread or fiber waits for (Mutex, Monitor, ConditionVariable, Queue, SizedQueue, the end of a Thread, a child process,
the GVL, sleep), who holds that, and the Mutexes that the thread or fiber holds itself. The Mutex of a Monitor counts as
a Mutex.

What a suspended fiber waits for in a fiber scheduler is not shown. Up to Ruby 3.2 without a JIT, a suspended fiber is
listed only if it holds a Mutex.

--json  print an object, as JSON on one line. It has deadlocks (lists of indexes of threads) and threads. Each thread has
        name, thread, fiber, tid, wait, holds and problem. wait is null, or has kind, object, class, holder (null, or state
        and index), confirmed, length, max, seconds and child. Each of holds has mutex, object, class and frame"""

    name = "rb-locks"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_STACK)

    @sentences_only
    def invoke(self, argument, from_tty):
        if argument.strip() not in ("", "--json"):
            raise gdb.GdbError("Usage: rb-locks [--json]")
        reading = Reading()
        locks = Locks(reading.walk, reading.objects, reading.stacks())
        deadlocks = locks.deadlocks()
        tell_problems(self.name, reading.walk)
        if argument.strip():
            threads = [self._json(entry) for entry in locks.entries]
            gdb.write(json.dumps({"deadlocks": deadlocks, "threads": threads}) + "\n")
            return
        for cycle in deadlocks:
            self._write_deadlock(locks, cycle)
        for entry in locks.entries:
            self._write(locks, entry)

    @staticmethod
    def _json(entry):
        wait = entry.wait
        return {
            "name": text(entry.stack.name),
            "thread": entry.stack.thread,
            "fiber": entry.stack.fiber,
            "tid": entry.stack.tid,
            "wait": wait
            and {
                "kind": wait.kind,
                "object": wait.value or None,
                "class": text(wait.class_name),
                "holder": None if wait.state == "none" else {"state": wait.state, "index": wait.holder},
                "confirmed": wait.confirmed,
                "length": wait.length,
                "max": wait.limit,
                "seconds": wait.seconds,
                "child": wait.child,
            },
            "holds": [
                {"mutex": h.mutex, "object": h.value or None, "class": text(h.class_name), "frame": h.frame}
                for h in entry.held
            ],
            "problem": entry.problem,
        }

    def _write_deadlock(self, locks, cycle):
        if len(cycle) == 1 and locks.entries[cycle[0]].wait.state == "ended":
            gdb.write("Deadlock: one thread waits for a lock whose holder has ended\n")
        else:
            gdb.write(f"Deadlock of {len(cycle)} threads or fibers\n")
        for index in cycle:
            entry = locks.entries[index]
            waits = self._wait(locks, entry.wait) if entry.wait else "is suspended: its thread's current fiber must go on first"
            gdb.write(f"    {_short(entry.stack)} {waits}\n")

    def _write(self, locks, entry):
        if not entry.wait and not entry.held and not entry.problem:
            return
        gdb.write(title(entry.stack) + "\n")
        if entry.wait:
            top = f", at {frame_line(entry.stack.frames[0])}" if entry.stack.frames else ""
            gdb.write(f"    {self._wait(locks, entry.wait)}{top}\n")
        if entry.problem:
            gdb.write(f"    <a wait, a holder or a Mutex may be missing: {escaped(entry.problem)}>\n")
        for held in entry.held:
            what = f"{printable(held.class_name)} {held.value:#x}" if held.value else f"the rb_mutex_t {held.mutex:#x}"
            since = f", since {frame_line(entry.stack.frames[held.frame])}" if held.frame is not None else ""
            gdb.write(f"    holds {what}{since}\n")

    @staticmethod
    def _wait(locks, wait):
        if wait.kind in OTHERS:
            words = "waits " + OTHERS[wait.kind] + (f" of {wait.seconds:g} s" if wait.seconds is not None else "")
            words += "" if wait.child is None else f" {wait.child}" if wait.child > 0 else " (any)"
        else:
            before, name = OBJECTS[wait.kind]
            if wait.class_name is not None:
                name = printable(wait.class_name)
            words = f"waits {before} {name} {wait.value:#x}"
        if wait.length is not None:
            words += f" ({wait.length} of {wait.limit} elements)" if wait.limit is not None else f" ({wait.length} elements)"
        if wait.state == "known" and wait.kind != "join":
            words += f", held by {_short(locks.entries[wait.holder].stack)}"
        elif wait.state == "known":
            words += f", which is {_short(locks.entries[wait.holder].stack)}"
        elif wait.state == "ended":
            words += ", held by a fiber or thread that has ended"
        elif wait.state == "unknown" and wait.keeper is not None:
            words += f", held by a fiber of {_short(locks.entries[wait.keeper].stack)}"
        elif wait.state == "unknown":
            words += ", held by an unknown thread or fiber"
        return words


def _short(stack):
    what = f"fiber {stack.fiber:#x} of thread" if stack.fiber is not None else "thread"
    name = f' "{printable(stack.name)}"' if stack.name is not None else " main" if stack.main else ""
    return f"{what} {stack.thread:#x}{name}"


class RubyLayout(gdb.Command):
    """Choose where the rb- commands take the structs of Ruby from: rb-layout [FILE | auto]

FILE  a layout file that `rbdump layout` has made for this Ruby, or a file of rbdump's offsets.d
auto  the debug info that gdb has read; without debug info, the layout file for the build-id or the version of this Ruby,
      in $RBDUMP_OFFSETS_D, in the user's cache (~/.cache/rbdump/offsets.d) or in rbdump's own offsets.d; this is the
      default

Without an argument, rb-layout shows where the structs of Ruby are from. auto does not use a folder or file that
other users can change."""

    name = "rb-layout"

    def __init__(self):
        super().__init__(self.name, gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        path = os.path.expanduser(argument.strip())
        try:
            if path:
                ruby_roots.give(None if path == "auto" else path)
        except Refused as problem:
            raise gdb.GdbError(f"rb-layout: cannot use the layout file {path}: {problem}") from None
        self._show()

    @sentences_only
    def _show_used(self, argument, from_tty):
        gdb.write(f"rb-layout: the structs of Ruby are from {ruby_roots.types().words}\n")

    def _show(self):
        if gdb.selected_inferior().pid:
            self._show_used("", False)


def define():
    """Defines the commands in gdb."""
    for command in (RubyLocals, RubyPrint, RubyLocks, RubyLayout):
        command()
