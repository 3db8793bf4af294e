# Two threads, each of which holds the mutex that the other wants.
# needs: 2.1
require_relative "still"

A = Thread::Mutex.new
B = Thread::Mutex.new
BOTH = Thread::Queue.new

def first
  A.synchronize do
    BOTH.push(1)
    sleep 0.001 until BOTH.size == 2
    B.synchronize { raise "never" }
  end
end

def second
  B.lock
  BOTH.push(2)
  sleep 0.001 until BOTH.size == 2
  A.lock
end

one = Still.thread("first", "synchronize") { first }
Still.thread("second", "lock") { second }
Still.watch("join")
one.join
