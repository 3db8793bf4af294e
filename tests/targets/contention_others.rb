# Threads that contend for Monitors all the time, and others for a Mutex that fibers hold which have been left; none ever
# deadlocks. Prints a line when all of them have had theirs. Ends with its standard input.
# needs: 2.3
begin
  require "monitor"
rescue LoadError
  nil # not every Ruby of the test set has libraries
end

had = Thread::Queue.new
# They are entered twice, and in one order.
MONITORS = defined?(Monitor) ? Array.new(2) { Monitor.new } : []
MUTEX = Thread::Mutex.new

def repeat(had)
  yield
  had << true
  loop { yield }
end

threads = MONITORS.empty? ? 0 : 3
threads.times do
  Thread.new do
    repeat(had) do
      MONITORS[0].synchronize { MONITORS[1].synchronize { MONITORS[0].synchronize { sleep 0.002 } } }
      sleep 0.001 # or it enters again before another one has woken up
    end
  end
end
3.times do
  Thread.new do
    repeat(had) do
      fiber = Fiber.new { MUTEX.synchronize { Fiber.yield } }
      fiber.resume
      sleep 0.001
      fiber.resume
      sleep 0.001
    end
  end
end
(threads + 3).times { had.pop }
$stdout.write("{\"threads\":[],\"tasks\":{},\"fibers\":[],\"monitors\":#{!MONITORS.empty?}}\n")
$stdout.flush
$stdin.read
exit!(0)
