require "io/wait"

# Methods that are defined, run for a moment, and dropped, each after the other: each has its number in its name and in
# that of its file. Meanwhile garbage is collected all the time, in all ways, so that what comes to be where one was is
# the next one's. Prints "ready"; "many" after the 600th; and once standard input ends a line for each: its number, and from
# when to when it was called, in ns of CLOCK_REALTIME.
class Dropping
  attr_reader :times

  def initialize
    @times = []
  end

  def work(until_then, number)
    garbage = nil
    garbage = [garbage ? garbage.first : nil, "#{number}"] while Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_then
    collect(number) if (number % 3).zero?
  end

  # What is not marked when marking ends is freed in steps, as is marked in steps what is there when it begins.
  def collect(number)
    full = (number % 2).zero?
    GC.start(full_mark: full, immediate_mark: (number % 4).zero?, immediate_sweep: (number % 9).zero?)
  end

  def drop(number)
    name = :"dropped_#{number}"
    singleton_class.class_eval("def #{name}(a, b)\n  work(a, b)\nend", "dropped_#{number}.rb")
    began = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
    send(name, Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.002, number)
    @times.push(number, began, Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond))
    singleton_class.send(:remove_method, name)
  end
end

$stdout.puts "ready"
$stdout.flush
number = 0
dropping = Dropping.new
until $stdin.wait_readable(0)
  dropping.drop(number += 1)
  next unless number == 600
  $stdout.puts "many"
  $stdout.flush
end
dropping.times.each_slice(3) { |times| puts times.join(" ") }
