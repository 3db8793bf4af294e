"""Reads those local variables of a frame that `binding.local_variables` lists. dumper/ruby/locals.h does the same."""

import re
from typing import NamedTuple, Optional

from ruby_iseq import BODY
from ruby_memory import Unreadable
from ruby_walk import ME_CREF, PREV_EP_BITS, SPECVAL, Frame, Walk

MAX_LOCALS = 512  # of one frame, with those of the enclosing code
MAX_NESTING = 256
ENV_OBJECT = 8  # bytes from the ep to the object of an environment on the heap (vm_core.h, VM_ENV_DATA_INDEX_ENV)

# vm_core.h, VM_FRAME_FLAG_MODIFIED_BLOCK_PARAM, 2.5 to 4.0: the block parameter has its value.
MODIFIED_BLOCK_PARAM = 0x0200

# A name of a variable, or an argument that the program gives no name. Other names are of Ruby's own variables.
NAME = re.compile(rb"(?:[a-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*|\*|\*\*|&|\.\.\.)\Z")


class Local(NamedTuple):
    name: bytes
    depth: int  # how many environments outside the frame's own
    value: int
    doubt: Optional[str]  # why `value` may not be what the program sees


def locals_of(walk: Walk, frame: Frame, innermost: bool):
    """The local variables of a frame of Ruby code, and those of the enclosing code that no inner variable hides.

    Yields the variables, and raises Unreadable if the next one cannot be read. INNERMOST: whether FRAME is the first of its
    stack. Only the variables of such a frame can be in a register of a JIT.
    """
    memory = walk.memory
    ep, iseq, seen = frame.ep, walk.iseq(frame.iseq), set()
    in_registers = innermost and (frame.jit or _is_compiled(memory, iseq))
    for depth in range(MAX_NESTING):
        ep, flags = walk.environment(ep)
        if flags & memory.constant("VM_ENV_FLAG_ESCAPED"):
            _check_owner(walk, ep, iseq)
        count = memory.get(iseq.body, BODY, "local_table_size")
        ids = memory.get(iseq.body, BODY, "local_table")
        for index in range(count):
            if len(seen) >= MAX_LOCALS or index >= MAX_LOCALS:
                raise Unreadable("there are too many local variables")
            name = _name(walk, memory.word(ids + 8 * index))
            if name is None or name in seen:
                continue
            value = memory.word(ep + ME_CREF - 8 * (count - index))
            doubt = _doubt(walk, ep, flags, value, name, in_registers and depth == 0)
            if name == b"..." and value == memory.constant("RUBY_Qnil"):
                continue  # up to 3.3, it only marks that there are "*", "**" and "&"
            seen.add(name)
            yield Local(name, depth, value, doubt)
        if flags & memory.constant("VM_ENV_FLAG_LOCAL"):
            return
        ep = memory.word(ep + SPECVAL) & ~PREV_EP_BITS
        iseq = iseq.parent()
        if iseq is None:
            raise Unreadable("the enclosing code is missing")
    raise Unreadable("the environments of the frame form a loop")


def _is_compiled(memory, iseq):
    """Whether a JIT has code for ISEQ. From 2.6 to 3.2, jit_func can contain a state of MJIT instead of an address: see
    dumper/ruby/code.c."""
    if not memory.has(BODY, "jit_func", "jit_entry"):
        return False
    states = (memory.types.constant(name) for name in ("NOT_COMPILED_JIT_ISEQ_FUNC", "MJIT_FUNC_FAILED"))
    last_state = next((state for state in states if state is not None), 0)
    return memory.get(iseq.body, BODY, "jit_func", "jit_entry") > last_state


def _check_owner(walk, ep, iseq):
    """Checks that an environment on the heap belongs to ISEQ. Its object refers to the environment's code (vm.c,
    vm_env_new())."""
    memory = walk.memory
    env = memory.word(ep + ENV_OBJECT)
    if walk.values.imemo_kind(env) != memory.constant("imemo_env"):
        raise Unreadable(f"there is no environment at {ep:#x}")
    if memory.has("rb_env_t", "iseq") and memory.get(env, "rb_env_t", "iseq") != iseq.address:
        raise Unreadable(f"the environment at {ep:#x} belongs to other code")


def _name(walk, number):
    try:
        name = walk.values.id_name(number) if number else None
    except Unreadable:
        return None  # the ID of a variable that Ruby itself uses
    return name if name is not None and NAME.match(name) else None


def _doubt(walk, ep, flags, value, name, in_register):
    memory = walk.memory
    if name == b"...":
        return "not-a-value"
    if in_register:
        return "in-register"
    # Ruby makes the Proc of a block parameter when it is first used (vm_args.c, insns.def, getblockparam).
    magic = flags & memory.constant("VM_FRAME_MAGIC_MASK")
    is_method = flags & memory.constant("VM_ENV_FLAG_LOCAL") and magic == memory.constant("VM_FRAME_MAGIC_METHOD")
    unused = is_method and memory.word(ep + SPECVAL) and not flags & MODIFIED_BLOCK_PARAM
    return "nil-or-block" if unused and value == memory.constant("RUBY_Qnil") else None
