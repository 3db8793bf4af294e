# A process made by fork: what rests is the child, whose kernel threads are not those of its parent.
require_relative "still"

before = Thread.new { sleep } # does not live on in the child
before.name = "before"
child = fork do
  Still.extra["pid"] = Process.pid
  Still.thread("after one") { Still::GATE.pop }
  Still.thread("after two") { [1].each { Still::GATE.pop } }
  Still.watch("pop")
  1.times { Still::GATE.pop }
end
exit!(Process.wait2(child)[1].exitstatus)
