"""Chooses where the positions of members come from. If a Ruby has no symbols for its variables, finds these variables."""

import gdb

from ruby_layout import LayoutTypes, Module, Refused, candidates
from ruby_memory import Memory, Unreadable
from ruby_types import Types
from ruby_values import Values

THREAD = "rb_thread_struct"
EC = "rb_execution_context_struct"
FIBER = "rb_fiber_struct"
TREE = "rb_shape_tree_t|rb_shape_tree"
VM, SYMBOLS, SHAPES = "ruby_current_vm_ptr", "ruby_global_symbols", "rb_shape_tree_ptr"

MAX_SEARCH = 16 << 20  # bytes of data in which variables are searched for, as in dumper/ruby/roots.h
LOWEST = 1 << 16  # no object is below this address (vm.mmap_min_addr)
SERIALS = range(100, 1 << 28)  # how many names a Ruby that runs can have
# The ID of an operator of one character is its code (id.h, 1.9.3 to 4.0).
PLUS = ord("+")
# shape.h, INVALID_SHAPE_ID and the first shapes, 3.3 to 3.4: the parent of the first shape is at least NO_PARENT; shapes
# without a parent have numbers below ROOTS_END. SHAPES_SEEN is the number of shapes that are looked at, and ENOUGH_NAMES how
# many of these must have the name of a variable.
NO_PARENT = 0x7FFF
ROOTS_END, SHAPES_SEEN, ENOUGH_NAMES = 16, 48, 2

_given = None  # the layout that the user gave with rb-layout
_found = {}  # what was found for a process: {(pid, path of Ruby): LayoutTypes}


def give(path):
    """Makes the layout file PATH the source for all commands. If PATH is None, the source is gdb's types or, without debug
    info, a layout that fits."""
    global _given
    _given = LayoutTypes(path) if path is not None else None
    _found.clear()


def types():
    """The source of positions for the selected process or core: a layout that the user gave, gdb's own types, or a
    layout file for the build-id or the version of this Ruby. Raises Unreadable if there is none."""
    if _given is None:
        own = Types()
        if own.member("rb_control_frame_struct", "ep") is not None:
            return own
    module = Module()
    key = gdb.selected_inferior().pid, module.file, tuple(module.data), _given.path if _given else None
    if key not in _found:
        _found.clear()
        _found[key] = _settle(_given, module) if _given else _choose(module)
    return _found[key]


def _choose(module):
    if module.file is None:
        raise Unreadable("gdb finds no Ruby in this process or core")
    paths = candidates(module.version, module.build_id)
    problem = None
    for path in paths:
        try:
            return _settle(LayoutTypes(path), module)
        except (Refused, Unreadable) as why:
            problem = problem or why
    if problem is not None:
        raise Unreadable(f"no layout file fits this Ruby {module.version}: {problem}")
    raise Unreadable(f"gdb has no debug info for this Ruby {module.version}, and no layout file fits this Ruby: use rb-layout")


def _settle(layout, module):
    """Prepares LAYOUT for a process or core, and returns it. Raises Unreadable if the layout does not fit."""
    memory = Memory(layout)
    layout.forget_addresses()
    layout.finders = {
        VM: lambda: _search(memory, module, _is_vm, "the virtual machine"),
        SYMBOLS: lambda: _search(memory, module, _is_symbols, "the table of symbols"),
        SHAPES: lambda: _search(memory, module, _is_shape_tree, "the array of shapes"),
    }
    if not _is_vm(memory, layout.address(VM), memory.pointer(VM)):
        raise Unreadable(f"the VM does not fit {layout.words}")
    layout.address(SYMBOLS)
    return layout


def _search(memory, module, is_it, what):
    """Searches the data of Ruby's file, and returns the address of the first word for which IS_IT() returns true."""
    left = MAX_SEARCH
    for low, high in module.data:
        high = min(high, low + left)
        left -= high - low
        for start in range(low, high, 1 << 16):
            try:
                raw = memory.read(start, min(high, start + (1 << 16)) - start)
            except Unreadable:
                continue
            for offset in range(0, len(raw) - 7, 8):
                if is_it(memory, start + offset, int.from_bytes(raw[offset : offset + 8], "little")):
                    return start + offset
    raise Unreadable(f"{what} was not found in {module.file}")


def _is_vm(memory, _, vm):
    """Whether VM and its main thread point at each other, and the current fiber of this thread has the state FIBER_RESUMED."""
    if vm < LOWEST or vm & 7:
        return False
    try:
        thread = memory.get(vm, "rb_vm_struct", "main_thread", "ractor.main_thread")
        if thread < LOWEST or thread & 7 or memory.get(thread, THREAD, "vm") != vm:
            return False
        ec = memory.get(thread, THREAD, "ec")
        if memory.get(ec, EC, "thread_ptr") != thread:
            return False
        fiber = memory.get(ec, EC, "fiber_ptr")
        resumed = memory.types.constant("FIBER_RESUMED")
        return not fiber or resumed is None or memory.get(fiber, FIBER, "status") == resumed
    except Unreadable:
        return False


def _is_symbols(memory, address, _):
    """Whether there is an rb_symbols_t at ADDRESS: it must have the right name for the operator +. dumper/ruby/roots.h
    does the same."""
    try:
        serials = memory.get(address, "rb_symbols_t|symbols", "last_id", "next_id")
        if serials not in SERIALS:
            return False
        ids = memory.get(address, "rb_symbols_t|symbols", "ids")
        if ids < LOWEST or ids & 7:
            return False
        return Values(memory).id_name(PLUS, address) == b"+"
    except Unreadable:
        return False


def _is_shape_tree(memory, _, tree):
    """Whether TREE is an rb_shape_tree_t: each shape must have a higher number than its parent, and some shapes must have
    names of variables that can be read."""
    if tree < LOWEST or tree & 7 or memory.types.member(TREE, "shape_list") is None:
        return False
    try:
        shapes, size = memory.get(tree, TREE, "shape_list"), memory.size("rb_shape")
        if shapes < LOWEST or shapes & 7 or memory.get(shapes, "rb_shape", "parent_id") < NO_PARENT:
            return False
        named = 0
        for number in range(1, SHAPES_SEEN):
            shape = shapes + number * size
            if memory.get(shape, "rb_shape", "parent_id") >= number and number >= ROOTS_END:
                return False
            if memory.get(shape, "rb_shape", "type") == memory.constant("SHAPE_IVAR"):
                named += Values(memory).id_name(memory.get(shape, "rb_shape", "edge_name")) is not None
        return named >= ENOUGH_NAMES
    except Unreadable:
        return False
