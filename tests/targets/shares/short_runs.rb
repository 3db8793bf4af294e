# A thread that computes for a moment and sleeps for longer, again and again. Prints "ready", and ends when standard input does.
#
#   ruby short_runs.rb

class Runs
  def work(sum = 0)
    20_000.times { |i| sum += i }
    sum
  end

  def rest
    sleep 0.02
  end

  def go_on
    loop do
      work
      rest
    end
  end
end

runs = Runs.new
Thread.new { runs.go_on }.name = "runs"
$stdout.puts "ready"
$stdout.flush
$stdin.read
exit!(0)
