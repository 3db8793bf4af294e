# Blocks, procs and lambdas.
# needs: 2.0
require_relative "still"

class Blocks
  def three_deep
    each_once do
      each_once do
        each_once do
          Still::GATE.pop
        end
      end
    end
  end

  def each_once
    yield
  end

  def passed(&block)
    each_once(&block)
  end

  def from_lambda
    inner = lambda do |x|
      -> { x.pop }.()
    end
    inner.call(Still::GATE)
  end

  def from_proc
    outer = proc { |queue| proc { queue.pop }.call }
    outer.yield(Still::GATE)
  end

  def unbound(element)
    Still::GATE.pop
  end

  def to_procs
    [1].each(&method(:unbound))
  end

  def symbols
    [Still::GATE].map(&:pop)
  end

  def executed
    instance_exec(1) do |x|
      self.class.class_exec do
        define_singleton_method(:of_class) { x && Still::GATE.pop }
        of_class
      end
    end
  end

  def numbered
    [Still::GATE].each { _1.pop }
  end

  def with_locals
    [[1, [2, 3]]].each do |a, (b, c); d|
      d = a + b + c
      d.tap { |e| Still::GATE.pop if e }
    end
  end

  def loops
    while true
      for item in [1, 2]
        begin
          until false
            Still::GATE.pop
          end
        end while item
      end
    end
  end

  def composed
    (method(:unbound) >> ->(x) { x }).call(1)
  end

  def curried
    ->(a, b) { Still::GATE.pop if a + b }.curry[1][2]
  end

  STORED = proc { Still::GATE.pop }
  LAMBDA = lambda(&proc { |x| STORED.call(x) }) rescue nil

  define_method(:stored, &STORED)

  # The environments of these blocks have been moved to the heap while they run.
  def escaped
    value = 1
    kept = binding
    each_once do
      other = 2
      kept_inner = binding
      each_once { Still::GATE.pop if value + other && kept && kept_inner }
    end
  end
end

blocks = Blocks.new
names = %i[three_deep from_lambda from_proc to_procs symbols executed numbered with_locals loops composed curried stored
           escaped]
names.delete(:numbered) if RUBY_VERSION < "2.7" # _1 is a method's name there
names.each do |name|
  Still.thread(name.to_s) { blocks.public_send(name) }
end
Still.thread("passed") { blocks.passed { blocks.passed { Still::GATE.pop } } }
Still.thread("block in block of main") { 1.times { 1.times { 1.times { Still::GATE.pop } } } }
Still.thread("no ruby frame", &Still::GATE.method(:pop))
Still.name_thread(Still.subject("symbol", Thread.new(Still::GATE, &:pop), "pop"), "symbol")
Still.name_thread(Still.subject("arguments", Thread.new(1, 2) { |a, b| Still::GATE.pop if a + b }, "pop"), "arguments")
Still.watch("pop")
[3].each { |x| x.times { Still::GATE.pop } }
