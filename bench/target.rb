# A process to be dumped: target.rb sleep|busy|mixed FRAMES THREADS. Each of its THREADS threads, the main one included,
# has FRAMES control frames; "busy" ones never come to rest; if "mixed", only the main one is busy. Says "ready" on standard output once all are there, and ends
# with its standard input. One more thread does that.
MODE, FRAMES, THREADS = ARGV[0], ARGV[1].to_i, ARGV[2].to_i
ARRIVED = Queue.new

def leaf(n)
  n + 1
end

# Bottom of a stack; it or what it calls is the last of the frames.
def bottom
  ARRIVED << true
  if MODE == "sleep" || (MODE == "mixed" && Thread.current != Thread.main)
    sleep
  else
    n = 0
    n = leaf(n) while true
  end
end

def down(n)
  n == 0 ? bottom : down(n - 1)
end

# Around `down` there are: what starts the thread, `bottom`, and what it calls; `down` itself is there once for n = 0.
N = FRAMES - 4
(THREADS - 1).times { Thread.new { down(N) } }
Thread.new do
  THREADS.times { ARRIVED.pop }
  $stdout.write("ready\n")
  $stdout.flush
  $stdin.read
  exit!(0)
end
down(N)
