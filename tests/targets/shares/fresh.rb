# Most of the time it has a few stacks, again and again; now and then, for some 25 us, one of very many: no two samples see
# the same. Prints "ready", and once standard input has ended what share of the CPU time those have had, by its own clock:
# who samples it from its CPU makes the very time longer that there was a sample of, but not that.
require_relative "timeline"

class Fresh
  USUAL = (10_000..30_000) # rounds of a loop; turns of one length could keep step with the samples
  METHODS = 64
  SITES = 500

  def initialize
    @usual = @fresh = 0
    @random = Random.new(7)
  end

  def now
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  def leaf(i)
    i + 1
  end

  def usual
    i = @random.rand(USUAL)
    i -= 1 while i > 0
  end

  # So many places to call from. Of what it takes to read the time, what comes after that counts, and what comes before
  # does not, at the beginning as at the end: which is within the method. To send would take longer than to call.
  METHODS.times do |n|
    class_eval("def sites_#{n}(i)\n#{"i = leaf(i)\n" * SITES}now\nend", "sites.rb", 1)
    class_eval(<<~TURN, "turns.rb", 1)
      def turn_#{n}
        before = now
        usual
        between = now
        after = sites_#{n}(0)
        @usual += between - before
        @fresh += after - between
      end
    TURN
  end
  TURNS = Array.new(METHODS) { |n| :"turn_#{n}" }

  def run
    n = 0
    send(TURNS[(n += 1) % METHODS]) until Timeline.done?
    $stdout.write("#{@fresh.to_f / (@usual + @fresh)}\n")
  end
end

fresh = Fresh.new
Timeline.ready
fresh.run
