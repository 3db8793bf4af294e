# A hundred threads.
# needs: 1.9
require_relative "still"

def wait(n)
  n == 0 ? Still::GATE.pop : [n].each { |x| wait(x - 1) }
end

100.times { |i| Still.thread("thread #{i}") { wait(i % 10) } }
Still.watch("sleep")
sleep
