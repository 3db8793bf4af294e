# One thread that does two things in turn, and has the GVL all the time: 80 % of its time it computes, for longer than it
# takes until the kernel is to tell when it stops, and 20 % it sleeps in a system call that Ruby knows nothing of.
require_relative "timeline"

class Holding
  POLL = 7 # x86-64

  def initialize
    @timeline = Timeline.new("main")
  end

  def compute
    @timeline.note("cpu")
    Timeline.compute(600_000_000)
  end

  def hold
    @timeline.note("blocked")
    syscall(POLL, 0, 0, 150)
  end

  def run
    until Timeline.done?
      compute
      hold
    end
    @timeline.note(nil)
  end
end

holding = Holding.new
Timeline.ready
holding.run
Timeline.tell
