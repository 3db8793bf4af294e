# needs: 3.1
# Fibers that wait in a scheduler, with and without a time limit, and those that want to lock a Mutex again.
require_relative "still"
require_relative "required/scheduler"

# A sleep ends at once if somebody else locks what was unlocked for it.
class Relocking < Scheduler
  def kernel_sleep(_duration = nil)
    lock = Thread.current[:unlocked]
    lock ? (Thread.pass until lock.locked?) : leave
  end
end

# One of whose hooks calls another, as that of Ruby's own tests does.
class Nested < Scheduler
  def kernel_sleep(duration = nil)
    block(:sleep, duration)
  end
end

HELD = []

def scheduled(name)
  HELD << Fiber.schedule do
    Thread.current[:key] = name
    yield
  end
end

# The fiber holds what the thread wants whose end it waits for.
def joins(name, *limit, &join)
  lock = Thread::Mutex.new
  scheduled(name) do
    lock.lock
    thread = Still.thread("wants #{name}", "lock") { lock.lock }
    Thread.pass until thread.status == "sleep"
    join ? join.call(thread) : thread.join(*limit)
  end
end

def relocks(name)
  lock = Thread::Mutex.new
  scheduled(name) do
    lock.lock
    Thread.current[:unlocked] = lock
    taker = Still.thread("takes #{name}", "pop") { lock.lock; Still::GATE.pop }
    Thread.pass until taker.status == "sleep"
    yield lock
  end
end

Still.thread("scheduled") do
  Fiber.set_scheduler(Relocking.new)
  joins("joins")
  joins("joins nil", nil)
  joins("joins for a while", 3600)
  joins("joins for a fraction", 7201r / 2)
  relocks("sleeps again") { |lock| lock.sleep(3600) }
  relocks("waits again") { |lock| Thread::ConditionVariable.new.wait(lock, 3600) }
  scheduled("condition") { lock = Thread::Mutex.new; lock.synchronize { Thread::ConditionVariable.new.wait(lock, 3600) } }
  scheduled("pops") { Thread::Queue.new.pop }
  scheduled("pops for a while") { Thread::Queue.new.pop(timeout: 3600.25) } unless RUBY_VERSION < "3.2"
  scheduled("sleeps") { sleep }
  scheduled("sleeps for a while") { sleep(3600.5) }
  scheduled("sleeps for a fraction") { sleep(7201r / 2) }
end
Still.thread("nested") do
  Fiber.set_scheduler(Nested.new)
  # From C code, which passes arguments in another way.
  joins("joins from C") { |thread| [thread].each(&:join) }
  scheduled("sleeps for a while, nested") { sleep(3600.75) }
  scheduled("sleeps, nested") { sleep }
end
Still.watch("pop")
Still::GATE.pop
