# A thread that has a new name each quarter of a second, and calls a method while it has it: with the odd names another
# one than with the even. Old names are collected, so that a new one can come to be where one was. Prints "ready"; ends
# with standard input.
class Renamed
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
      then_ = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.25
      turn.odd? ? odd(then_) : even(then_)
    end
  end
end

Thread.new { Renamed.new.work }
$stdout.puts "ready"
$stdout.flush
$stdin.read
