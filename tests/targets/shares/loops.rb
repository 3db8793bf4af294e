# Three loops that take turns, and have 60, 30 and 10 % of the CPU time: `ruby loops.rb [A B C]`, other shares in percent.
require_relative "timeline"

class Loops
  TURN = 2_000_000 # ns for each percent: a round takes 0.2 s

  def initialize(shares)
    @shares = shares.map { |share| share * TURN }
    @timeline = Timeline.new("main")
  end

  # Each has a loop of its own, so that it is itself the innermost.
  def a(limit)
    while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < limit
      i = 0
      i += 1 while i < 5000
    end
  end

  def b(limit)
    while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < limit
      i = 0
      i += 1 while i < 5000
    end
  end

  def c(limit)
    while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < limit
      i = 0
      i += 1 while i < 5000
    end
  end

  def limit(index)
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) + Timeline.varied(@shares[index])
  end

  def run
    until Timeline.done?
      @timeline.note("a")
      a(limit(0))
      @timeline.note("b")
      b(limit(1))
      @timeline.note("c")
      c(limit(2))
    end
    @timeline.note(nil)
  end
end

loops = Loops.new(ARGV.empty? ? [60, 30, 10] : ARGV.map(&:to_i))
Timeline.ready
loops.run
Timeline.tell
