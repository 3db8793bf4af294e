# Threads that live for a few milliseconds each: they compute, sleep at one place, and end. Prints "ready", and ends when standard
# input does; then prints how many threads there were, and how long they slept in all, in ns.
#
#   ruby short_threads.rb

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

class Short
  attr_reader :count, :slept

  def initialize
    @count = @slept = 0
  end

  def rest
    began = now
    sleep 0.003
    now - began
  end

  def live
    500.times { |i| i * i }
    rest
  end

  def go_on(ended)
    until ended.call
      @slept += Array.new(3) { Thread.new { live } }.sum(&:value)
      @count += 3
    end
  end
end

short, reader = Short.new, Thread.new { $stdin.read }
$stdout.puts "ready"
$stdout.flush
short.go_on(-> { !reader.alive? })
puts "#{short.count} #{short.slept}"
