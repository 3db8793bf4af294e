# Moves all objects that can be when standard input says so, under methods of many kinds: the test stops it in the middle.
# needs: 2.7
require_relative "still"

class Compacted
  MORE = { RUBY_VERSION < "3.2" ? :double_heap : :expand_heap => true }

  module Mixed
    def mixed
      Compacted.of_the_class
    end
  end
  include Mixed

  def self.of_the_class
    OBJECTS[:singleton].of_the_object
  end

  def in_blocks(left)
    1.times do
      1.times do
        [1].each { left == 0 ? here : LINKS[left].new.linked(left - 1) }
      end
    end
  end

  def here
    $stdin.gets; GC.verify_compaction_references(toward: :empty, **MORE) # on one line: what Ruby will show for both
  end
end

module Refining
  refine String do
    def refined
      Compacted.new.in_blocks(LINKS.size - 1)
    end
  end
end
using Refining

# What the stack of C happens to hold is not moved; of so many, some are.
LINKS = Array.new(20) do |i|
  Compacted.const_set("Link#{i}", Class.new(Compacted)).class_eval do
    def linked(left)
      in_blocks(left)
    end
    self
  end
end

anonymous = Class.new(Compacted) do
  def unnamed
    "".refined
  end
end
OBJECTS = { singleton: Compacted.new, anonymous: anonymous.new }
anonymous = nil
def (OBJECTS[:singleton]).of_the_object
  OBJECTS[:anonymous].unnamed
end

Still.subject("main", Thread.current, "gets")
Thread.new { Still.report }
Compacted.new.mixed
$stdout.write("compacted\n")
$stdout.flush
$stdin.read
exit!(0)
