# Waits that libraries of Ruby offer: Monitor (in C since 2.7), Timeout, sockets. Not every installation has these.
# needs: 2.7
require_relative "still"
begin
  require "monitor"
  require "timeout"
  require "socket"
rescue LoadError => error
  Still.extra["lacks"] = error.message
end

unless Still.extra["lacks"]
  held = Monitor.new
  Still.thread("holder") { held.synchronize { Still::GATE.pop } }
  Still.wait_until("the monitor is held") { held.mon_locked? }
  Still.thread("monitor", "synchronize") { held.synchronize { 1 } }
  Still.thread("monitor condition", /sleep|wait/) do
    own = Monitor.new
    condition = own.new_cond
    own.synchronize { condition.wait }
  end
  Still.thread("timeout") { Timeout.timeout(3600) { Still::GATE.pop } }
  one, other = UNIXSocket.pair
  Still.thread("recv", "recv") { one.recv(10) }
  server = TCPServer.new("127.0.0.1", 0)
  Still.thread("accept", "accept") { server.accept }
end
Still.watch("sleep")
sleep
