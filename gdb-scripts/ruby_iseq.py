"""Reads the path, the lines and the label of Ruby code (an iseq)."""

from typing import Optional

from ruby_memory import Unreadable
from ruby_values import Values

BODY = "rb_iseq_constant_body"
MAX_NESTING = 10_000  # scopes, one in another; a longer chain is a loop

# The succinct table of positions (iseq.c, the same from 2.7 to 3.4). For the first positions, each word has 9 ranks of
# 7 bits. Then there are blocks of 512 positions, each with 8 small blocks of 64, whose ranks take 9 bits each.
IMMEDIATE_RANKS, IMMEDIATE_BITS = 9, 7
BLOCK, SMALL_BLOCK, SMALL_RANK_BITS = 512, 64, 9


class Iseq:
    """The Ruby code (iseq) at an address. The constructor checks that there is an iseq at this address."""

    def __init__(self, values: Values, address):
        self.values = values
        self.memory = values.memory
        self.address = address
        if values.imemo_kind(address) != self.memory.constant("imemo_iseq"):
            raise Unreadable(f"{address:#x} is not an iseq")
        self.body = self.memory.get(address, "rb_iseq_struct", "body")
        self.type = self._get("type")
        self.encoded = self._get("iseq_encoded")
        self.size = self._get("iseq_size")
        self.path = self._path()
        self._lines = {}

    def _get(self, *paths):
        return self.memory.get(self.body, BODY, *paths)

    def is_type(self, *names) -> bool:
        return self.type in [self.memory.types.constant("ISEQ_TYPE_" + name) for name in names]

    def _path(self) -> bytes:
        pathobj = self._get("location.pathobj")
        if self.values.is_a(pathobj, "RUBY_T_ARRAY"):  # [path, real path]; PATHOBJ_PATH is 0, vm_core.h
            pathobj = self.values.element(pathobj, 0)
        return self.values.string(pathobj)

    @property
    def label(self) -> bytes:
        return self.values.string(self._get("location.label"))

    @property
    def first_line(self) -> int:
        number = self.memory.get_signed(self.body, BODY, "location.first_lineno")
        return number >> 1 if self.memory.member(BODY, "location.first_lineno").size == 8 else number  # Fixnum ≤3.1

    @property
    def hides_c_functions(self) -> bool:
        """Whether Ruby's backtraces omit C functions that this code calls (vm_backtrace.c, is_internal_location(),
        since 4.0)."""
        return self.memory.types.function("bt_backpatch_loc") and self.path.startswith(b"<internal:")

    @property
    def acts_as_c(self) -> bool:
        """Whether Ruby shows this code as a C function: in 3.4, code with `Primitive.attr! :c_trace`; since 4.0, all
        code of Ruby itself."""
        if self.memory.types.function("bt_backpatch_loc"):
            return self.hides_c_functions
        bit = self.memory.types.constant("BUILTIN_ATTR_C_TRACE")
        return bit is not None and bool(self._get("builtin_attrs") & bit)

    def parent(self):
        address = self._get("parent_iseq")
        return Iseq(self.values, address) if address else None

    def holds(self, pc) -> bool:
        """Whether this code contains PC. If a frame runs code of a JIT, its pc can be old, and can be outside of the
        frame's code."""
        return self.encoded <= pc <= self.encoded + 8 * self.size

    def line(self, pc) -> Optional[int]:
        """The line of the instruction before PC, as calc_lineno() finds it (vm_backtrace.c). None if this code does
        not contain PC."""
        if not self.holds(pc):
            return None
        if pc not in self._lines:
            position = (pc - self.encoded) // 8
            self._lines[pc] = self._line_at(max(position - 1, 0))
        return self._lines[pc]

    def _line_at(self, position) -> int:
        count = self._get("insns_info.size")
        if count == 0:
            return 0
        rank = 1 if count == 1 else self._rank(position)
        if not 1 <= rank <= count:
            raise Unreadable(f"the line table of the iseq {self.address:#x} has no entry {rank}")
        entry = self._get("insns_info.body") + (rank - 1) * self.memory.size("iseq_insn_info_entry")
        return self.memory.get_signed(entry, "iseq_insn_info_entry", "line_no")  # `eval` accepts negative lines

    def _rank(self, position) -> int:
        memory = self.memory
        table = self._get("insns_info.succ_index_table")
        immediate = memory.member("succ_index_table", "imm_part")
        first = immediate.size // 8 * IMMEDIATE_RANKS
        if position < first:
            word = memory.word(table + immediate.offset + position // IMMEDIATE_RANKS * 8)
            return word >> (IMMEDIATE_BITS * (position % IMMEDIATE_RANKS)) & ((1 << IMMEDIATE_BITS) - 1)
        position -= first
        block = table + memory.member("succ_index_table", "succ_part").offset
        block += position // BLOCK * memory.size("succ_dict_block")
        small = position % BLOCK // SMALL_BLOCK
        rank = memory.get(block, "succ_dict_block", "rank")
        if small:
            ranks = memory.get(block, "succ_dict_block", "small_block_ranks")
            rank += ranks >> (SMALL_RANK_BITS * (small - 1)) & ((1 << SMALL_RANK_BITS) - 1)
        bits = memory.word(block + memory.member("succ_dict_block", "bits").offset + 8 * small)
        return rank + (bits & ((2 << position % SMALL_BLOCK) - 1)).bit_count()

    def qualified_label(self, owner) -> bytes:
        """The label that calculate_iseq_label() makes in 3.4 and later. OWNER is the class of the method to which this
        code belongs, or 0."""
        iseq = self
        prefix = b""
        for _ in range(MAX_NESTING):
            if iseq.is_type("TOP", "CLASS", "MAIN"):
                return prefix + iseq.label
            if iseq.is_type("METHOD"):
                return prefix + iseq.values.qualified(owner, iseq.label)
            if iseq.is_type("RESCUE", "ENSURE", "EVAL"):
                iseq = iseq.parent()
            elif iseq.is_type("BLOCK", "PLAIN"):
                levels, iseq = iseq._local_scope()
                prefix += b"block in " if levels <= 1 else b"block (%d levels) in " % levels
            else:
                break
            if iseq is None:
                break
        raise Unreadable(f"the scopes around the iseq {self.address:#x} are inconsistent")

    def _local_scope(self):
        """Returns the number of blocks around this code, up to its method, class or file; and the code of this method,
        class or file."""
        local = self._get("local_iseq")
        levels = 0
        iseq = self
        for _ in range(MAX_NESTING):
            if iseq is None:
                return levels, None
            if iseq.address == local:
                return levels, iseq if iseq is not self else None  # a block is never its own local scope
            if iseq.is_type("BLOCK"):
                levels += 1
            iseq = iseq.parent()
        return levels, None
