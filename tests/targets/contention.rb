# Threads that contend for locks all the time, and never deadlock: all lock in the same order. Prints a line when all of
# them have had every lock. Ends with its standard input.
# needs: 2.3
LOCKS = Array.new(4) { Thread::Mutex.new }
QUEUE = Thread::SizedQueue.new(2)
CONDITION = Thread::ConditionVariable.new
had = Thread::Queue.new

def all(index, &block)
  index == LOCKS.size ? yield : LOCKS[index].synchronize { all(index + 1, &block) }
end

8.times do |i|
  Thread.new do
    first = true
    loop do
      all(i % 3) { Thread.pass }
      LOCKS[3].synchronize { i.zero? ? CONDITION.broadcast : CONDITION.wait(LOCKS[3], 0.001) }
      i.even? ? QUEUE << i : QUEUE.pop
      Thread.new { LOCKS[0].synchronize { nil } }.join if i == 1
      had << i if first
      first = false
    end
  end
end
8.times { had.pop }
$stdout.write("{\"threads\":[],\"tasks\":{},\"fibers\":[]}\n")
$stdout.flush
$stdin.read
exit!(0)
