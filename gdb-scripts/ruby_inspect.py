"""Shows a VALUE as Ruby's own `inspect` shows it, but does not call `inspect`. dumper/ruby/inspect.h does the same.

Large values are shortened: "…" stands for the omitted part.
"""

import math
import re
import struct

from ruby_memory import Unreadable
from ruby_objects import Objects
from ruby_text import escaped, printable

# The same limits as in dumper/ruby/inspect.h.
MAX_TEXT = 1000  # characters of a value; a part that begins before this limit is finished
MAX_STRING = 200  # bytes of a String
MAX_NAME = 200
MAX_ENTRIES = 24  # of an Array, Hash, Struct or object
MAX_DEPTH = 4
MAX_IVARS_DEPTH = 2  # deeper objects are shown without instance variables

UNREADABLE = "(unreadable)"

# special_consts.h, 2.7 to 4.0: the lowest bit of an Integer is set; the two lowest bits of a Float are 2.
QTRUE = 0x14
SYMBOL_MASK = 0xFF

# internal/bignum.h, 2.1 to 4.0: user flags of a Bignum. The sign's flag is set in a number that is not negative. The length
# has 3 bits up to 3.4, where the other bits are not used.
BIGNUM_SIGN, BIGNUM_EMBED, EMBED_LENGTH_SHIFT, EMBED_LENGTH_MASK = 2, 4, 3, 0x1FF
MAX_BIGITS = 64  # of 32 bits

# encindex.h and encoding.h, 2.2 to 4.0
ENCODING_MASK, ENCODING_UTF_8 = 127, 1

LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\f": "f", "\v": "v", "\b": "b", "\a": "a", "\x1b": "e"}
WORD = r"(?:[^\W\d]\w*)"
OPERATORS = r"\+|-|\*|/|%|\*\*|==|!=|===|=~|!~|!|~|<|<=|>|>=|<=>|<<|>>|&|\||\^|\[\]|\[\]=|\+@|-@|`"
PLAIN_SYMBOL = re.compile(rf"(?:@@?{WORD}|{WORD}[?!=]?|\$(?:{WORD}|\d+|-\w|[~*$?!@/\\;,.=:<>\"&`'+])|{OPERATORS})\Z")
PLAIN_VARIABLE = re.compile(rf"{WORD}\Z")
PLAIN_KEY = re.compile(rf"{WORD}[?!]?\Z")
# range.c, range_initialize, 2.7 to 4.0: a Range is a struct of its two ends and a flag: the last end is excluded.
EXCLUDES_FLAG = 19
RANGE_MEMBERS = 3


def flonum(value) -> float:
    """The number in a Float that is not an object (internal/numeric.h, rb_float_flonum_value)."""
    if value == 0x8000000000000002:
        return 0.0
    bits = (value & ~3) | (2 - (value >> 63))
    return struct.unpack("<d", (bits >> 3 | (bits << 61) & ((1 << 64) - 1)).to_bytes(8, "little"))[0]


def float_text(number) -> str:
    """A Float as Ruby writes it (numeric.c, flo_to_s)."""
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1, number) < 0 else ""
    if math.isinf(number):
        return sign + "Infinity"
    if number == 0:
        return sign + "0.0"
    # repr() gives the fewest digits that tell the number from all others, in one of two forms.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    point = len(whole) - leading + int(exponent or 0)
    digits = digits.rstrip("0") or "0"
    if 0 < point < max(16, len(digits)):
        return f"{sign}{digits[:point]}{'0' * (point - len(digits))}.{digits[point:] or '0'}"
    if -4 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}e{point - 1:+03d}"


def is_printed(c) -> bool:
    """Whether a character is shown without an escape sequence. Also true for characters that Unicode has not assigned."""
    return c.isprintable() if c < "\x80" else not ("\x80" <= c <= "\x9f" or c in "\u2028\u2029")


def quoted(raw, utf8) -> str:
    """Bytes of a String as Ruby's String#inspect writes them."""
    shown = []
    characters = raw.decode("utf-8", "surrogateescape") if utf8 else raw.decode("latin-1")
    for at, c in enumerate(characters):
        if c in LETTERS:
            shown.append("\\" + LETTERS[c])
        elif c in '"\\' or (c == "#" and characters[at + 1 : at + 2] in ("{", "$", "@")):
            shown.append("\\" + c)
        elif "\udc80" <= c <= "\udcff":
            shown.append(f"\\x{ord(c) - 0xDC00:02X}")
        elif is_printed(c) and (utf8 or c < "\x7f"):
            shown.append(c)
        elif not utf8:
            shown.append(f"\\x{ord(c):02X}")
        else:
            shown.append(f"\\u{ord(c):04X}" if ord(c) < 0x10000 else f"\\u{{{ord(c):X}}}")
    return '"' + "".join(shown) + '"'


def whole_characters(raw) -> bytes:
    """RAW without an incomplete character at its end."""
    for back in range(1, 4):
        if back <= len(raw) and raw[-back] >= 0xC0:
            length = 2 if raw[-back] < 0xE0 else 3 if raw[-back] < 0xF0 else 4
            return raw[:-back] if back < length else raw
    return raw


class Inspect:
    """Shows values, one after another. If a part of a value cannot be read, UNREADABLE is shown instead."""

    def __init__(self, objects: Objects):
        self.objects = objects
        self.values = objects.values
        self.memory = objects.memory
        self._around = []  # the objects that contain the object that is shown
        self._length = 0

    def value(self, value) -> str:
        self._around.clear()
        self._length = 0
        return escaped(self._part(value))

    def _part(self, value):
        if self._length >= MAX_TEXT:
            return "…"
        try:
            shown = self._immediate(value)
            if shown is None:
                shown = self._object(value)
        except Unreadable:
            shown = UNREADABLE
        return self._count(shown)

    def _count(self, shown):
        # The parts of a container were counted before. To count the container again only makes the text shorter.
        self._length += len(shown) if not self._around or len(shown) < MAX_NAME else 0
        return shown

    def _immediate(self, value):
        """The text of a value that is not an object; None for an object."""
        if value & 1:
            return str((value - (1 << 64) if value >> 63 else value) >> 1)
        if value == 0:
            return "false"
        if value == self.memory.constant("RUBY_Qnil"):
            return "nil"
        if self.objects.is_object(value):
            return None
        if value == QTRUE:
            return "true"
        if value & SYMBOL_MASK == self.memory.constant("RUBY_SYMBOL_FLAG"):
            return self._symbol(value)
        if value & 3 == 2:
            return float_text(flonum(value))
        return UNREADABLE

    def _object(self, value):
        memory = self.memory
        kind = self.values.type_of(value)
        if value in self.objects.mains():
            return "main"
        hidden = [self.objects.constant_or_none(name) for name in ("RUBY_T_IMEMO", "RUBY_T_ICLASS", "RUBY_T_NODE")]
        if not kind or kind in hidden or not memory.get(value, "RBasic", "klass"):
            return UNREADABLE
        for names, show in self._plain_kinds():
            if kind in [self.objects.constant_or_none(name) for name in names]:
                return show(value)
        return self._container(value, kind)

    def _plain_kinds(self):
        return (
            (("RUBY_T_STRING",), self._string),
            (("RUBY_T_SYMBOL",), self._symbol),
            (("RUBY_T_FLOAT",), self._float),
            (("RUBY_T_BIGNUM",), self._bignum),
            (("RUBY_T_CLASS", "RUBY_T_MODULE"), self._class),
            (("RUBY_T_REGEXP",), self._regexp),
        )

    def _container(self, value, kind):
        """The text of an object that contains other objects. These are shown only down to MAX_DEPTH. An object is never
        shown again within itself."""
        shows = {
            "RUBY_T_ARRAY": (self._array, lambda _: "[...]"),
            "RUBY_T_HASH": (self._hash, lambda _: "{...}"),
            "RUBY_T_STRUCT": (self._struct, self._struct_again),
            "RUBY_T_RATIONAL": (self._rational, lambda _: UNREADABLE),  # no Rational or Complex contains itself
            "RUBY_T_COMPLEX": (self._complex, lambda _: UNREADABLE),
        }
        names = [name for name in shows if self.objects.constant_or_none(name) == kind]
        show, show_again = shows[names[0]] if names else (self._plain_object, lambda _: "#<...>")
        if value in self._around:
            return show_again(value)
        if len(self._around) == MAX_DEPTH:
            return "…"
        self._around.append(value)
        try:
            return show(value)
        finally:
            self._around.pop()

    def _joined(self, parts):
        """The texts of the parts, up to MAX_ENTRIES and MAX_TEXT. PARTS yields a function for each part, which returns the
        part's text."""
        shown = []
        try:
            for part in parts:
                if len(shown) == MAX_ENTRIES or self._length >= MAX_TEXT:
                    shown.append("…")
                    break
                shown.append(part())
        except Unreadable:
            shown.append(UNREADABLE)
        return ", ".join(shown)

    # ---- kinds of objects

    def _string(self, value):
        shift = self.objects.constant_or_none("RUBY_ENCODING_SHIFT")
        utf8 = shift is None or self.values.flags(value) >> shift & ENCODING_MASK == ENCODING_UTF_8
        start, length = self.values.string_place(value)
        raw = self.memory.read(start, min(length, MAX_STRING))
        if length <= MAX_STRING:
            return quoted(raw, utf8)
        return quoted(whole_characters(raw) if utf8 else raw, utf8) + f"… ({length} bytes)"

    def symbol_name(self, value):
        """The name of a Symbol; None if VALUE is not a Symbol."""
        if value & SYMBOL_MASK == self.memory.constant("RUBY_SYMBOL_FLAG"):
            return self.values.id_name(value >> self.memory.constant("RUBY_SPECIAL_SHIFT"))
        if self.objects.is_object(value) and self.values.is_a(value, "RUBY_T_SYMBOL"):
            return self.values.string(self.memory.get(value, "RSymbol", "fstr"))
        return None

    def _name(self, raw, plain):
        cut = "…" if len(raw) > MAX_NAME else ""
        raw = whole_characters(raw[:MAX_NAME]) if cut else raw
        name = raw.decode("utf-8", "surrogateescape")
        return (name if plain.match(name) else quoted(raw, True)) + cut

    def _symbol(self, value):
        name = self.symbol_name(value)
        if name is None:
            raise Unreadable(f"the Symbol {value:#x} has no name")
        return ":" + self._name(name, PLAIN_SYMBOL)

    def _float(self, value):
        # internal/numeric.h, struct RFloat: a RBasic, and the number.
        raw = self.memory.read(value + self.memory.size("RBasic"), 8)
        return float_text(struct.unpack("<d", raw)[0])

    def _bignum(self, value):
        memory = self.memory
        flags = self.values.flags(value) >> memory.constant("RUBY_FL_USHIFT")
        if flags & BIGNUM_EMBED:
            # A union of the digits and of a struct that begins with a length.
            count = flags >> EMBED_LENGTH_SHIFT & EMBED_LENGTH_MASK
            start = value + memory.member("RBignum", "as.heap.len").offset
        else:
            count = memory.get(value, "RBignum", "as.heap.len")
            start = memory.get(value, "RBignum", "as.heap.digits")
        if count > MAX_BIGITS:
            return f"(Integer of {32 * count} bits)"
        number = int.from_bytes(memory.read(start, 4 * count), "little")
        return str(number if flags & BIGNUM_SIGN else -number)

    def _class(self, value):
        return printable(self.objects.class_name(value)[:MAX_NAME])

    def _rational(self, value):
        num, den = (self.memory.get(value, "RRational", name) for name in ("num", "den"))
        return f"({self._part(num)}/{self._part(den)})"

    def _complex(self, value):
        real, imaginary = (self._part(self.memory.get(value, "RComplex", name)) for name in ("real", "imag"))
        # A Rational has its sign inside of its parentheses.
        sign = "-" if imaginary.startswith(("-", "(-")) else "+"
        star = "" if imaginary[-1:].isdigit() else "*"
        return f"({real}{sign}{imaginary.replace('-', '', 1) if sign == '-' else imaginary}{star}i)"

    def _regexp(self, value):
        return f"#<Regexp {self._string(self.memory.get(value, 'RRegexp', 'src'))}>"

    def _array(self, value):
        start, length = self.values.array(value)
        places = range(start, start + 8 * min(length, MAX_ENTRIES + 1), 8)
        return f"[{self._joined(lambda at=at: self._part(self.memory.word(at)) for at in places)}]"

    def _hash(self, value):
        pairs = self.objects.hash_pairs(value)
        return f"{{{self._joined(lambda pair=pair: self._pair(*pair) for pair in pairs)}}}"

    def _pair(self, key, value):
        # hash.c, inspect_i: since 3.4, which also has is_rescue_or_ensure_frame(), a colon follows a Symbol.
        colons = self.memory.types.function("is_rescue_or_ensure_frame")
        name = self.symbol_name(key) if colons else None
        if name is not None:
            return f"{self._name(name, PLAIN_KEY)}: {self._part(value)}"
        return f"{self._part(key)}{' => ' if colons else '=>'}{self._part(value)}"

    def _struct_title(self, value):
        """The beginning of the text of a Struct. It contains the path of the Struct's class if this path is permanent."""
        objects = self.objects
        above = [objects.path(klass)[0] for klass in objects.ancestors(objects.class_of(value))]
        path, permanent = objects.path(objects.class_of(value))
        # If a class Data inherits from Struct, it is a class of the program, not Ruby's own Data.
        is_data = b"Data" in above and b"Struct" not in above
        return ("#<data " if is_data else "#<struct ") + (printable(path[:MAX_NAME]) if permanent else "")

    def _struct_again(self, value):
        return self._struct_title(value) + ":...>"

    def _struct(self, value):
        objects, memory = self.objects, self.memory
        start, count = objects.struct_words(value)
        above = (objects.path(klass)[0] for klass in objects.ancestors(objects.class_of(value)))
        if count in (2, RANGE_MEMBERS) and b"Range" in above:
            members = [memory.word(start + 8 * index) for index in range(count)]
            if count == 2:  # at head: internal/range.h, RANGE_FL_EXCL
                members.append(self.values.flags(value) >> memory.constant("RUBY_FL_USHIFT") >> EXCLUDES_FLAG & 1)
            return self._range(*members)
        names = objects.struct_names(value)
        places = range(min(count, MAX_ENTRIES + 1))
        shown = self._joined(lambda at=at: self._struct_member(names, at, memory.word(start + 8 * at)) for at in places)
        title = self._struct_title(value)
        return f"{title}{'' if title.endswith(' ') else ' '}{shown}>"

    def _struct_member(self, names, index, value):
        name = self.symbol_name(self.values.element(names, index)) if names else None
        if name is None:
            shown = UNREADABLE
        else:
            # With a colon only if it cannot be the name of a variable or a constant (struct.c, inspect_struct()).
            plain = PLAIN_VARIABLE.match(name.decode("utf-8", "surrogateescape"))
            shown = self._name(name, PLAIN_VARIABLE) if plain else ":" + self._name(name, PLAIN_SYMBOL)
        return f"{shown}={self._part(value)}"

    def _range(self, first, last, excludes):
        nil = self.memory.constant("RUBY_Qnil")
        dots = "..." if excludes & ~nil else ".."
        begin = "" if first == nil and last != nil else self._part(first)
        return begin + dots + ("" if last == nil and first != nil else self._part(last))

    def _plain_object(self, value):
        name = printable(self.objects.class_name(self.objects.class_of(value))[:MAX_NAME])
        if not self.values.is_a(value, "RUBY_T_OBJECT"):
            return f"#<{name}>"
        if len(self._around) > MAX_IVARS_DEPTH:
            return f"#<{name} …>"
        variables = list(self.objects.ivars(value))
        message = next((self._message(item) for key, item in variables if key == b"mesg"), "")
        shown = self._joined(
            lambda key=key, item=item: f"{printable(key[:MAX_NAME])}={self._part(item)}" for key, item in variables if key.startswith(b"@")
        )
        return f"#<{name}{message} {shown}>" if shown else f"#<{name}{message}>"

    def _message(self, value):
        """The message of an exception, which is an instance variable of Ruby's own (error.c, exc_inspect, v1_9_3_0 to v4_0_5).
        It is quoted if it has characters that cannot be printed, or is shortened."""
        shown = self._part(value)
        if not shown.startswith('"') or shown == '""':
            return ""
        if not re.fullmatch(r'"(?:[^\\]|\\["\\#])*"', shown):
            return f":{shown}"
        return ": " + re.sub(r"\\(.)", r"\1", shown[1:-1])
