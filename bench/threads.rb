# Fifty threads to be recorded: what a server's do, or, as the worst that there can be, a new stack each time.
#
#   ruby threads.rb usual|worst
#
# Prints "ready", and ends when standard input does.

THREADS = 50

# A method of each name that calls the next one; which one is a matter of chance, so that few stacks are the same.
class Maze
  NAMES = Array.new(40) { |i| :"room_#{i}" }
  NAMES.each_with_index { |name, i| class_eval("def #{name}(depth, random) enter(depth, random) end", "maze.rb", i + 1) }

  def enter(depth, random)
    depth.zero? ? sleep(0.002) : send(NAMES[random.rand(NAMES.size)], depth - 1, random)
  end
end

# Most of the time it waits; now and then it has something to do.
def serve(queue, random)
  loop do
    queue.pop
    Array.new(2_000) { random.rand }.sort.each_slice(7).map(&:sum)
    sleep(random.rand(0.05))
  end
end

queue = Queue.new
threads = Array.new(THREADS - 1) do |i|
  random = Random.new(i)
  thread = Thread.new { ARGV.fetch(0) == "worst" ? loop { Maze.new.enter(12, random) } : serve(queue, random) }
  thread.name = "worker #{i}"
  thread
end
feeder = Thread.new do
  loop do
    queue << 1
    sleep(0.002)
  end
end
$stdout.puts "ready"
$stdout.flush
$stdin.read
(threads << feeder).each(&:kill)
