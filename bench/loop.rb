# A process to be sampled: loop.rb FRAMES IDLE. Its main thread calls a method again and again, FRAMES control frames
# deep; IDLE threads wait, 10 frames deep. Writes "ready" once all are there, and from then on, every hundredth of a
# second or so, a line: the time (CLOCK_MONOTONIC) and how many calls there were.
FRAMES, IDLE = ARGV.map(&:to_i)
ARRIVED, NEVER = Queue.new, Queue.new

def leaf(n) = n + 1

def work
  $stdout.write("ready\n")
  $stdout.flush
  n = 0
  loops = 0
  while true
    while loops < 200_000
      n = leaf(n)
      loops += 1
    end
    loops = 0
    $stdout.write("#{Process.clock_gettime(Process::CLOCK_MONOTONIC)} #{n}\n")
    $stdout.flush
  end
end

def wait(n)
  return wait(n - 1) if n > 0
  ARRIVED << true
  NEVER.pop
end

def down(n)
  n > 0 ? down(n - 1) : work
end

IDLE.times { Thread.new { wait(6) } }
IDLE.times { ARRIVED.pop }
down(FRAMES - 4)
