# Objects of less usual forms: changed, shared, or extended after they were made. A Ruby that lacks a class or a library skips
# it. Then the extension tells all objects.
require ARGV[0]
KEPT = []
def keep(*objects)
  KEPT.concat(objects)
end
FrozenError = RuntimeError unless defined?(FrozenError)
def try
  yield
rescue NameError, LoadError, ArgumentError, NoMethodError, TypeError, FrozenError, SyntaxError => error
  $stderr.puts error.message
end
try { require "set" }
try { require "stringio" }
try { require "strscan" }
try { require "zlib" }
try { require "weakref" }
try { require "monitor" }
try { require "delegate" }
try { require "ostruct" }
try { require "bigdecimal" }
try { require "date" }
try { require "socket" }
try { require "digest" }
try { require "objspace" }
def text(i)
  "text number #{i} that is too long to be embedded in a slot of forty bytes"
end
5.times do |i|
  keep(Hash.new { |h, k| h[k] = text(i) }, Hash.new(text(1)))
  h = Hash.new { |hash, k| hash[k] = text(k) }
  100.times { |k| h[k] }
  keep(h)
  30.times { |k| h.delete(k) }
  big = {}
  5000.times { |k| big[text(k)] = text(-k) }
  4000.times { |k| big.delete(text(k)) }
  keep(big)
  big2 = big.dup
  big2.rehash
  keep(big2)
  ident = {}.compare_by_identity
  50.times { |k| ident[text(k)] = [k.to_s] }
  keep(ident)
  small = { a: text(1), b: text(2), "c" => text(3) }
  small.delete(:b)
  keep(small)
  all = { a: text(1) }
  all.delete(:a)
  keep(all)
  shifted = {}
  20.times { |k| shifted[k] = text(k) }
  15.times { shifted.shift }
  keep(shifted)
  cleared = { 1 => text(2) }
  cleared.clear
  keep(cleared)
  smallident = {}.compare_by_identity
  smallident[text(1)] = text(2)
  keep(smallident)
  h = { 1 => text(1) }
  h.default_proc = proc { |a, b| text(i) }
  keep(h)
  klass = Class.new(Hash) { attr_accessor :more }
  sub = klass.new
  sub.more = text(1)
  sub[1] = text(2)
  keep(sub)
  a = Array.new(100) { |k| text(k) }
  keep(a, a[10, 50], a.dup.freeze, a.dup.shift(3), a.dup.tap { |x| x.shift(20) }, a[90..-1], a.first(2), a.last(40))
  q = Array.new(100) { |k| text(k) }
  q.shift
  q.shift
  q.push(text(3))
  keep(q)
  sub = Class.new(Array) { attr_accessor :more }.new([text(1)])
  sub.more = text(2)
  keep(sub)
end
S5 = Struct.new(:a, :b, :c, :d, :e)
keep(S5.new(text(1), text(2), text(3), text(4), text(5)))
try { K3 = Struct.new(:a, :b, :c, keyword_init: true); keep(K3.new(a: text(1), b: text(2), c: text(3))) }
try { D4 = Data.define(:a, :b, :c, :d); keep(D4.new(text(1), text(2), text(3), text(4))) }
try { D0 = Data.define; keep(D0.new) }
S0 = Struct.new(:a)
s = S0.new(text(1))
s.instance_variable_set(:@more, text(2))
keep(s)
s5 = S5.new(text(1), text(2))
3.times { |i| s5.instance_variable_set("@more#{i}", text(2)) }
keep(s5)
class Wide; end
w = Wide.new
150.times { |i| w.instance_variable_set("@w#{i}", text(i)) }
keep(w)
class Wide2; end
30.times do |j|
  w = Wide2.new
  12.times { |i| w.instance_variable_set("@w#{j}_#{i}", text(i)) }
  keep(w)
end
w = Wide.new
10.times { |i| w.instance_variable_set("@w#{i}", text(i)) }
5.times { |i| w.remove_instance_variable("@w#{i}") }
keep(w)
w = Wide.new
w.instance_variable_set(:@frozen, text(1))
keep(w.freeze)
w = Wide.new
w.instance_variable_set(:@frozen, text(1))
w.object_id
keep(w)
x = text(4)
x.object_id
x.instance_variable_set(:@x, text(5))
keep(x)
keep(*[1, 40].map { |n| a = Array.new(n) { |i| text(i) }; a.object_id; a })
[proc { 1 }, Class.new, Module.new, /a/.dup, Object.new.method(:to_s), Thread.current, Mutex.new, binding, Time.now,
 Exception.new("x"), (1.."b".ord).each, Fiber.new {}, Queue.new, Random.new(3), $stdout.dup, Struct.new(:z)].each do |o|
  try { o.instance_variable_set(:@generic, text(7)); o.instance_variable_set(:@generic2, text(8)) }
  keep(o)
end
[2**100, 1.5e300, :"dynamic #{1}", 1r, 1i].each { |o| try { o.instance_variable_set(:@generic, text(7)) } ; keep(o) }
o = Object.new
class << o
  attr_accessor :z
  def self.of; 1; end
  class << self
    def deep; 1; end
  end
  @single = "x"
  CONST = [1]
end
keep(o, o.singleton_class, o.singleton_class.singleton_class)
module Refine
  refine String do
    def shout; upcase; end
    def upcase; super + "!"; end
  end
  refine Integer do
    def twice; self * 2; end
  end
end
using Refine
"a".shout
"a".upcase
try { 3.twice }
module Pre
  def call; super; end
end
module Inc
  def inc; 1; end
  CONST_OF_INC = "x"
end
class WithPre
  def call; 1; end
  prepend Pre
  include Inc
  include Comparable
  def <=>(other); 0; end
end
class WithPre2 < WithPre
  prepend Pre
  def call; super; end
end
WithPre.new.call
WithPre2.new.call
try { keep(WithPre.new.clamp(WithPre.new, WithPre.new)) }
module Inc; prepend Pre; end
module ModPre; prepend Inc; end
class Uses; include ModPre; end
Uses.new.inc
class Sup
  def a; 1; end
  alias b a
  alias_method :c, :a
  define_method(:d) { 1 }
  private :a
  attr_reader :r
  attr_writer :wr
  def kw(a: text(1), b: "x", c: [1], d: nil, e: :sym); a; end
  def opt(a = text(1), *r, **k, &blk); blk; end
  @@cv = "class variable"
  def cv; @@cv; end
  autoload :Nothing, "/nonexistent/nothing.rb"

  def method_missing(n, *a); n; end
  def respond_to_missing?(*); true; end
  def each; yield 1; end
end
class Sub < Sup
  public :a
  def cv; @@cv; end
  def b; super; end
  undef_method :c
  remove_method :b
end
s = Sub.new
s.a
s.d
s.cv
s.kw
s.opt(&:to_s)
s.opt { 1 }
s.anything
s.b
class Sup; def a; 2; end; end
s.a
begin; raise text(1); rescue => e; keep(e); end
begin; begin; raise "a"; rescue; raise "b"; end; rescue => e; keep(e, e.backtrace, e.backtrace_locations); end
begin; nil.foo; rescue => e; keep(e); end
begin; 1.foo(text(1)); rescue => e; keep(e); end
begin; {}.fetch(text(3)); rescue => e; keep(e); end
catch(:x) { throw :x, text(1) }
m = ObjectSpace::WeakMap.new
keys = Array.new(20) { |i| text(i) }
keys.each { |k| m[k] = text(1) }
keep(m, keys)
try { wk = ObjectSpace::WeakKeyMap.new; keys.each { |k| wk[k] = text(2) }; keep(wk) }
try { keep(WeakRef.new(keys[0])) }
try { keep(Set.new((1..50).map { |i| text(i) }), Set[1, text(1)]) }
try { keep(Ractor.make_shareable([text(1), { a: text(2) }])) }
keep((1..Float::INFINITY).lazy.map { |x| x * 2 }.select(&:even?), [1, 2].each_slice(2), [1].each_with_index.with_object([]))
e = [text(1), text(2)].each
e.next
keep(e)
e = Enumerator.new { |y| local = text(10); y << local; y << 2 }
e.next
keep(e)
try { keep(e + [1].each) }
try { keep(Enumerator.produce(1) { |x| x + 1 }, [1].each.size, 1.step(10, 3), 1.0.step(2.0, 0.1)) }
try { keep(Enumerator::Product.new([text(1)], [2])) }
f = Fiber.new { |a| local = text(11); b = Fiber.yield(local); b }
f.resume(text(12))
keep(f, Fiber.new { 1 })
Thread.current[:fiber_local] = text(13)
Thread.current.thread_variable_set(:thread_local, text(14))
try { Fiber[:storage] = text(15) }
q = Queue.new
3.times { |i| q << text(i) }
sq = SizedQueue.new(4)
2.times { |i| sq << text(i) }
keep(q, sq, ConditionVariable.new, Mutex.new.tap(&:lock))
try { keep(Monitor.new) }
t = Thread.new(text(16)) { |x| local = text(17); Thread.stop; local }
t[:x] = text(18)
try { t.name = "a thread" }
Thread.pass until t.stop?
keep(t)
dead = Thread.new { text(19) }
dead.join
keep(dead)
dead = Thread.new { Thread.current.report_on_exception = false; raise "x" }
begin; dead.join; rescue; end
keep(dead)
b = binding
b.local_variable_set(:dynamic, text(20))
keep(b, eval("binding", b), proc { |x| proc { x + e.to_s } }.call(text(1)), lambda(&:to_s), :upcase.to_proc, method(:text).to_proc)
keep(method(:text), method(:text).unbind, Sub.instance_method(:a), s.method(:anything), method(:text).to_proc)
try { keep(method(:text) >> method(:p), method(:text).curry) }
try { keep(Time.at(0, in: "+09:00")) }
keep(Time.now, Time.now.utc, Rational(2**70, 3), Complex(1.5, 2**80), Complex(1r, 2))
keep(/(?<name>a)/.match("a"), /a/i, Regexp.union("a", "b"), "abc".match(/b/), $~)
"xyz".gsub(/y/) { keep($~) }
keep(Dir.new("."), Random.new(1), Random.new(2**200), $stdin, $stderr, ARGF, ENV, Process.clock_gettime(1), Process::Status) 
try { keep(StringIO.new(text(21)), StringScanner.new(text(22)).tap { |ss| ss.scan(/t(e)/) }) }
try { z = Zlib::Deflate.new; z << text(1); keep(z, Zlib::Inflate.new) }
try { keep(OpenStruct.new(a: text(1)), SimpleDelegator.new(text(1))) }
try { keep(BigDecimal("1.5"), Date.today, DateTime.now) }
try { keep(*Socket.pair(:UNIX, :STREAM), Addrinfo.tcp("127.0.0.1", 80)) }
try { keep(Digest::SHA256.new) }
$hooked = text(23)
trace_var(:$hooked) { |x| text(1) }
alias $aliased $hooked
trap("USR2") { text(24) }
tp = TracePoint.new(:raise) { |x| text(25) }
tp.enable
keep(tp)
tp2 = TracePoint.new(:call) { |x| }
try { tp2.enable(target: method(:text)) }
keep(tp2)
ObjectSpace.define_finalizer(KEPT[0], proc { text(26) })
at_exit { text(27) }
try { keep(RubyVM::InstructionSequence.compile("def a(x, y: [1]); z = x; [1,2].each { |i| z += i }; case x when 1 then 2 when :a, 'b' then 3 end; \"a\#{x}\"; /a\#{x}/o; begin; a; rescue; ensure; b; end; end; A::B; A ||= 1; @@a; BEGIN { 1 }; x = 1..2; {a: 1, 'b' => [1, 'c']}; 2**70; 1r; 2i; 1.5")) }
try { keep(eval("RubyVM::AbstractSyntaxTree.parse('a = 1; b(a)')")) }
try { keep(eval("case [1, [2]]
in [Integer => a, [b]] then [a, b]
end
")) }
try { eval("def once; /a\#{1}/o; end; once; def shape; case 1 when 1 then 2 when 2 then :a when 'x' then nil when 1.5 then 3 end; end; shape; def endless(*, **, &) = text(*, **, &) rescue nil; def flip(x) = (x == 1)..(x == 2) ? 1 : 2; flip(1)") }
keep(1..2, (text(1)..text(2)), 1.step(5, 2))
try { keep(eval("(1..)"), eval("(\"a\"...)")) }
keep(ObjectSpace.each_object(Class).first)
try { keep(-"fstring #{1 + 1}") }
try { keep(String.new(capacity: 1000)) }
keep("x".dup.force_encoding("ASCII-8BIT"), :sym.to_s, text(1)[0, 60], text(1).b, text(1).succ)
KEPT.concat([nil, true, false, 1, :a, 1.5])
class Cyc; attr_accessor :o; end
c1 = Cyc.new
c2 = Cyc.new
c1.o = c2
c2.o = c1
keep(c1)
cc = Class.new { 40.times { |i| class_variable_set("@@v#{i}", "v") ; instance_variable_set("@i#{i}", "w"); const_set("C#{i}", "x") } }
keep(cc)
class Cx; end
100.times { |i| Cx.instance_variable_set("@civ#{i % 30}", text(i)) }
Cx.remove_instance_variable(:@civ3)
keep(cc.clone, o.clone, cc.dup, Inc.clone, s5.clone, w.clone)

names = []
name = Module.instance_method(:name)
ObjectSpace.each_object(Module) { |mod| names << "#{Truth.address(mod)} #{name.bind(mod).call.to_s.tr("\n", " ")}" }
$stdout.sync = true
$stdout.write(names.size.to_s + "\n" + names.join("\n") + "\n")
names = nil
tp.disable
GC.start
GC.start
GC.disable
Truth.tell(ARGV[1].to_i)
