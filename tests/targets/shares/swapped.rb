require "io/wait"

# Two short methods, each called from a line of its own, again and again. Some hundred times a second both are defined
# anew, two times the one first and two times the other, and the old ones are collected: as slots come back each second
# time, where the one was, the other comes to be. Prints "ready" and those two lines; ends with standard input.
class Swapped
  LEFT = "def left(n)\n  n + 1\nend"
  RIGHT = "def right(n)\n  n + 1\nend"

  def define(turn)
    code = (turn / 2).odd? ? [RIGHT, LEFT] : [LEFT, RIGHT]
    code.each { |text| self.class.class_eval(text, "swapped.rb") }
    GC.start
  end

  def work(until_then, name, other)
    n = 0
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_then
      times = 0
      while times < 100
        n = send(name, n)
        n = send(other, n)
        times += 1
      end
    end
  end
end

$VERBOSE = nil
swapped = Swapped.new
turn = 0
swapped.define(turn)
line = Swapped.instance_method(:work).source_location.last + 5
$stdout.puts "ready #{line} #{line + 1}"
$stdout.flush
until $stdin.wait_readable(0)
  swapped.work(Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.004, :left, :right)
  swapped.define(turn += 1)
end
