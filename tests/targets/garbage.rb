# Collects garbage when standard input says so, in the thread "main" and then again: the test stops it in the middle.
require_relative "still"

class Collector
  def collect
    1.times do
      $here = caller_locations(0); GC.start # on one line: the line that Ruby will show for both
    end
  end
end

Still.thread("beside") { Still::GATE.pop }
Collector.new.collect
Still.extra["here"] = Still.frames($here)
Still.subject("main", Thread.current, "gets")
teller = Thread.new { Still.report }
$stdin.gets
teller.join
Collector.new.collect
$stdout.write("collected\n")
$stdout.flush
$stdin.read
exit!(0)
