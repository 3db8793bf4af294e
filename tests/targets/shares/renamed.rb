# A thread that has a new name each quarter of a second, and calls a method while it has it: with the odd names another
# one than with the even. Old names are collected, so that a new one can come to be where one was. Prints "ready"; ends
# with standard input, and then prints when each name was given, in ns of CLOCK_REALTIME.
class Renamed
  attr_reader :changes

  def initialize
    @changes = []
  end

  def odd(until_then)
    number = 0
    number += 1 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_then
  end

  def even(until_then)
    number = 0
    number += 1 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_then
  end

  def work
    turn = 0
    loop do
      GC.start
      turn += 1
      Thread.current.name = "#{turn.odd? ? "odd" : "even"} #{turn}"
      @changes << Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
      then_ = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.25
      turn.odd? ? odd(then_) : even(then_)
    end
  end
end

renamed = Renamed.new
Thread.new { renamed.work }
$stdout.puts "ready"
$stdout.flush
$stdin.read
puts renamed.changes
