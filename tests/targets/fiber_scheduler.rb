# needs: 3.1
# A hundred fibers that wait in a scheduler, each for something else.
require_relative "still"
require_relative "required/scheduler"

QUEUE = Thread::Queue.new
READ, WRITE = IO.pipe
LOCK = Thread::Mutex.new
HELD = []

def wait(n)
  case n % 4
  when 0 then sleep(1000 + n)
  when 1 then QUEUE.pop
  when 2 then [READ].each(&:wait_readable)
  else LOCK.synchronize { nil }
  end
end

def wait_deep(n, depth)
  depth == 0 ? wait(n) : [n].each { |m| wait_deep(m, depth - 1) }
end

require "io/wait" unless IO.method_defined?(:wait_readable)
LOCK.lock
Still.thread("scheduled") do
  Fiber.set_scheduler(Scheduler.new)
  100.times do |n|
    HELD << Fiber.schedule do
      Thread.current[:key] = "fiber #{n}"
      wait_deep(n, n % 5)
    end
  end
  # In no hook: it is no scheduler that it waits for.
  other = Fiber.new { Still.fiber("other", "yield"); Fiber.yield }
  HELD << other
  other.resume
end
Still.watch("pop")
Still::GATE.pop
