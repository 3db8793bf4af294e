# A thread that has ended, and was the last to run: all others are asleep or in a system call since before its end.
require_relative "still"

Still.thread("asleep", "sleep") { sleep }
Still.subject("main", Thread.current, "read")
last = Thread.new { Still.report }
last.name = "last"
$stdin.read
exit!(0)
