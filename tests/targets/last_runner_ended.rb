# A thread that has ended, and was the last to run: all others are asleep or in a system call since before its end.
# needs: 1.9
require_relative "still"

Still.thread("asleep", "sleep") { sleep }
Still.subject("main", Thread.current, "read")
last = Thread.new { Still.report }
Still.name_thread(last, "last")
$stdin.read
exit!(0)
