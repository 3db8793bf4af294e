# What a target of known shares does, and when, by its own clocks: the truth that recordings of it are held against.
#
# Each of its threads has a timeline: from a time on (CLOCK_REALTIME) it does this, or that. A target makes its timelines,
# calls Timeline.ready, which prints "ready", and goes on until Timeline.done?, which is once standard input has ended; then
# it calls Timeline.tell, which prints all timelines as one line of JSON:
#
#   {"main": [["burn", REALTIME, CPU], …, [null, REALTIME, CPU]]}
#
# in nanoseconds; CPU is what the thread had used of its CPU by then (CLOCK_THREAD_CPUTIME_ID), null if another thread notes
# it; the last entry is the end.
#
# No library is loaded, and to note something makes no garbage.
class Timeline
  VARIATION = (-5_000_000..5_000_000) # ns

  @all = {}
  @done = false
  @random = Random.new(7)

  class << self
    attr_reader :all

    def ready
      watcher = Thread.new do
        $stdin.read
        @done = true
      end
      watcher.name = "watcher"
      Thread.pass until watcher.status == "sleep"
      $stdout.write("ready\n")
      $stdout.flush
    end

    def done?
      @done
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # A duration in ns, each time a little shorter or longer. What takes turns of fixed lengths can keep step with the samples:
    # then each of them is as late as the one before, by up to a period.
    def varied(duration)
      duration + @random.rand(VARIATION)
    end

    # For so many nanoseconds.
    def compute(duration)
      limit = now + duration
      while now < limit
        i = 0
        i += 1 while i < 5000
      end
    end

    def tell
      lines = all.map { |name, timeline| "\"#{name}\":[#{timeline.spans.join(",")}]" }
      $stdout.write("{#{lines.join(",")}}\n")
      $stdout.flush
    end
  end

  def initialize(name)
    @noted = []
    Timeline.all[name] = self
  end

  # From now on the calling thread, whose timeline it is, does this. A String, or nil: that is the end.
  def note(what)
    @noted << what << Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
    @noted << Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  # From that time on, whoever tells.
  def note_at(what, at)
    @noted << what << at << nil
  end

  def spans
    @noted.each_slice(3).map { |what, at, cpu| "[#{what ? "\"#{what}\"" : "null"},#{at},#{cpu || "null"}]" }
  end
end
