# Threads that compute, sleep, read and write, each all the time, so that each is on a CPU, waits for one, waits for the GVL,
# sleeps or is blocked again and again. Prints "ready", and ends when standard input does.
#
#   ruby time_lines.rb

class TimeLines
  def compute
    loop { 1000.times { |i| i * i } }
  end

  def rest
    loop { sleep 0.01 }
  end

  def receive(from)
    loop { from.readpartial(100) }
  end

  def send_to(to)
    loop do
      to.write("x" * 10)
      sleep 0.003
    end
  end
end

lines = TimeLines.new
from, to = IO.pipe
[-> { lines.compute }, -> { lines.compute }, -> { lines.rest }, -> { lines.receive(from) }, -> { lines.send_to(to) }].each do |work|
  Thread.new { work.call }
end
puts "ready"
$stdout.flush
$stdin.read
exit!(0)
