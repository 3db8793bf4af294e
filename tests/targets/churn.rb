# Never at rest: what the second argument names is done over and over by the main thread.
# needs: 1.9
require_relative "still"

# A call graph of 16 methods with two callees each, on a line each: which line a frame is at tells what it has called.
class Calls
  16.times do |i|
    class_eval <<-CODE, "calls.rb", 1
      def step_#{i}(depth, seed)
        return seed if depth == 0
        if seed & 1 == 0
          step_#{(i * 5 + 1) % 16}(depth - 1, seed * 5 + 3 & 65535)
        else
          step_#{(i * 3 + 2) % 16}(depth - 1, seed * 3 + depth & 65535)
        end
      end
    CODE
  end
end

def calls
  Calls.new.step_0(20, rand(65536))
end

def blocks
  [[1], [2, 3]].each { |list| list.map { |x| x.tap { |y| [y].sort_by { |z| -z } } } }
end

def threads
  Thread.new { Thread.new { 1 }.join }.join
end

def fibers
  fiber = Fiber.new { Fiber.yield(Array.new(10) { "x" }) }
  fiber.resume
  fiber.resume
  enumerator = [1, 2].each
  enumerator.next
end

def garbage
  Array.new(1000) { |i| i.to_s * 10 }
  RUBY_VERSION < "2.1" ? GC.start : GC.start(:full_mark => rand < 0.5)
end

def compaction
  Array.new(1000) { |i| i.to_s * 10 }
  GC.respond_to?(:compact) ? GC.compact : GC.start
end

def code
  eval("class Made\n  def made_#{rand(100)}\n    [1].each { yield }\n  end\nend", TOPLEVEL_BINDING)
  Class.new { define_method(:made) { raise "x" rescue 1 } }.new.made
end

def exceptions
  catch(:out) { [1].each { begin; raise "x"; rescue; throw :out; end } }
end

Still.thread("beside") { Still::GATE.pop }
Thread.new do
  Still.report
  $stdin.read
  exit!(0)
end
churn = method(ARGV.fetch(1))
while true
  churn.call
end
