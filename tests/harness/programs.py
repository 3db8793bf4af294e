"""
Ruby programs that are made at random, from a seed. Each is a chain of calls: methods with all kinds of arguments, blocks,
lambdas, define_method, eval, pattern matching, refinements. Each frame tells its local variables, as Ruby itself sees them,
just before it makes its call. The innermost waits for ever.

What a frame tells is (path, line of its call) => { name: (text of inspect, kind) }. It asks for its variables in one of two
ways: by `binding`, which moves the environment to the heap, or by their names, which leaves it on the stack.
"""

import random

# What all programs need. T tells; K says which kinds of values are compared by their text.
HEAD = r"""
require File.join(Dir.pwd, "still.rb")
P3 = Struct.new(:x, :y, :z)
P6 = Struct.new(:a, :b, :c, :d, :e, :f)
KW = Struct.new(:first, :last, keyword_init: true)
SUB = Class.new(P3)
ODD = Struct.new(:ok?, :Const)
DATA_CLASS = defined?(Data) && Data.respond_to?(:define) ? Data.define(:left, :right) : Struct.new(:left, :right)
class Thing
  def initialize; @one = 1; @two = "two"; end
  def inspect; %(#<Thing @one=1, @two="two">); end # which rbdump does not call
end
module Refined
  refine String do
    def decorated(first, second = [first], key: :default)
      inner = "#{self}-#{first.class}"
      T.call(__LINE__ + 1, first: first, second: second, key: key, inner: inner)
      yield inner
    end
  end
end
using Refined
KINDS = { Integer => "integer", Float => "float", String => "string", Symbol => "symbol", Array => "array", Hash => "hash",
  Range => "range", NilClass => "nil", TrueClass => "true", FalseClass => "false", Rational => "rational", Complex => "complex" }
K = lambda { |v| KINDS[v.class] || (v.is_a?(Struct) || v.is_a?(DATA_CLASS) ? "struct" : v.is_a?(Class) ? "class" : "object") }
TOLD = Hash.new { |hash, key| hash[key] = [] }
T = lambda do |line, vars|
  of = vars.is_a?(Binding) ? vars.local_variables.map { |n| [n, vars.local_variable_get(n)] } : vars.to_a
  at = caller(1, 1)[0][/\A(.*?):\d+/, 1]
  TOLD[Thread.current] << [at, line, of.map { |n, v| [n.to_s, v.inspect.encode("UTF-8"), K.call(v)] }]
end
def passed(...); taken(...); end
def taken(*args, **opts, &given)
  T.call(__LINE__ + 1, binding)
  given.call(*args)
end
def yields(a, b = a)
  c = [a, b]
  T.call(__LINE__ + 1, a: a, b: b, c: c)
  yield a, c
end
"""

TAIL = r"""
PROGRAMS.each { |name, code| Still.thread(name) { code.call } }
Still.wait_until("all programs are at rest") { Thread.list.count { |t| t[:at_rest] } == PROGRAMS.size }
Still.extra["told"] = TOLD.map { |thread, told| [thread.name, told] }
Still.watch "pop"
Still::GATE.pop
"""

STRINGS = [
    "", "plain", "with \\\"quotes\\\" and \\\\ backslash", "\\n\\r\\t\\f\\v\\b\\a\\e\\0\\x01", "\\#{no} \\#$x \\#@y # alone",
    "h\\u00e9llo \\u65e5\\u672c \\u{1F600}", "\\xff\\xfe broken", "a" * 100, "\\u0080 \\u009f \\u2028\\u2029 \\u00e9",
]  # fmt: skip
SYMBOLS = [":a", ":B", ":a?", ":b!", ":c=", ":[]=", ":+", ':"two words"', ':""', ':"é"', ":@iv", ":$g", ':"9a"', ":<=>", ":!"]
FLOATS = ["0.0", "-0.0", "1.5", "-2.25", "1e15", "1e16", "123456789012345.6", "1e22", "1e-4", "1e-5", "1.0e-10", "0.1",
    "Float::INFINITY", "-Float::INFINITY", "Float::NAN", "Float::MAX", "Float::MIN", "5e-324", "100.0", "3e300"]  # fmt: skip
INTEGERS = ["0", "-1", "42", "2**61", "2**62", "-2**62", "-2**62 - 1", "2**64", "2**70", "-3**100", "7**300", "10**18", "10**30", "10**100", "-2**300"]
COMPLEX = ["(1, -2)", "(0.5, 3)", "(1, Float::INFINITY)", "(-0.0, -Float::INFINITY)", "(1/2r, 3/4r)", "(0, -3/4r)", "(0, -0.0)"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0

    def name(self, prefix="v"):
        self.names += 1
        return f"{prefix}{self.names}"

    def value(self, depth=0):
        """An expression."""
        pick = self.random.choice
        plain = [
            lambda: pick(INTEGERS), lambda: pick(INTEGERS), lambda: str(self.random.randint(-(10**6), 10**6)),
            lambda: pick(FLOATS), lambda: repr(self.random.uniform(-1e6, 1e6)), lambda: f"{self.random.random()}e{self.random.randint(-300, 300)}",
            lambda: f'"{pick(STRINGS)}"', lambda: f'"{pick(STRINGS)}"', lambda: f'"{pick(STRINGS)}".b', lambda: '"caf\\u00e9".encode("ISO-8859-1")',
            lambda: '"ascii".encode("US-ASCII")', lambda: pick(SYMBOLS), lambda: '"made at run time".to_sym', lambda: "nil", lambda: "true",
            lambda: "false", lambda: "3/4r", lambda: "Complex" + pick(COMPLEX), lambda: "(1..3)", lambda: "(1...3)",
            lambda: "(1..)", lambda: "(..4)", lambda: '("a".."c")', lambda: "(nil..nil)", lambda: "Thing", lambda: "Thing.new" if depth < 2 else "Thing",
            lambda: '("x" * 100 + "shared").dup', lambda: '("y" * 60)[3..-1]',
        ]  # fmt: skip
        if depth >= 2 or self.random.random() < 0.6:
            return pick(plain)()
        part = lambda: self.value(depth + 1)  # noqa: E731
        nested = [
            lambda: "[" + ", ".join(part() for _ in range(self.random.randint(0, 6))) + "]",
            lambda: "{" + ", ".join(f"{part()} => {part()}" for _ in range(self.random.randint(0, 4))) + "}",
            lambda: "{" + ", ".join(f"k{i}: {i}" for i in range(self.random.randint(9, 14))) + "}",
            lambda: "{a: 1, b: 2, c: 3}.tap { |h| h.delete(:b) }",
            lambda: "(0...12).map { |i| [i, i * i] }.to_h.tap { |h| h.delete(3) }",
            lambda: f"P3.new({part()}, {part()})", lambda: f"SUB.new({part()})", lambda: f"P6.new({part()}, 2, 3, 4, 5, {part()})",
            lambda: f"KW.new(first: {part()}, last: 2)", lambda: f"ODD.new({part()}, 2)", lambda: f"DATA_CLASS.new(*[1, {part()}])",
            lambda: "Struct.new(:m, :n).new(1, 2)", lambda: "[1].tap { |a| a << a }", lambda: "{}.tap { |h| h[:self] = h }",
            lambda: "P3.new(1).tap { |s| s.y = s }", lambda: "[1, 2, 3, 4, 5].drop(2)",
        ]  # fmt: skip
        return pick(nested)()

    def tell(self, own):
        """A line that tells the variables of the frame, which makes its call in the next line."""
        if self.random.random() < 0.5:
            return "T.call(__LINE__ + 1, binding)"
        return "T.call(__LINE__ + 1, " + ("{" + ", ".join(f"{name}: {name}" for name in own) + "}") + ")"

    def body(self, own, depth, defs):
        """The lines of a frame that has the variables `own`, and calls the next."""
        own, lines = list(own), []
        for _ in range(self.random.randint(1, 4)):
            name = self.name()
            lines.append(f"{name} = {self.value()}")
            own.append(name)
        if self.random.random() < 0.3:
            late = self.name("late")
            lines.append(f"{late} = 1 if $never")
            own.append(late)
        if self.random.random() < 0.3:
            kept = self.name("kept")
            lines.append(f"{kept} = proc {{ {own[0]} }}")
            own.append(kept)
        if self.random.random() < 0.3:
            lines += self.pattern(own)
        if depth == 0:
            return [*lines, "Thread.current[:at_rest] = true", self.tell(own), "Still::GATE.pop"]
        return lines + self.call(own, depth, defs)

    def pattern(self, own):
        a, b, c, d = (self.name(kind) for kind in ("pa", "pb", "pc", "pd"))
        own += [a, b, c, d]
        return [
            f"case [{self.value(2)}, [2, 3, 4], {{name: \"n\", age: 7}}]",
            f"in [{a}, [Integer => {b}, *{c}], {{age: {d}}}]",
            "  nil",
            "end",
        ]

    def call(self, own, depth, defs):
        """Lines that tell, and make a call in the line after that."""
        kind = self.random.choice([
            self.method, self.method, self.block, self.block, self.block, self.made_lambda, self.defined, self.evaled,
            self.forwarded, self.yielded, self.refined, self.rescued,
        ])  # fmt: skip
        return kind(own, depth - 1, defs)

    def method(self, own, depth, defs):
        name, parameters, arguments, names = self.name("method"), [], [], []

        def add(written, given, new):
            parameters.append(written.replace("{}", new, 1))
            arguments.extend([given] if given else [])
            names.append(new)

        for _ in range(self.random.randint(0, 2)):
            add("{}", self.value(1), self.name("req"))
        if self.random.random() < 0.5:
            add("{} = " + self.value(1), self.random.choice([None, self.value(1)]), self.name("opt"))
        if self.random.random() < 0.4:
            add("*{}", self.random.choice([None, "*[1, :two]"]), self.name("rest"))
        if self.random.random() < 0.3 and not parameters:
            add("{}", self.value(1), self.name("post"))
        if self.random.random() < 0.5:
            key = self.name("key")
            add("{}:", f"{key}: {self.value(1)}", key)
        if self.random.random() < 0.5:
            key = self.name("okey")
            add("{}: " + self.value(1), self.random.choice([None, f"{key}: {self.value(1)}"]), key)
        if self.random.random() < 0.4:
            add("**{}", self.random.choice([None, "extra: 1, more: 2"]), self.name("krest"))
        if self.random.random() < 0.3:
            parameters.append("&" + self.name("blk"))
        given = self.random.choice(["", "", " { |unused| unused }"]) if "&" in "".join(parameters) else ""
        defs.append([f"def {name}({', '.join(parameters)})", *self.body(names, depth, defs), "end"])
        return [self.tell(own), f"{name}({', '.join(arguments)}){given}"]

    def block(self, own, depth, defs):
        one, two, three = self.name("bx"), self.name("by"), self.name("bz")
        head, names = self.random.choice([
            (f"[{self.value(1)}].each do |{one}|", [one]),
            (f"[{self.value(1)}].each_with_index do |{one}, {two}|", [one, two]),
            (f"[[1, [2, 3]]].each do |{one}, ({two}, {three})|", [one, two, three]),
            (f"[7].each do |{one}; {two}|", [one, two]),
            (f"1.times do |{one}|", [one]),
            (f"{{a: {self.value(1)}}}.each do |{one}, {two}|", [one, two]),
            (f"[1].map do |{one}, *{two}, k: 3|", [one, two]),
            (f"Thing.new.instance_exec({self.value(1)}) do |{one}|", [one]),
            (f"1.tap do |{one}|", [one]),
        ])  # fmt: skip
        return [self.tell(own), head, *self.body(names, depth, defs), "end"]

    def made_lambda(self, own, depth, defs):
        made, one, two = self.name("lam"), self.name("lx"), self.name("ly")
        lines = [f"{made} = lambda do |{one}, {two} = ({self.value(1)})|", *self.body([one, two], depth, defs), "end"]
        return [*lines, self.tell([*own, made]), f"{made}.call({self.value(1)})"]

    def defined(self, own, depth, defs):
        name, one, two = self.name("defined"), self.name("dx"), self.name("dy")
        lines = [f"Thing.define_method(:{name}) do |{one}, {two}: ({self.value(1)}), &given|", *self.body([one, two], depth, defs), "end"]
        return [*lines, self.tell(own), f"Thing.new.{name}({self.value(1)})"]

    def evaled(self, own, depth, defs):
        lines = self.made_lambda(own, depth, defs)
        lines.pop(), lines.pop()
        made, inner = lines[0].split()[0] if lines[0].startswith("lam") else None, self.name("ev")
        code = f"{inner} = {self.random.randint(1, 99)}; more_{inner} = [{inner}]\\nT.call(__LINE__ + 1, binding)\\n{made}.call(5)"
        return [*lines, self.tell([*own, made]), f'eval("{code}", binding, "(code of {inner})", 1)']

    def forwarded(self, own, depth, defs):
        one = self.name("fx")
        return [self.tell(own), f"passed({self.value(1)}, 2, key: 3) do |{one}|", *self.body([one], depth, defs), "end"]

    def yielded(self, own, depth, defs):
        one, two = self.name("yx"), self.name("yy")
        return [self.tell(own), f"yields({self.value(1)}) do |{one}, {two}|", *self.body([one, two], depth, defs), "end"]

    def refined(self, own, depth, defs):
        one = self.name("rx")
        return [self.tell(own), f'"text".decorated({self.value(1)}) do |{one}|', *self.body([one], depth, defs), "end"]

    def rescued(self, own, depth, defs):
        error = self.name("err")
        return ["begin", "raise ArgumentError, 'no'", f"rescue => {error}", *self.body([*own, error], depth, defs), "end"]


def make(seed, count):
    """A program of `count` threads."""
    programs, text = Maker(seed), [HEAD]
    text.append("PROGRAMS = {}")
    for number in range(count):
        defs = []
        lines = programs.body([], programs.random.randint(2, 6), defs)
        for lines_of in defs:
            text += lines_of
        text += [f'PROGRAMS["program {number}"] = lambda do', *lines, "end"]
    return "\n".join([*text, TAIL])
