# A process made by fork: what rests is the child, whose kernel threads are not those of its parent.
# needs: 1.9
require_relative "still"

before = Thread.new { sleep } # does not live on in the child
Still.name_thread(before, "before")
child = fork do
  Still.extra["pid"] = Process.pid
  Still.thread("after one") { Still.tell_task("after one"); Still::GATE.pop }
  Still.thread("after two") { Still.tell_task("after two"); [1].each { Still::GATE.pop } }
  Still.tell_task("main")
  Still.watch("pop")
  1.times { Still::GATE.pop }
end
exit!(Process.wait2(child)[1].exitstatus)
