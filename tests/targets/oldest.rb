# What every Ruby since 1.9.3 has, in words that it understands: methods, blocks, C functions, rescue, eval, class bodies.
# needs: 1.9
require_relative "still"

def rest
  Still::GATE.pop
end

class Oldest
  include Enumerable

  def plain
    rest
  end
  alias aliased plain

  def each
    yield 1
  end

  def self.singleton
    new.plain
  end

  class << self
    def of_singleton
      [1].each { |x| singleton if x }
    end
  end

  define_method(:by_define) { |*arguments| arguments.empty? && aliased }

  def three_deep
    1.times { 1.upto(1) { 1.step(2, 1) { rest } } }
  end

  def passed(&block)
    block ? block.call : passed { rest }
  end

  def procs
    outer = proc { lambda { |x| x.pop }.call(Still::GATE) }
    outer.call
  end

  def symbols
    [Still::GATE].map(&:pop)
  end

  # The environments of these blocks are on the heap.
  def escaped
    value = 1
    kept = binding
    each { |other| inner = binding; [other].each { rest if value && kept && inner } }
  end

  def match
    "abc" =~ /(b)/
    [$1].each { rest if $~ }
  end

  def optional(one = 1, two = rest)
    two
  end

  def in_rescue
    raise "first"
  rescue
    begin
      raise "second"
    rescue => e
      [e].each { rest }
    end
  end

  def evaluated
    eval "\n[1].each { rest }", binding, "made up.rb", 40
  end

  def without_file
    instance_eval "rest"
  end

  def method_missing(name, *arguments)
    name == :nothing_of_that_name ? rest : super
  end

  def missing
    nothing_of_that_name
  end

  def sorted
    [2, 1].sort_by { |x| x && caught }
  end

  def caught
    catch(:a) { loop { rest } }
  end

  def mapped
    map { |x| each_with_index { rest } }
  end

  def substituted
    "abc".gsub(/b/) { rest }
  end

  def <=>(other)
    rest
  end
  include Comparable

  def compared
    self < Oldest.new
  end

  def multiline
    [1,
     2].select do |x|
      x &&
        rest
    end
  end

  def long
    value = 0
    @long ||= self.class.class_eval("def long_one(x)\n" + "  x += 1\n" * 1000 + "  rest\nend\nself", "long.rb", 7)
    long_one(value)
  end

  def sent
    send(:public_send, :plain)
  end

  def object
    method(:plain).to_proc.call
  end

  def singleton_object
    object = Object.new
    def object.only_here
      rest
    end
    object.only_here
  end

  def made
    Class.new(Oldest) { define_method(:again) { super() rescue rest } }.new.again
  end

  def struct
    Struct.new(:a) { def to_s() rest; end }.new(1).to_s
  end

  def fiber
    Fiber.new { |x| [x].each { rest } }.resume(1)
  end

  def enumerated
    enumerator = to_enum(:plain_each)
    enumerator.next
    enumerator.next
  end

  def plain_each
    yield 1
    yield rest
  end

  def initialize(now = false)
    rest if now
  end

  def +(other)
    rest
  end

  def operator
    [self, self].inject { |a, b| a + b }
  end

  def []=(key, value)
    rest
  end

  def assigned
    self[1] = 2
  end
end

module Functions
  module_function

  def function
    rest
  end
end

class Derived < Oldest
  def plain
    super
  end
end

helpers = [:each, :plain_each, :method_missing, :<=>, :+, :[]=, :initialize]
(Oldest.instance_methods(false) - helpers).sort.each { |name| Still.thread(name.to_s) { Oldest.new.send(name) } }
Still.thread("of singleton") { Oldest.of_singleton }
Still.thread("function") { Functions.function }
Still.thread("super") { Derived.new.plain }
Still.thread("initialize") { Oldest.new(true) }
Still.thread("class body") { eval "class OldestBody\n  class << self\n    rest\n  end\nend" }
Still.thread("sleep", "sleep") { [1].each { sleep 3600 } }
Still.thread("stop", "stop") { Thread.stop }
Still.watch("sleep")
1.times { sleep }
