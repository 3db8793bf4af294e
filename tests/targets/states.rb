# One thread in each state, and as many busy ones as the second argument says.
# needs: 1.9
require_relative "still"

READ, WRITE = IO.pipe
SPINNING = []
HELD = Mutex.new
HELD.lock

def spin(number, on = true)
  SPINNING << number
  i = 0
  while true
    i += 1
    break unless on
  end
end

30.times { spin(0, false) } # MJIT compiles what is called often
SPINNING.clear

Still.thread("timed", "sleep") { Still.tell_task("timed"); sleep 3600 }
Still.thread("forever", "sleep") { Still.tell_task("forever"); sleep }
Still.thread("queue") { Still.tell_task("queue"); Still::GATE.pop }
Still.thread("mutex", "lock") { Still.tell_task("mutex"); HELD.lock }
Still.thread("reader", "read") { Still.tell_task("reader"); READ.read }
Still.thread("\u540D\u524D") { Still::GATE.pop }
unnamed = Thread.new { Still::GATE.pop }
Still.subject("unnamed", unnamed, "pop")
renamed = Still.thread("first name") { Still.tell_task("first name"); Still::GATE.pop }
Still.name_thread(renamed, "second name")

busy = Array.new(ARGV.fetch(1).to_i) do |i|
  Thread.new { spin(i) }.tap { |thread| Still.name_thread(thread, "busy #{i}") }
end
Still.wait_until("all busy threads spin") { SPINNING.size == busy.size }
Still.tell_task("main")
Still.watch("join")
unnamed.join
