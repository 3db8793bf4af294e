# env: RUBY_THREAD_VM_STACK_SIZE=33554432
# The bottom of recursions: 10,000 frames of a method, of two by turns, and (fewer) of blocks with C functions between.
# needs: 2.0
require_relative "still"

def down(n)
  return Still::GATE.pop if n == 0
  down(n - 1)
end

class Turns
  def self.even(n)
    n == 0 ? Still::GATE.pop : new.odd(n - 1)
  end

  def odd(n)
    n == 0 ? Still::GATE.pop : self.class.even(n - 1)
  end
end

def blocks(n)
  [n].each { |x| x == 0 ? Still::GATE.pop : blocks(x - 1) }
end

Still.thread("turns") { Turns.even(10_000) }
Still.thread("blocks") { blocks(500) }
Still.watch("pop")
down(10_000)
