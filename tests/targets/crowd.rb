# As many threads as the second argument says, which all wait for the same queue.
require "thread" # until 2.2, Queue is of a library
queue = Queue.new
begun = Queue.new
threads = Array.new(Integer(ARGV.fetch(1))) do
  Thread.new do
    begun << true
    queue.pop
  end
end
threads.each { begun.pop }
# The last ones may still be on their way.
Thread.pass until threads.all? { |thread| thread.status == "sleep" }
$stdout.write("{}\n")
$stdout.flush
$stdin.read
exit!(0)
