# Threads that wait for locks, queues, threads and a child process; and deadlocks.
# needs: 2.1
require_relative "still"
$LOAD_PATH.concat(Dir["/usr/share/rubygems-integration/all/gems/connection_pool-*/lib"]) # Debian's ruby-connection-pool
%w[monitor socket connection_pool].each do |library|
  begin
    require library
  rescue LoadError, SyntaxError
    nil # not every Ruby of the test set has libraries, or is new enough for a gem
  end
end

OBJECTS = {}
TELL = Kernel.instance_method(:to_s) # "#<Class:0xADDRESS>", whatever the class of the object

def told(name, object)
  OBJECTS[name] = TELL.bind(object).call
  object
end

def mutex(name)
  told(name, Thread::Mutex.new)
end

# A subject that tells which kernel thread it is: up to 2.2, no thread has a name.
def subject(name, top)
  Still.thread(name, top) { Still.tell_task(name); yield }
end

# Returns when it has been called `count` times.
class Meeting
  def initialize(count)
    @count = count
    @came = Thread::Queue.new
  end

  def meet
    @came << 1
    sleep 0.001 until @came.size == @count
  end
end

# Each of a circle of threads holds a lock, and wants that of the next.
def circle(name, locks)
  meeting = Meeting.new(locks.size)
  locks.each_index do |i|
    subject("#{name} #{i}", /lock|synchronize|enter/) do
      locks[i].synchronize do
        meeting.meet
        locks[(i + 1) % locks.size].synchronize { raise "never" }
      end
    end
  end
end

# A thread that holds a lock and does what the block says, and one that waits for the lock. Returns both.
def held(name, top, lock = mutex(name))
  meeting = Meeting.new(2)
  holder = subject("#{name} holder", top) do
    lock.synchronize { meeting.meet; yield }
  end
  [holder, subject("#{name} waiter", "lock") { meeting.meet; lock.lock }]
end

two = [mutex("two 0"), mutex("two 1")]
circle("two", two)
circle("three", [mutex("three 0"), mutex("three 1"), mutex("three 2")])
if defined?(Monitor)
  circle("monitors", Array.new(2) { |i| told("monitors #{i}", Monitor.new) })
  circle("three monitors", Array.new(3) { |i| told("three monitors #{i}", Monitor.new) })
end

# One that is in no circle, and waits for one that is.
subject("behind", "lock") { sleep 0.001 until two[0].locked?; two[0].lock }

JOINED = Array.new(2) { Thread::Queue.new }
pair = Array.new(2) { |i| subject("joins #{i}", /join|value/) { i == 0 ? JOINED[i].pop.join : JOINED[i].pop.value } }
pair.each_with_index { |thread, i| told("joins #{i}", thread); JOINED[1 - i] << thread }

THREE_JOINED = Array.new(3) { Thread::Queue.new }
three = Array.new(3) { |i| subject("three joins #{i}", "join") { THREE_JOINED[i].pop.join } }
three.each_with_index { |thread, i| told("three joins #{i}", thread); THREE_JOINED[i - 1] << thread }

# One waits for the end of a thread that wants what the first holds.
OTHER = Thread::Queue.new
_, other = held("mixed", "join") { OTHER.pop.join }
OTHER << told("mixed waiter", other)

# A fiber that has been left holds a lock. Its thread waits for another one, whose holder wants that of the fiber.
fibers = [mutex("fibers 0"), mutex("fibers 1")]
across = Meeting.new(2)
subject("fibers 0", "lock") do
  $left = Fiber.new { fibers[0].lock; Still.fiber("left", "yield"); Fiber.yield }
  $left.resume
  across.meet
  fibers[1].lock
end
subject("fibers 1", "lock") { fibers[1].lock; across.meet; fibers[0].lock }

READ, WRITE = IO.pipe
held("sleep", "sleep") { sleep 3600.5 }
held("read", "read") { READ.read }
SOCKETS = defined?(UNIXSocket) ? UNIXSocket.pair : []
held("socket", "recv") { SOCKETS[0].recv(1) } if defined?(UNIXSocket)
# Two links: the holder of one lock waits for another, whose holder waits for nobody in particular.
chain = mutex("chain")
held("chain", "pop", chain) { told("chain queue", Thread::Queue.new).pop }
held("middle", "lock") { sleep 0.001 until chain.locked?; chain.lock }

unless RUBY_VERSION < "3.0" # before, a Mutex belongs to a thread
  ended = mutex("ended")
  left = Meeting.new(2)
  subject("ended holder", "pop") { Fiber.new { ended.lock }.resume; left.meet; Still::GATE.pop }
  subject("ended waiter", "lock") { left.meet; ended.lock }
end

empty = told("empty", Thread::Queue.new)
2.times { |i| subject("empty #{i}", "pop") { empty.pop } }
full = told("full", Thread::SizedQueue.new(3)).tap { |queue| 3.times { |i| queue << i } }
subject("full", "push") { full << 4 }
unless RUBY_VERSION < "3.2" # before, queues have no `timeout`
  subject("timed empty", "pop") { told("timed empty", Thread::Queue.new).pop(timeout: 3600.25) }
  subject("timed full", "push") { told("timed full", Thread::SizedQueue.new(1) << 0).push(1, timeout: 3601) }
end
condition = told("condition", Thread::ConditionVariable.new)
subject("condition", /sleep|wait/) { Thread::Mutex.new.tap { |lock| lock.synchronize { condition.wait(lock) } } }
subject("timed condition", /sleep|wait/) do
  Thread::Mutex.new.tap { |lock| lock.synchronize { condition.wait(lock, 3600) } }
end
subject("timed join", "join") { told("timed join", other).join(3600) }
child = spawn("exec cat", in: READ.dup, out: File::NULL) # ends with this process, which holds the other end
subject("child", "wait") { Process.wait(child) }

# A pool of one connection, and one of the gem connection_pool.
pool = Object.new
def pool.checkout(timeout)
  @lock ||= Thread::Mutex.new
  @lock.synchronize do
    @free ||= [:connection]
    @returned ||= told("pool", Thread::ConditionVariable.new)
    @returned.wait(@lock, timeout) while @free.empty?
    @free.pop
  end
end
taken = Meeting.new(2)
subject("pool user", "pop") { pool.checkout(5); taken.meet; Still::GATE.pop }
subject("pool waiter", /sleep|wait/) { taken.meet; pool.checkout(3600) }

if defined?(ConnectionPool)
  POOL = ConnectionPool.new(size: 1, timeout: 3600) { :connection }
  told("gem pool", POOL.instance_variable_get(:@available).instance_variable_get(:@resource))
  all_taken = Meeting.new(2)
  subject("gem pool user", "pop") { POOL.with { all_taken.meet; Still::GATE.pop } }
  subject("gem pool waiter", /sleep|wait/) { all_taken.meet; POOL.with { raise "never" } }
end

Still.extra["objects"] = OBJECTS
Still.extra["child"] = child
Still.watch("pop")
Still::GATE.pop
