# Starts a thread when it is told to, and tells when that has ended.
require_relative "still"

Still.thread("starter", "gets") do
  exit!(0) unless $stdin.gets
  Thread.new { 1 }.join
  $stdout.write("joined\n")
  $stdout.flush
  $stdin.read
  exit!(0)
end
Still.subject("main", Thread.current, "sleep")
Thread.new { Still.report }
sleep
