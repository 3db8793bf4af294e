# Starts a thread when it is told to, and tells when that has ended.
require_relative "still"

Still.thread("starter", /gets|read/) do
  $stdin.gets
  Thread.new { 1 }.join
  $stdout.write("joined\n")
  $stdout.flush
  sleep
end
Still.subject("main", Thread.current, "sleep")
Thread.new { Still.report }
sleep
