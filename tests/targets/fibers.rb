# Fibers: what counts as a thread's stack is that of the fiber that runs.
# needs: 1.9
require_relative "still"

class Generator
  include Enumerable

  def each
    yield 1
    [2].each { |x| yield Still::GATE.pop }
  end

  def outer
    each_entry { |x| x }
  end
end

def in_fiber(depth)
  return Still::GATE.pop if depth == 0
  Fiber.new { in_fiber(depth - 1) }.resume
end

Still.thread("fiber") { Fiber.new { |x| [x].each { Still::GATE.pop } }.resume(1) }
Still.thread("nested fibers") { in_fiber(5) }
Still.thread("external next") do
  enumerator = Generator.new.to_enum
  enumerator.next
  enumerator.next
end
Still.thread("external next of a loop") do
  enumerator = Enumerator.new do |y|
    y << 1
    y.yield Still::GATE.pop
  end
  loop { enumerator.next }
end
Still.thread("suspended beside") do
  waiting = Array.new(3) { |i| Fiber.new { [i].each { Fiber.yield } } }
  waiting.each(&:resume)
  Still::GATE.pop
  waiting
end
Still.thread("ended beside") do
  Fiber.new { 1 }.resume
  Still::GATE.pop
end
Still.thread("back from a fiber") do
  fiber = Fiber.new { Fiber.yield; in_fiber(1) }
  fiber.resume
  [1].each { fiber.resume }
end
Still.watch("pop")
Fiber.new { 1.times { Still::GATE.pop } }.resume
