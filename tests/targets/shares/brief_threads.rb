# Threads that only compute, for about two milliseconds each: most of them begin and end without ever leaving their CPU. Prints
# "ready", and ends when standard input does; then prints how much CPU time they took per second, in ns.
#
#   ruby brief_threads.rb

def now(clock)
  Process.clock_gettime(clock, :nanosecond)
end

def live
  began = now(Process::CLOCK_THREAD_CPUTIME_ID)
  20_000.times { |i| i * i }
  now(Process::CLOCK_THREAD_CPUTIME_ID) - began
end

reader = Thread.new { $stdin.read }
$stdout.puts "ready"
$stdout.flush
began, took = now(Process::CLOCK_MONOTONIC), 0
while reader.alive?
  took += Thread.new { live }.value
  sleep 0.004
end
puts took * 1_000_000_000 / (now(Process::CLOCK_MONOTONIC) - began)
