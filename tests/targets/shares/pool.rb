require "json"
require "zlib"

# A pool of threads that grows from 2 to 50 and shrinks again, and a thread that burns a CPU without the GVL: all of them
# begin when a line comes from standard input. Each thread of the pool calls two methods by turns from two lines. Prints
# "ready" and those two lines; "done" once the pool is empty; and, when standard input ends, what the burning thread has
# used: seconds on a CPU, and in all.
class Pool
  def a(number)
    number = b(number)
    c(number)
  end

  def b(number)
    number + 1
  end

  def c(number)
    number - 1
  end

  def work(until_then)
    number = 0
    number = a(number) while now < until_then
    sleep 0.001
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def burn(used)
    text = Random.new(1).bytes(1 << 20) * 4
    began = now
    cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    loop do
      Zlib::Deflate.deflate(text, 9)
      used.replace([Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - cpu, now - began])
      break if @done
    end
  end

  # Each thread is there for a few hundredths of a second.
  def grow_and_shrink
    sizes = [2, 5, 12, 25, 50, 30, 12, 4, 2]
    sizes.each do |size|
      until_then = now + 0.02
      threads = Array.new(size) { |i| Thread.new { work(until_then + 0.001 * i) } }
      threads.each(&:join)
    end
  end

  def run(turns)
    used = []
    burning = Thread.new { burn(used) }
    burning.name = "burn"
    turns.times { grow_and_shrink }
    @done = true
    burning.join
    used
  end
end

line = Pool.instance_method(:a).source_location.last
$stdout.puts "ready #{line + 1} #{line + 2}"
$stdout.flush
turns = $stdin.gets.to_i
used = Pool.new.run(turns)
$stdout.puts "done"
$stdout.flush
$stdin.read
$stdout.puts JSON.generate(used)
