# Two threads that want the CPU all the time: each has the GVL half of its time, and waits for it the other half.
#
# Wall minus CPU time would count as well what the kernel gives to other processes, and the time that rbdump stops it. So a
# thread looks at the clock all the time, and notes when it has got the GVL, and when it was that the other had it last. What
# is between is "switch": one of both has it, but is not on a CPU.
require_relative "timeline"

class Contest
  def initialize
    @timelines = [Timeline.new("left"), Timeline.new("right")]
    @owner = nil
    @last = [nil, nil] # when each had it last: one that is interrupted before it notes that spoils only its own
  end

  def left
    spin(0)
  end

  def right
    spin(1)
  end

  def spin(me)
    until Timeline.done?
      i = 0
      i += 1 while i < 1000
      got(me) if @owner != me
      @last[me] = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
    end
  end

  def got(me)
    now = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
    if @owner
      @timelines[0].note_at("switch", @last[@owner])
      @timelines[1].note_at("switch", @last[@owner])
    end
    @timelines[1 - me].note_at("gvl", now)
    @timelines[me].note_at("cpu", now)
    @owner = me
  end

  def run
    threads = [Thread.new { left }, Thread.new { right }]
    threads[0].name = "left"
    threads[1].name = "right"
    Thread.pass until @timelines.none? { |timeline| timeline.spans.empty? } # a thread that has not begun has no frame
    Timeline.ready
    threads.each(&:join)
    @timelines.each { |timeline| timeline.note_at(nil, @last.max) }
  end
end

Contest.new.run
Timeline.tell
