# encoding: utf-8
# Objects of every type, in every form that decides how much memory an object owns. Then the extension tells all of them.
require ARGV[0]

class Few
  def initialize
    @a = 1
  end
end

class Many
  def initialize(count)
    count.times { |i| instance_variable_set("@v#{i}", i) }
  end
end

# Too many orders of instance variables: since 3.3, these objects have them in a table.
class Varied
  def initialize(count)
    count.times { |i| instance_variable_set("@w#{count}_#{i}", i) }
  end
end

Pair = Struct.new(:a, :b)
Large = Struct.new(*("a".."l").map(&:to_sym))
KEPT = []
def keep(*objects)
  KEPT.concat(objects)
end

200.times { |i| keep(Few.new, Many.new(i % 40), Pair.new(1, 2), Large.new(*1..12)) }
200.times do |i|
  keep("x" * i, ("y\0" * i).force_encoding("UTF-16LE"), ("z" * i).force_encoding("UTF-32BE"), "é" * i)
  text = "q" * (i + 100)
  keep(text, text[5..-1], text.dup, text.dup.freeze, text.dup << "w")
  list = Array.new(i + 50, 1)
  keep(Array.new(i), list, list[3..-1], list.dup, list.dup << 1)
  table = (0...i).inject({}) { |hash, key| hash.update(key => key) }
  keep(table, table.dup, table.dup.compare_by_identity, table.reject { |key, _| key.odd? })
  keep(1 << (i * 9), -(3**i))
end
40.times { |i| keep(Varied.new(i + 1)) }
60.times do |i|
  text = "with instance variables #{i}"
  (i % 5).times { |j| text.instance_variable_set("@s#{j}", j) }
  list = []
  list.instance_variable_set(:@z, i)
  keep(text, list)
  keep(Regexp.new("a{#{i}}(b|c)*#{'(d)' * (i % 7)}"), /(x)(y)/.match("wxyz"), /(.)(.)/.match("é#{i}"))
  keep(Rational(1, 3 + i), Complex(1, i), 1.5e300 + i, 1..2, "a".."b", Object.new, Time.now, :"a symbol #{i}")
  keep(lambda { i }, method(:keep), Class.new(Few), Module.new { def self.it; end }, Enumerator.new { |y| y << i })
end
/(.)(.)/ =~ "éab"
keep($~, $~.offset(1))
reader, writer = IO.pipe
keep(reader, writer, File.open(File::NULL), Thread.current, Fiber.new { 1 }, Mutex.new, binding, BasicObject.new)
File.open(__FILE__) { |file| keep(file, file.gets) }
unless (File.open(__FILE__).gets || "").empty?
  buffered = File.open(__FILE__)
  buffered.gets
  keep(buffered)
end
# One T_DATA of each kind that this Ruby has.
error = (raise "an error" rescue $!)
[
  lambda { [Thread::Queue.new, Thread::SizedQueue.new(1), Thread::ConditionVariable.new, ThreadGroup.new, Monitor.new] },
  lambda { [Object.instance_method(:to_s), RubyVM::InstructionSequence.compile("1"), TracePoint.new(:line) {}] },
  lambda { [(1..3).lazy, Enumerator.new { |yielder| keep(yielder) }.each {}] },
  lambda { [[1].each + [2].each, 1.step(3)] },
  lambda { Enumerator.produce(1) { |i| i + 1 } },
  lambda { Enumerator.product([1], [2]) },
  lambda { [Random.new(1), Dir.new("/"), File.stat("/"), Encoding::Converter.new("UTF-8", "UTF-16LE")] },
  lambda { [error, error.backtrace_locations] },
  lambda { [ObjectSpace::WeakMap.new, ObjectSpace::WeakKeyMap.new] },
  lambda { Process.wait(spawn("true")) && $? },
  lambda { IO::Buffer.new(10) },
  lambda { Ractor.current },
].each do |kind|
  begin
    keep(kind.call)
  rescue NameError
    nil # a later Ruby has it
  end
end
class Few
  CONSTANTS = (0..20).map { |i| const_set("C#{i}", i) }
  @@class_variable = 1
  @own = 2
  def self.used
    @@class_variable
  end
end
Few.used
few = Few.new
def few.alone
  1
end
keep(few)

names = []
name = Module.instance_method(:name)
ObjectSpace.each_object(Module) { |mod| names << "#{Truth.address(mod)} #{name.bind(mod).call}" }
$stdout.sync = true
$stdout.write(names.size.to_s + "\n" + names.join("\n") + "\n")
names = nil
GC.start
GC.start
GC.disable
Truth.tell(ARGV[1].to_i)
