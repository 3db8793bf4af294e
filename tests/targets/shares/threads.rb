# Threads that sleep and work by turns, so that they are given up and taken by native threads all the time, where these are
# shared (RUBY_MN_THREADS). Prints "ready", and ends when standard input does.
threads = Array.new(6) do |i|
  thread = Thread.new do
    loop do
      20_000.times { |n| n + i }
      sleep(0.001)
    end
  end
  thread.name = "worker #{i}"
  thread
end
$stdout.puts "ready"
$stdout.flush
$stdin.read
threads.each(&:kill)
