# One thread in each state, and as many busy ones as the second argument says.
require_relative "still"

READ, WRITE = IO.pipe
SPINNING = []
HELD = Thread::Mutex.new
HELD.lock

def spin(number)
  SPINNING << number
  i = 0
  while true
    i += 1
  end
end

Still.thread("timed", "sleep") { sleep 3600 }
Still.thread("forever", "sleep") { sleep }
Still.thread("queue") { Still::GATE.pop }
Still.thread("mutex", "lock") { HELD.lock }
Still.thread("reader", "read") { READ.read }
Still.thread("\u540D\u524D") { Still::GATE.pop }
unnamed = Thread.new { Still::GATE.pop }
Still.subject("unnamed", unnamed, "pop")
renamed = Still.thread("first name") { Still::GATE.pop }
renamed.name = "second name"

busy = Array.new(ARGV.fetch(1).to_i) do |i|
  Thread.new { spin(i) }.tap { |thread| thread.name = "busy #{i}" }
end
Still.wait_until("all busy threads spin") { SPINNING.size == busy.size }
Still.watch("join")
unnamed.join
