"""Reads Ruby objects: strings, arrays, names of symbols, paths of classes."""

from ruby_memory import Memory, Unreadable

# Bits for which there are no enumerators. A VALUE is an object if none of its low 3 bits is set and it is not a special
# constant (special_consts.h). The kind of an imemo is in the 4 bits from the first user flag on (internal/imemo.h,
# IMEMO_MASK, 2.7 to 3.4).
IMMEDIATE_MASK = 7
IMEMO_MASK = 0x0F


class Values:
    def __init__(self, memory: Memory):
        self.memory = memory

    def flags(self, value) -> int:
        if value & IMMEDIATE_MASK or value <= self.memory.constant("RUBY_Qnil"):
            raise Unreadable(f"{value:#x} is not an object")
        return self.memory.get(value, "RBasic", "flags")

    def type_of(self, value) -> int:
        return self.flags(value) & self.memory.constant("RUBY_T_MASK")

    def is_a(self, value, *types) -> bool:
        return self.type_of(value) in [self.memory.constant(name) for name in types]

    def imemo_kind(self, value) -> int:
        flags = self.flags(value)
        if flags & self.memory.constant("RUBY_T_MASK") != self.memory.constant("RUBY_T_IMEMO"):
            raise Unreadable(f"{value:#x} is not an internal object of the VM")
        return (flags >> self.memory.constant("RUBY_FL_USHIFT")) & IMEMO_MASK

    def _embedded_length(self, flags, kind) -> int:
        memory = self.memory
        return (flags & memory.constant(kind + "_EMBED_LEN_MASK")) >> memory.constant(kind + "_EMBED_LEN_SHIFT")

    def string(self, value) -> bytes:
        return self.memory.read(*self.string_place(value))

    def string_place(self, value):
        """The address of the bytes of a String, and the number of the bytes."""
        memory = self.memory
        flags = self.flags(value)
        if flags & memory.constant("RUBY_T_MASK") != memory.constant("RUBY_T_STRING"):
            raise Unreadable(f"{value:#x} is not a String")
        embedded = not flags & memory.constant("RSTRING_NOEMBED")
        if memory.has("RString", "len"):
            length = memory.get(value, "RString", "len")
        elif not embedded:
            length = memory.get(value, "RString", "as.heap.len")
        elif memory.has("RString", "as.embed.len"):
            length = memory.get(value, "RString", "as.embed.len")
        else:
            length = self._embedded_length(flags, "RSTRING")
        if embedded:
            start = value + memory.member("RString", "as.embed.ary", "as.ary").offset
        else:
            start = memory.get(value, "RString", "as.heap.ptr")
        return start, length

    def array(self, value):
        """The address of the elements of an Array, and the number of the elements."""
        memory = self.memory
        flags = self.flags(value)
        if flags & memory.constant("RUBY_T_MASK") != memory.constant("RUBY_T_ARRAY"):
            raise Unreadable(f"{value:#x} is not an Array")
        if flags & memory.constant("RARRAY_EMBED_FLAG"):
            return value + memory.member("RArray", "as.ary").offset, self._embedded_length(flags, "RARRAY")
        return memory.get(value, "RArray", "as.heap.ptr"), memory.get(value, "RArray", "as.heap.len")

    def element(self, value, index) -> int:
        start, length = self.array(value)
        if index >= length:
            raise Unreadable(f"the Array {value:#x} has only {length} elements")
        return self.memory.word(start + 8 * index)

    def id_name(self, number, symbols=None):
        """The name of an ID. `ids` of an rb_symbols_t is an Array of Arrays [String, Symbol, String, Symbol, …] (symbol.c,
        get_id_serial_entry()). SYMBOLS: the address of the rb_symbols_t; None: the address of ruby_global_symbols."""
        memory = self.memory
        serial = number
        if number > memory.constant("tLAST_OP_ID"):
            serial = number >> memory.constant("RUBY_ID_SCOPE_SHIFT")
        unit = memory.constant("ID_ENTRY_UNIT")
        symbols = symbols or memory.types.address("ruby_global_symbols")
        if symbols is None:
            raise Unreadable("gdb did not find the symbol ruby_global_symbols")
        names = self.element(memory.get(symbols, "rb_symbols_t|symbols", "ids"), serial // unit)
        name = self.element(names, 2 * (serial % unit))
        return None if name == memory.constant("RUBY_Qnil") else self.string(name)

    def permanent_name(self, module):
        """The path of a class or module. None if the path can still change (see classname() in variable.c, 3.3 and
        later)."""
        memory = self.memory
        path = memory.get(module, "RClass_and_rb_classext_t", "classext.classpath")
        if not path or not memory.get(module, "RClass_and_rb_classext_t", "classext.permanent_classpath"):
            return None
        return None if path == memory.constant("RUBY_Qnil") else self.string(path)

    def is_singleton(self, module) -> bool:
        memory = self.memory
        return self.is_a(module, "RUBY_T_CLASS") and bool(self.flags(module) & memory.constant("RUBY_FL_SINGLETON"))

    def qualified(self, owner, name):
        """`Owner#name` or `Owner.name`, as rb_gen_method_name() makes it (vm_backtrace.c, 3.4). Only NAME if OWNER is
        0, or has no permanent path."""
        memory = self.memory
        if not owner or name is None or not self.is_a(owner, "RUBY_T_CLASS", "RUBY_T_MODULE"):
            return name
        if not self.is_singleton(owner):
            path = self.permanent_name(owner)
            return name if path is None else path + b"#" + name
        attached = memory.get(owner, "RClass_and_rb_classext_t", "classext.as.singleton_class.attached_object")
        if attached & IMMEDIATE_MASK or not self.is_a(attached, "RUBY_T_CLASS", "RUBY_T_MODULE"):
            return name
        path = self.permanent_name(attached)
        return name if path is None else path + b"." + name
