# A thread that waits a thousand times a second and more, at two places, twice as long at one of them as at the other. Prints
# "ready", and ends when standard input does; then prints for each place how long it waited there in all, in ns.
#
#   ruby many_waits.rb

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

class Waits
  attr_reader :short, :long

  def initialize
    @short = @long = 0
  end

  def wait_short
    began = now
    sleep 0.0003
    @short += now - began
  end

  def wait_long
    began = now
    sleep 0.0006
    @long += now - began
  end

  def go_on
    loop do
      wait_short
      wait_long
    end
  end
end

waits = Waits.new
Thread.new { waits.go_on }.name = "waits"
$stdout.puts "ready"
$stdout.flush
$stdin.read
puts "#{waits.short} #{waits.long}"
