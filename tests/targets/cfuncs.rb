# C functions between Ruby ones.
# needs: 1.9
require_relative "still"

class Weight
  include Comparable
  include Enumerable

  def <=>(other)
    Still::GATE.pop
  end

  def each
    yield 1
  end

  def to_s
    Still::GATE.pop
  end
  alias inspect to_s
  alias hash to_s
  alias coerce <=>
  alias === <=>
  alias call <=>

  def self.inherited(klass)
    Still::GATE.pop
  end

  def self.const_missing(name)
    Still::GATE.pop
  end

  def respond_to_missing?(name, all)
    Still::GATE.pop
  end
end

module Hooked
  def self.included(other)
    Still::GATE.pop
  end

  def self.extended(other)
    other.class_eval { Still::GATE.pop }
  end
end

class Added
  def self.method_added(name)
    Still::GATE.pop if name == :later
  end

  def self.traced
    1
  end
end

halt = -> { Still::GATE.pop }

{
  "each" => -> { [1].each { halt.call } },
  "map" => -> { [1].map { halt.call } },
  "select" => -> { [1].select { halt.call } },
  "sort_by" => -> { [2, 1].sort_by { halt.call } },
  "sort" => -> { [2, 1].sort { halt.call } },
  "sort of comparables" => -> { [Weight.new, Weight.new].sort },
  "max" => -> { [Weight.new, Weight.new].max },
  "between" => -> { Weight.new.between?(1, 2) },
  "clamp" => -> { Weight.new.clamp(1, 2) },
  "equal" => -> { Weight.new == 1 },
  "times" => -> { 2.times { halt.call } },
  "upto" => -> { 1.upto(2) { halt.call } },
  "step" => -> { 1.step(5, 2) { halt.call } },
  "loop" => -> { loop { halt.call } },
  "tap" => -> { 1.tap { halt.call } },
  "then" => -> { 1.then { halt.call } },
  "yield_self" => -> { 1.yield_self { halt.call } },
  "send" => -> { Weight.new.send(:to_s) },
  "public_send" => -> { Weight.new.public_send(:to_s) },
  "__send__" => -> { Weight.new.__send__(:to_s) },
  "send of send" => -> { Still::GATE.send(:send, :public_send, :pop) },
  "catch" => -> { catch(:a) { catch(:b) { halt.call } } },
  "each_with_index" => -> { [1].each_with_index { halt.call } },
  "each_with_object" => -> { [1].each.with_object([]).with_index { halt.call } },
  "lazy" => -> { [1, 2].lazy.map { halt.call }.first },
  "each_slice" => -> { [1, 2].each_slice(2) { halt.call } },
  "inject" => -> { [1, 2].inject { halt.call } },
  "inject of symbol" => -> { [Still::GATE, false].inject(:pop) },
  "sum" => -> { [1].sum { halt.call } },
  "group_by" => -> { Weight.new.group_by { halt.call } },
  "zip" => -> { [1].zip([2]) { halt.call } },
  "hash each" => -> { { 1 => 2 }.each { |k, v| halt.call } },
  "hash default" => -> { Hash.new { |h, k| halt.call }[1] },
  "hash fetch" => -> { {}.fetch(1) { halt.call } },
  "hash key" => -> { { Weight.new => 1 } },
  "transform_values" => -> { { 1 => 2 }.transform_values { halt.call } },
  "array new" => -> { Array.new(1) { halt.call } },
  "gsub" => -> { "a".gsub(/a/) { halt.call } },
  "interpolation" => -> { "#{Weight.new}" },
  "inspect" => -> { [[Weight.new]].inspect },
  "format" => -> { format("%s", Weight.new) },
  "coerce" => -> { 1 + Weight.new },
  "case" => -> { case 1 when Weight.new then 2 end },
  "inherited" => -> { Class.new(Weight) },
  "const_missing" => -> { Weight::Nothing },
  "included" => -> { Class.new { include Hooked } },
  "extended" => -> { Class.new { extend Hooked } },
  "method_added" => -> { Added.class_eval { def later; end } },
  "respond_to" => -> { Weight.new.respond_to?(:nothing) },
  "method object" => -> { Weight.new.method(:to_s).to_proc.call },
  "method unbind" => -> { Weight.instance_method(:to_s).bind(Weight.new).call },
  "instance_eval" => -> { 1.instance_eval { halt.call } },
  "class_eval" => -> { Weight.class_eval { halt.call } },
  "module_eval" => -> { Hooked.module_eval { halt.call } },
  "struct" => -> { Struct.new(:a).new(1).each { halt.call } },
  "range" => -> { (1..2).each { halt.call } },
  "synchronize" => -> { Thread::Mutex.new.synchronize { halt.call } },
  "handle_interrupt" => -> { Thread.handle_interrupt(RuntimeError => :never) { halt.call } },
  "each_entry" => -> { Weight.new.each_entry { halt.call } },
  "object space" => -> { ObjectSpace.each_object(Class) { halt.call } },
  "trace point" => lambda do
    trace = TracePoint.new(:call) { halt.call }
    trace.enable(target: Added.method(:traced)) { Added.traced }
  end,
  "to_proc" => -> { [1].each(&Class.new { def to_proc() Still::GATE.pop; end }.new) },
  "backtick" => -> { Class.new { def `(s) Still::GATE.pop; end; def run() `x`; end }.new.run }
}.each { |name, body| Still.thread(name) { body.call } }

Still.thread("sleep", "sleep") { [1].each { sleep 3600 } }
Still.thread("sleep of module", "sleep") { Kernel.sleep }
Still.thread("stop", "stop") { [1].each { Thread.stop } }
Still.watch("sleep")
1.instance_eval { sleep }
