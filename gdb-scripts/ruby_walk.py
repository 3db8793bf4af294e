"""Finds the stacks of all threads in all ractors, and of all suspended fibers. Reads the frames of these stacks.

To choose between algorithms, the code checks which members exist; it does not use Ruby's version. Comments name the
functions of Ruby that do the same.
"""

from dataclasses import dataclass, field
from typing import Optional

import gdb

from ruby_iseq import Iseq
from ruby_memory import Memory, Unreadable
from ruby_roots import types
from ruby_values import Values

CFP = "rb_control_frame_struct"
EC = "rb_execution_context_struct"
FIBER = "rb_fiber_struct"
THREAD = "rb_thread_struct"
RACTOR = "rb_ractor_struct"
MENT = "rb_callable_method_entry_struct"
MDEF = "rb_method_definition_struct"

# The offsets of an environment's own words from its ep, in bytes (vm_core.h, VM_ENV_DATA_INDEX_*, 2.4 to 3.4), and the
# bits of the previous ep that are not part of the address (VM_ENV_PREV_EP).
ME_CREF, SPECVAL = -16, -8
PREV_EP_BITS = 3

MAX_LIST = 100_000  # ractors, threads or fibers; a longer list is a loop
MAX_STACK_WORDS = 1 << 27  # a VM stack of 1 GiB
MAX_ENVIRONMENTS = 10_000  # nested environments of one method

FRAME_KINDS = ("METHOD", "BLOCK", "CLASS", "TOP", "CFUNC", "IFUNC", "EVAL", "RESCUE", "DUMMY")


@dataclass
class Frame:
    cfp: int
    kind: str  # ruby, cfunc, unreadable
    path: Optional[bytes] = None  # None: a C function that no Ruby code has called
    line: Optional[int] = None  # None: not known, because a JIT has not stored the pc; 0: Ruby has no line either
    label: Optional[bytes] = None  # as this Ruby prints it
    reason: Optional[str] = None  # why the frame is unreadable
    pc: int = 0
    iseq: int = 0
    ep: int = 0
    jit: bool = False  # code of a JIT has pushed the frame, or runs it


@dataclass
class Stack:
    """The stack of a thread, or of a suspended fiber."""

    thread: int
    ec: int
    name: Optional[bytes] = None
    ractor: Optional[int] = None
    main: bool = False
    status: str = "unknown"
    tid: Optional[int] = None
    gdb_thread: Optional[int] = None
    self_value: int = 0
    fiber: Optional[int] = None  # the rb_fiber_struct of a suspended fiber
    frames: list = field(default_factory=list)
    reason: Optional[str] = None  # why frames is not the whole stack


class Walk:
    """Reads the stacks of a process or core once. `problems` contains a text for each problem in the search for stacks."""

    def __init__(self):
        self.types = types()
        self.memory = Memory(self.types)
        self.values = Values(self.memory)
        self.problems = []
        self.vm = self.memory.pointer("ruby_current_vm_ptr")
        if not self.vm:
            raise Unreadable("ruby_current_vm_ptr is NULL: Ruby has not started yet")
        self.knows_fibers = False  # whether stacks() returns all suspended fibers
        self._iseqs = {}
        self._native = None
        # Since 3.4, vm_backtrace.c omits the frame below that of a rescue or ensure, and qualifies labels by class.
        self._skips_below_rescue = self.types.function("is_rescue_or_ensure_frame")
        self._qualifies = self.memory.has("rb_backtrace_location_struct", "cme")
        self._names_zjit_frames = self.memory.has(CFP, "_iseq")

    # ---- which stacks there are

    def stacks(self):
        """Returns the stacks of all threads of all ractors, and then the stacks of the suspended fibers. To read the
        frames of a stack, call fill()."""
        vm = self.vm
        found = []
        # A layout contains only the first member of a list's head. This member is at the same address as the head.
        threads = self.types.member("rb_vm_struct", "living_threads", "living_threads.n.next")
        if threads is not None:
            self._add_threads(found, vm + threads.offset, vm, None)
        else:
            head = vm + self.memory.member("rb_vm_struct", "ractor.set", "ractor.set.n.next").offset
            for ractor in self._list(head, RACTOR, "vmlr_node"):
                number = self._optional(ractor, RACTOR, "pub.id", "id")
                list_head = self.memory.member(RACTOR, "threads.set", "threads.set.n.next")
                self._add_threads(found, ractor + list_head.offset, vm, number)
        self._add_fibers(found)
        return found

    def _optional(self, address, struct, *paths):
        try:
            return self.memory.get(address, struct, *paths) if self.memory.has(struct, *paths) else None
        except Unreadable as problem:
            self.problems.append(str(problem))
            return None

    def _list(self, head, struct, *nodes):
        """Yields the structs in a list (ccan/list/list.h). The list is circular, and HEAD is one of its nodes."""
        node_name = next((name for name in nodes if self.memory.has(struct, name)), nodes[0])
        link = self.memory.member(struct, node_name).offset
        following = self.memory.member("list_node|ccan_list_node", "next").offset
        try:
            node, seen = self.memory.word(head + following), set()
            while node not in seen and len(seen) < MAX_LIST:
                if node == head:
                    return
                seen.add(node)
                yield node - link
                node = self.memory.word(node + following)
            self.problems.append(f"the list at {head:#x} does not end")
        except Unreadable as problem:
            self.problems.append(f"the list at {head:#x} cannot be read to its end: {problem}")

    def _add_threads(self, found, head, vm, ractor):
        main = self._optional(vm, "rb_vm_struct", "ractor.main_thread", "main_thread")
        for thread in self._list(head, THREAD, "lt_node", "vmlt_node"):
            try:
                ec = self.memory.get(thread, THREAD, "ec")
            except Unreadable as problem:
                found.append(Stack(thread, 0, ractor=ractor, reason=str(problem)))
                continue
            stack = Stack(thread, ec, ractor=ractor, main=thread == main)
            stack.name = self._thread_name(thread)
            stack.status = self._enumerator(THREAD, "status", thread, "THREAD_")
            stack.self_value = self._optional(thread, THREAD, "self") or 0
            stack.tid, stack.gdb_thread = self._native_thread(thread)
            found.append(stack)

    def _add_fibers(self, found):
        """Finds the suspended fibers in the list first_jit_cont, which contains the execution contexts of all threads and
        fibers (cont.c, 3.3 and later)."""
        threads = {stack.thread: stack for stack in found}
        running = {stack.ec for stack in found}
        try:
            item, seen = self._first_jit_cont(found), set()
            while item not in seen and len(seen) < MAX_LIST:
                if not item:
                    self.knows_fibers = bool(seen)
                    return
                seen.add(item)
                ec = self.memory.get(item, "rb_jit_cont", "ec")
                if ec not in running and self.memory.get(ec, EC, "vm_stack"):
                    found.append(self.fiber_stack(ec, threads))
                item = self.memory.get(item, "rb_jit_cont", "next")
            self.problems.append("the list of fibers does not end")
        except Unreadable as problem:
            self.problems.append(f"the list of fibers cannot be read to its end: {problem}")

    def _first_jit_cont(self, found):
        """The first item of the list. If gdb finds no symbol first_jit_cont, the code starts at the item of a thread's
        fiber, and goes back to the first item."""
        memory = self.memory
        if self.types.address("first_jit_cont") is not None:
            return memory.pointer("first_jit_cont")
        if not memory.has(FIBER, "cont.jit_cont") or not memory.has("rb_jit_cont", "prev"):
            return 0
        fibers = (memory.get(stack.ec, EC, "fiber_ptr") for stack in found if stack.ec)
        item = next((item for item in (memory.get(f, FIBER, "cont.jit_cont") for f in fibers if f) if item), 0)
        for _ in range(MAX_LIST):
            before = memory.get(item, "rb_jit_cont", "prev") if item else 0
            if not before:
                return item
            item = before
        raise Unreadable("its first item was not found")

    def fiber_stack(self, ec, threads):
        """The stack of a suspended fiber, without its frames. THREADS: a dict that maps the address of each thread to the
        stack of the thread."""
        thread = self.memory.get(ec, EC, "thread_ptr")
        fiber = self.memory.get(ec, EC, "fiber_ptr")
        stack = Stack(thread, ec, fiber=fiber)
        owner = threads.get(thread)
        if owner:
            stack.name, stack.ractor = owner.name, owner.ractor
        stack.status = self._enumerator(FIBER, "status", fiber, "FIBER_")
        return stack

    def _enumerator(self, struct, path, address, prefix):
        number = self._optional(address, struct, path)
        names = {
            "THREAD_": ("RUNNABLE", "STOPPED", "STOPPED_FOREVER", "KILLED"),
            "FIBER_": ("CREATED", "RESUMED", "SUSPENDED", "TERMINATED"),
        }[prefix]
        for name in names:
            if number is not None and self.types.constant(prefix + name) == number:
                return name.lower()
        return "unknown"

    def _thread_name(self, thread):
        value = self._optional(thread, THREAD, "name")
        if not value or value == self.types.constant("RUBY_Qnil"):
            return None
        try:
            return self.values.string(value)
        except Unreadable as problem:
            self.problems.append(f"the name of the thread {thread:#x} cannot be read: {problem}")
            return None

    def _native_thread(self, thread):
        """The kernel's id and gdb's number of a Ruby thread. To find them, the code uses the thread's pthread_t.

        The id that Ruby itself has stored is only the second choice: after a fork, 3.1 and 3.2 still have the id of the
        parent process.
        """
        native = self._optional(thread, THREAD, "nt")
        if native:
            pthread = self._optional(native, "rb_native_thread", "thread_id")
            noted = self._optional(native, "rb_native_thread", "tid")
        else:
            pthread = self._optional(thread, THREAD, "thread_id")
            noted = self._optional(thread, THREAD, "tid")
        if self._native is None:
            self._native = _native_threads()
        if pthread in self._native:
            return self._native[pthread]
        for tid, number in self._native.values():
            if noted and tid == noted:
                return tid, number
        return None, None

    # ---- frames

    def fill(self, stack: Stack):
        """Reads the frames of STACK, innermost first."""
        if stack.reason:
            return
        try:
            cfps = self._control_frames(stack.ec)
        except Unreadable as problem:
            stack.reason = str(problem)
            return
        # Does the same as rb_ec_partial_backtrace_object() (vm_backtrace.c).
        waiting = []  # C functions; they get the path and line of the next older Ruby frame
        skip = False
        for cfp in cfps:
            frame = Frame(cfp, "unreadable")
            try:
                iseq = self._read_frame(frame)
            except Unreadable as problem:
                frame.kind, frame.reason = "unreadable", str(problem)
                stack.frames.append(frame)
                waiting.clear()
                skip = False
                continue
            if frame.kind == "none":
                continue
            if iseq is None:
                stack.frames.append(frame)
                waiting.append(frame)
                continue
            if not skip:
                self._add_ruby_frame(stack.frames, waiting, frame, iseq)
            skip = self._skips_below_rescue and iseq.is_type("RESCUE", "ENSURE")
        for frame in waiting:
            if frame.path is None:
                frame.line = 0

    @staticmethod
    def _add_ruby_frame(frames, waiting, frame, iseq):
        """WAITING: the C functions at the end of FRAMES. These functions get the path and line of the next older Ruby
        frame."""
        if iseq.hides_c_functions and waiting:
            del frames[-len(waiting) :]
            waiting.clear()
        frames.append(frame)
        if not iseq.acts_as_c or iseq.hides_c_functions:
            frame.path = iseq.path  # stays if no other Ruby code has called this code (4.0 and later)
        if iseq.acts_as_c:
            waiting.append(frame)
            return
        for younger in waiting:
            younger.path, younger.line = frame.path, frame.line
        waiting.clear()

    def _control_frames(self, ec):
        """The addresses of the control frames of EC, without the oldest frame, which is a dummy."""
        memory = self.memory
        start = memory.get(ec, EC, "vm_stack")
        words = memory.get(ec, EC, "vm_stack_size")
        cfp = memory.get(ec, EC, "cfp")
        size = memory.size(CFP)
        if not start:
            raise Unreadable("the thread has no VM stack: it has not started, or is ending")
        end = start + 8 * words
        if words > MAX_STACK_WORDS or not start <= cfp <= end or (end - cfp) % size:
            raise Unreadable(f"the control frame {cfp:#x} is not in the VM stack {start:#x}–{end:#x}")
        return range(cfp, end - size, size)

    def _read_frame(self, frame):
        """Fills in FRAME, except its path. Returns the code of the frame, or None if it is the frame of a C function. A
        frame that no backtrace shows gets the kind `none`."""
        memory = self.memory
        raw = memory.read(frame.cfp, memory.size(CFP))

        def get(*paths):
            return memory.extract(memory.member(CFP, *paths), lambda offset, size: raw[offset : offset + size])

        frame.pc, frame.iseq, frame.ep = get("pc"), get("iseq", "_iseq"), get("ep")
        frame.jit = memory.has(CFP, "jit_return") and bool(get("jit_return"))
        if self._names_zjit_frames and frame.jit and memory.pointer("rb_zjit_entry"):
            raise Unreadable("ZJIT has not written this frame to memory")
        magic = self.environment(frame.ep)[1] & memory.constant("VM_FRAME_MAGIC_MASK")
        kind = next((k for k in FRAME_KINDS if self.types.constant("VM_FRAME_MAGIC_" + k) == magic), None)
        if kind is None:
            raise Unreadable(f"{magic:#x} is not a known kind of frame")
        if not frame.iseq:
            if kind == "CFUNC":
                self._read_c_function(frame)
            else:
                frame.kind = "none"
            return None
        if not frame.pc and kind in ("IFUNC", "DUMMY"):
            frame.kind = "none"
            return None
        iseq = self.iseq(frame.iseq)
        frame.kind = "cfunc" if iseq.acts_as_c else "ruby"
        frame.line = iseq.line(frame.pc)
        frame.label = self._ruby_label(frame, iseq)
        return iseq

    def _read_c_function(self, frame):
        entry = self.method_entry(frame.ep)
        if not entry:
            raise Unreadable("the frame of a C function has no method entry")
        frame.kind = "cfunc"
        frame.label = self._method_label(entry)

    def _method_label(self, entry):
        name = self.values.id_name(self.memory.get(self._definition(entry), MDEF, "original_id"))
        return self.values.qualified(self.memory.get(entry, MENT, "owner"), name) if self._qualifies else name

    def _definition(self, entry):
        return self.memory.get(entry, MENT, "def")

    def _ruby_label(self, frame, iseq):
        if not self._qualifies:
            return iseq.label
        entry = self.method_entry(frame.ep)
        if entry and self._is_shown_as_c(entry):
            return self._method_label(entry)
        return iseq.qualified_label(self.memory.get(entry, MENT, "owner") if entry else 0)

    def _is_shown_as_c(self, entry):
        """Does the same as Ruby's function location_cfunc_p() (vm_backtrace.c)."""
        definition = self._definition(entry)
        kind = self.memory.get(definition, MDEF, "type")
        if kind == self.memory.constant("VM_METHOD_TYPE_CFUNC"):
            return True
        if kind != self.memory.constant("VM_METHOD_TYPE_ISEQ"):
            return False
        return self.iseq(self.memory.get(definition, MDEF, "body.iseq.iseqptr")).acts_as_c

    def iseq(self, address) -> Iseq:
        if address not in self._iseqs:
            self._iseqs[address] = Iseq(self.values, address)
        return self._iseqs[address]

    def environment(self, ep):
        """The current address and the flags of the environment to which EP belongs."""
        flags = self.memory.word(ep)
        if not flags & 1:
            # The environment has moved to the heap: its object is in the place of the flags (vm.c, vm_make_env_each()).
            if self.values.imemo_kind(flags) != self.memory.constant("imemo_env"):
                raise Unreadable(f"there is no environment at {ep:#x}")
            ep = self.memory.get(flags, "rb_env_t", "ep")
            flags = self.memory.word(ep)
            if not flags & 1:
                raise Unreadable(f"there is no environment at {ep:#x}")
        return ep, flags

    def method_entry(self, ep):
        """The method entry of the frame that EP belongs to, or 0 (vm_insnhelper.c, rb_vm_frame_method_entry())."""
        memory = self.memory
        for _ in range(MAX_ENVIRONMENTS):
            ep, flags = self.environment(ep)
            local = flags & memory.constant("VM_ENV_FLAG_LOCAL")
            value = memory.word(ep + ME_CREF)
            if value:
                kind = self.values.imemo_kind(value)
                if local and kind == memory.constant("imemo_svar"):
                    value = memory.get(value, "vm_svar", "cref_or_me")
                    kind = self.values.imemo_kind(value) if value else None
                if kind == memory.constant("imemo_ment"):
                    return value
            if local:
                return 0
            ep = memory.word(ep + SPECVAL) & ~PREV_EP_BITS
        raise Unreadable("the environments of the frame form a loop")


def _native_threads():
    """A dict of all threads of the process or core. Key: pthread_t; value: (the kernel's thread id, gdb's thread number)."""
    found = {}
    selected = gdb.selected_thread()
    try:
        frame = gdb.selected_frame() if selected else None
    except gdb.error:
        frame = None
    for thread in gdb.selected_inferior().threads():
        try:
            thread.switch()
            found[int(gdb.parse_and_eval("$fs_base"))] = (thread.ptid[1], thread.num)  # glibc: pthread_t is %fs:0
        except gdb.error:
            continue
    if selected and selected.is_valid():
        selected.switch()
        if frame and frame.is_valid():
            frame.select()
    return found
