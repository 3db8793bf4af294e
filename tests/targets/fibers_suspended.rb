# Fibers that were left: by resuming another one, by Fiber.yield, as external enumerators; one of a thread that has ended.
# needs: 1.9
require_relative "still"

KEPT = []

def keep(*fibers)
  KEPT.concat(fibers)
end

# Resumes one fiber within another, `depth` deep, and comes to rest in the last.
def nest(key, depth)
  return Still::GATE.pop if depth == 0
  keep(inner = Fiber.new { [depth].each { nest(key, depth - 1) } })
  Still.fiber("#{key} #{depth}", "resume"); inner.resume
end

# Left by Fiber.yield, deep in its own calls.
def leave(key, depth = 3)
  depth > 0 ? [depth].map { leave(key, depth - 1) } : (Still.fiber(key, "yield"); Fiber.yield(key))
ensure
  KEPT.size
end

class Numbers
  include Enumerable

  def each
    1.upto(5) { |n| Still.fiber("numbers", nil); yield n }
  end
end

def squares(numbers)
  Enumerator.new do |y|
    loop do
      n = numbers.next
      Still.fiber("squares", "<<"); y << n * n
    end
  end
end

def pairs(squares)
  Enumerator.new do |y|
    2.times do
      a = squares.next
      Still.fiber("pairs", "yield"); y.yield(a, squares.next)
    end
  end
end

Still.thread("nested") { nest("nested", 4) }
Still.thread("pipeline") do
  enumerators = [numbers = Class.new(Numbers).new.to_enum(:each_entry)]
  enumerators << squares(numbers)
  enumerators << pairs(enumerators.last)
  enumerators.last.next
  [enumerators].each { Still::GATE.pop }
end
Still.thread("yielders") do
  made = Array.new(3) { |i| Fiber.new { leave("yielder #{i}", i) } }
  keep(*made)
  made.each(&:resume)
  # One that has not begun, and one that has ended, have nothing to show.
  keep(Fiber.new { leave("never") }, ended = Fiber.new { 1 })
  ended.resume
  Still::GATE.pop
end
Thread.new { keep(left = Fiber.new { leave("left behind") }); left.resume }.join
Still.watch("pop")
keep(beside = Fiber.new { leave("beside main") })
beside.resume
Fiber.new { Still::GATE.pop }.tap { |rest| keep(rest); Still.fiber("main", "resume"); rest.resume }
