# Calls a method again and again, and collects garbage fifty times a second. Prints "ready" before that; is to be killed.
def leaf(n)
  n + 1
end

def work
  n = 0
  n = leaf(n) while n < 100_000
end

$stdout.puts "ready"
$stdout.flush
ends = 0
loop do
  work
  now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  next if now < ends
  GC.start
  ends = now + 0.02
end
