"""Reads classes and what objects contain: hash tables, instance variables, and the data of C code.

The code checks which members exist, and so chooses between algorithms; it does not ask for Ruby's version. Comments
name the functions of Ruby, and the functions of rbdump that do the same.
"""

from typing import NamedTuple

from ruby_memory import Unreadable
from ruby_values import IMMEDIATE_MASK, Values

CLASS_SLOT = "RClass_and_rb_classext_t"
CLASSEXT = "rb_classext_struct"
ST_DELETED = (1 << 64) - 1  # the hash of an entry that was deleted (st.c, 2.4 to 4.0)
SHAPE_SHIFT = 32  # shape.h, SHAPE_FLAG_SHIFT, 3.2 to 4.0
SHAPE_OFFSET_MASK = (1 << 19) - 1  # shape.h, SHAPE_ID_OFFSET_MASK, 4.0: other bits of a shape's number are flags
EMBEDDED_IVARS = 3  # ROBJECT_EMBED_LEN_MAX, up to 3.1
AR_PAIRS = 8  # hash.c, RHASH_AR_TABLE_MAX_SIZE, 2.6 to 4.0

# rtypeddata.h, 3.3 to 3.4: TYPED_DATA_EMBEDDED is a bit of typed_flag, which is at most 3; before, it is 1.
TYPED_EMBEDDED, TYPED_FLAG_MAX = 2, 3

MAX_ENTRIES = 20_000  # of a table, with those that were deleted
MAX_IVARS = 1000  # of an object or a class
MAX_SUPERCLASSES = 1000  # with included modules
MAX_ANONYMOUS = 8  # classes without a name, one the superclass of another
MAX_TYPE_NAME = 32


class Typed(NamedTuple):
    """An object whose data belongs to C code (T_DATA)."""

    name: bytes  # of its type, such as b"mutex"
    data: int


class Objects:
    def __init__(self, values: Values, vm):
        """VM: the address of the rb_vm_struct."""
        self.values = values
        self.memory = values.memory
        self.vm = vm
        self._names = {}

    def constant_or_none(self, name):
        return self.memory.types.constant(name)

    def is_object(self, value) -> bool:
        return not value & IMMEDIATE_MASK and value > self.memory.constant("RUBY_Qnil")

    def mains(self):
        """The `main` objects. Since 4.0, each box has its own `main` object (internal/box.h). A layout file does not say where
        in a box this object is."""
        memory, vm = self.memory, self.vm
        if memory.has("rb_vm_struct", "top_self"):
            return [memory.get(vm, "rb_vm_struct", "top_self")]
        if not memory.has("rb_box_struct", "top_self"):
            return []
        boxes = [memory.get(vm, "rb_vm_struct", name) for name in ("root_box", "main_box")]
        return [memory.get(box, "rb_box_struct", "top_self") for box in boxes if box]

    # ---- tables

    def st_entries(self, table):
        """Yields the key and the record of each entry of an st_table (st.c, 2.4 and later), in order."""
        memory = self.memory
        entries = memory.get(table, "st_table", "entries")
        start = memory.get(table, "st_table", "entries_start")
        bound = memory.get(table, "st_table", "entries_bound")
        size = memory.size("st_table_entry")
        if not start <= bound <= 1 << memory.get(table, "st_table", "entry_power"):
            raise Unreadable(f"the table {table:#x} uses more entries than it has")
        for index in range(start, bound):
            if index - start == MAX_ENTRIES:
                raise Unreadable(f"the table {table:#x} has too many entries")
            entry = entries + index * size
            if memory.get(entry, "st_table_entry", "hash") != ST_DELETED:
                yield memory.get(entry, "st_table_entry", "key"), memory.get(entry, "st_table_entry", "record")

    def hash_pairs(self, value):
        """Yields the keys and values of a Hash (hash.c, ar_foreach(), st_foreach())."""
        memory = self.memory
        flags = self.values.flags(value)
        behind = value + memory.size("RHash")  # since 3.3, the table is behind the Hash, in the same slot
        if flags & memory.constant("RHASH_ST_TABLE_FLAG"):
            yield from self.st_entries(memory.get(value, "RHash", "as.st") if memory.has("RHash", "as.st") else behind)
            return
        table = memory.get(value, "RHash", "as.ar") if memory.has("RHash", "as.ar") else behind
        bound = flags & memory.constant("RHASH_AR_TABLE_BOUND_MASK")
        bound >>= memory.constant("RHASH_AR_TABLE_BOUND_SHIFT")
        if not table or not bound:
            return
        if bound > AR_PAIRS:
            raise Unreadable(f"the Hash {value:#x} has a table of {bound} pairs, but {AR_PAIRS} is the maximum")
        pairs = table + memory.member("ar_table_struct", "pairs").offset
        for pair in range(pairs, pairs + 16 * bound, 16):
            key = memory.word(pair)
            if key != memory.constant("RUBY_Qundef"):  # ar_clear_entry()
                yield key, memory.word(pair + 8)

    # ---- classes

    def _extension(self, module):
        """internal/class.h, RCLASS_EXT."""
        memory = self.memory
        if memory.has("RClass", "ptr"):
            return memory.get(module, "RClass", "ptr")
        return module + memory.size("RClass")

    def _class_ivar(self, module, name):
        """The value of a hidden instance variable of a class; 0 if the class does not have this variable."""
        found = (value for key, value in self._class_ivars(module) if key and self.values.id_name(key) == name)
        return next(found, 0)

    def _class_ivars(self, module):
        memory = self.memory
        if memory.has(CLASSEXT, "iv_tbl"):
            table = memory.get(self._extension(module), CLASSEXT, "iv_tbl")
            yield from self.st_entries(table) if table else ()
            return
        if memory.has(CLASS_SLOT, "classext.fields_obj"):
            start = self._fields(memory.get(module, CLASS_SLOT, "classext.fields_obj"))
        elif memory.has(CLASS_SLOT, "classext.iv_ptr"):
            start = memory.get(module, CLASS_SLOT, "classext.iv_ptr")
        else:
            start = memory.get(self._extension(module), CLASSEXT, "iv_ptr")
        if memory.has(CLASSEXT, "shape_id"):
            shape = memory.get(self._extension(module), CLASSEXT, "shape_id")
        else:
            shape = self.values.flags(module) >> SHAPE_SHIFT
        for index, key in enumerate(self._ids_of_shape(shape)):
            yield key, memory.word(start + 8 * index)

    def _fields(self, holder):
        """The address of the instance variables of HOLDER, an imemo_fields; 0 if HOLDER is not an object (internal/imemo.h,
        rb_imemo_fields_ptr(), 4.0)."""
        memory = self.memory
        if not self.is_object(holder):  # the shape then has no fields
            return 0
        if self.values.flags(holder) & memory.constant("ROBJECT_HEAP"):
            return memory.get(holder, "rb_fields", "as.external.ptr")
        return holder + memory.member("rb_fields", "as.embed.fields").offset

    def path(self, module):
        """A pair: the path of a class or module, or None if it has no path; and whether the path is permanent."""
        memory = self.memory
        if memory.has(CLASS_SLOT, "classext.classpath"):
            path = memory.get(module, CLASS_SLOT, "classext.classpath")
            permanent = bool(memory.get(module, CLASS_SLOT, "classext.permanent_classpath"))
        else:
            path = self._class_ivar(module, b"__classpath__")
            permanent = bool(path)
            path = path or self._class_ivar(module, b"__tmp_classpath__")
        if not path or path == memory.constant("RUBY_Qnil"):
            return None, False
        return self.values.string(path), permanent

    def superclass(self, module):
        memory = self.memory
        if memory.has("RClass", "super"):
            return memory.get(module, "RClass", "super")
        return memory.get(module, CLASS_SLOT, "classext.super")

    def is_real_class(self, module) -> bool:
        return self.values.is_a(module, "RUBY_T_CLASS") and not self.values.is_singleton(module)

    def ancestors(self, klass):
        """Yields KLASS and the superclasses of KLASS, but no singleton classes and no included modules."""
        for _ in range(MAX_SUPERCLASSES):
            if not self.is_object(klass):
                return
            if self.is_real_class(klass):
                yield klass
            klass = self.superclass(klass)

    def class_of(self, value) -> int:
        """The class of an object, as Object#class returns it."""
        klass = self.memory.get(value, "RBasic", "klass")
        found = next(self.ancestors(klass), 0) if klass else 0
        if not found:
            raise Unreadable(f"{value:#x} has no class")
        return found

    def class_name(self, module) -> bytes:
        """The name of a class or module, as rbdump shows it. A class without a name is shown as `#<anonymous …>`."""
        if module not in self._names:
            self._names[module] = self._class_name(module, MAX_ANONYMOUS)
        return self._names[module]

    def _class_name(self, module, nesting):
        values = self.values
        if values.is_singleton(module):
            return b"#<singleton class>"
        path, _ = self.path(module)
        if path is not None:
            return path
        if values.is_a(module, "RUBY_T_MODULE"):
            return b"#<anonymous module>"
        above = next(self.ancestors(self.superclass(module)), 0)
        if not above or not nesting:
            return b"#<anonymous class>"
        return b"#<anonymous subclass of " + self._class_name(above, nesting - 1) + b">"

    # ---- instance variables

    def _shapes(self):
        """The address of the array of shapes."""
        memory = self.memory
        if memory.has("rb_vm_struct", "shape_list"):
            return memory.get(self.vm, "rb_vm_struct", "shape_list")
        if memory.has("rb_shape", "next_field_index"):  # since 4.0, the variable is the tree itself
            tree = memory.address("rb_shape_tree")
        else:
            tree = memory.pointer("rb_shape_tree_ptr")
        return memory.get(tree, "rb_shape_tree_t|rb_shape_tree", "shape_list")

    def _ids_of_shape(self, number):
        """The IDs of the instance variables of a shape, in the order of their indexes (shape.c, rb_shape_get_iv_index())."""
        memory = self.memory
        counts = ("next_iv_index", "next_field_index")
        too_complex = self.constant_or_none("SHAPE_ID_FL_TOO_COMPLEX") or 0
        if memory.has("rb_shape", "next_field_index"):
            number, flags = number & SHAPE_OFFSET_MASK, number & ~SHAPE_OFFSET_MASK
        else:
            flags = 0
        shapes, size = self._shapes(), memory.size("rb_shape")
        shape = shapes + number * size
        kind = memory.get(shape, "rb_shape", "type")
        if flags & too_complex or kind == self.constant_or_none("SHAPE_OBJ_TOO_COMPLEX"):
            raise Unreadable("the shape is too complex")
        count = memory.get(shape, "rb_shape", *counts)
        if count > MAX_IVARS:
            raise Unreadable(f"{count} instance variables are not credible")
        ids = [0] * count
        for _ in range(MAX_IVARS):
            index = memory.get(shape, "rb_shape", *counts)
            if not index:
                break
            is_variable = memory.get(shape, "rb_shape", "type") == memory.constant("SHAPE_IVAR")
            if is_variable and index <= count and not ids[index - 1]:
                ids[index - 1] = memory.get(shape, "rb_shape", "edge_name")
            shape = shapes + memory.get(shape, "rb_shape", "parent_id") * size
        return ids

    def _ids_of_class(self, klass):
        """For Ruby 3.1 and earlier: a dict from the index of each instance variable of a class's objects to the
        variable's ID (variable.c, iv_index_tbl)."""
        memory = self.memory
        table = memory.get(self._extension(klass), CLASSEXT, "iv_index_tbl")
        found = {}
        for key, record in self.st_entries(table) if table else ():
            in_struct = memory.has("rb_iv_index_tbl_entry", "index")
            found[memory.get(record, "rb_iv_index_tbl_entry", "index") if in_struct else record] = key
        return found

    def ivars(self, value):
        """Yields the names and values of the instance variables of a T_OBJECT. The names of Ruby's own variables do not
        begin with "@"."""
        memory = self.memory
        flags = self.values.flags(value)
        elsewhere = self.constant_or_none("ROBJECT_HEAP")  # since 4.0
        embedded = not flags & elsewhere if elsewhere is not None else flags & memory.constant("ROBJECT_EMBED")
        if memory.has("RObject", "as.heap.numiv"):
            ids = self._ids_of_class(self.class_of(value))
            count = EMBEDDED_IVARS if embedded else memory.get(value, "RObject", "as.heap.numiv")
            pairs = [(index, ids.get(index, 0)) for index in range(min(count, MAX_IVARS))]
        else:
            pairs = list(enumerate(self._ids_of_shape(flags >> SHAPE_SHIFT)))
        if embedded:
            start = value + memory.member("RObject", "as.ary").offset
        else:
            start = memory.get(value, "RObject", "as.heap.ivptr", "as.heap.fields")
        for index, key in pairs:
            found = memory.word(start + 8 * index)
            name = self.values.id_name(key) if key and found != memory.constant("RUBY_Qundef") else None
            if name is not None:
                yield name, found

    # ---- structs

    def struct_words(self, value):
        """The address of the members of a Struct, and their number."""
        memory = self.memory
        count = self.values.flags(value) & memory.constant("RSTRUCT_EMBED_LEN_MASK")
        count >>= memory.constant("RSTRUCT_EMBED_LEN_SHIFT")
        if count:
            return value + memory.member("RStruct", "as.ary").offset, count
        return memory.get(value, "RStruct", "as.heap.ptr"), memory.get(value, "RStruct", "as.heap.len")

    def struct_names(self, value):
        """The Array with the names of a Struct's members; 0 if it was not found (struct.c, struct_ivar_get())."""
        for klass in self.ancestors(self.class_of(value)):
            found = self._class_ivar(klass, b"__members__")
            if found:
                return found
        return 0

    # ---- data of C code

    def typed(self, value):
        """The data of an object, and the name of the data's type. None if the object has no typed data
        (dumper/ruby/typed.h)."""
        memory = self.memory
        if not self.is_object(value) or not self.values.is_a(value, "RUBY_T_DATA"):
            return None
        kind = memory.get(value, "RTypedData", "type")
        typed_bit = self.constant_or_none("RUBY_TYPED_FL_IS_TYPED_DATA")
        if typed_bit is not None:
            is_typed = self.values.flags(value) & typed_bit
            embedded, kind = kind & 1, kind & ~1
        else:
            flag = memory.get(value, "RTypedData", "typed_flag")
            is_typed, embedded = 0 < flag <= TYPED_FLAG_MAX, flag & TYPED_EMBEDDED
        if not is_typed:
            return None
        at = value + memory.member("RTypedData", "data").offset
        name = memory.read(memory.get(kind, "rb_data_type_struct", "wrap_struct_name"), MAX_TYPE_NAME)
        return Typed(name.partition(b"\0")[0], at if embedded else memory.word(at))
