# Collects garbage when standard input says so, in the thread "main" and then again: the test stops it in the middle.
# needs: 1.9
require_relative "still"

class Collector
  def collect
    1.times do
      $here = Still.here; GC.start # on one line: the line that Ruby will show for both
    end
  end
end

Still.thread("beside") { Still::GATE.pop }
Collector.new.collect
Still.extra["here"] = $here
Still.subject("main", Thread.current, "gets")
teller = Thread.new { Still.report }
$stdin.gets
teller.join
Collector.new.collect
$stdout.write("collected\n")
$stdout.flush
$stdin.read
exit!(0)
