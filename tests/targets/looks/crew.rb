# Threads for several looks: a crew that waits, and some that do one step each time that they are told to.
#
# Prints a line of JSON once all of them wait: the kernel's ids of its threads. Then it obeys lines on standard input, and
# answers each with a line of JSON once all threads wait again. The argument "busy" adds a thread that never waits.
require "json"

SYS_GETTID = 186 # x86_64
$stdout.sync = true
Thread.abort_on_exception = true

TIDS = {}
THREADS = []
GATE, STEPS, WORK, ANSWERS = Array.new(4) { Thread::Queue.new }

def crew(key, name)
  TIDS[key] = nil
  THREADS << Thread.new do
    Thread.current.name = name if name
    TIDS[key] = syscall(SYS_GETTID)
    yield
  end
end

def cpu_ns
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
end

def spin
  loop { 7 * 6 }
end

def outer
  loop do
    first_wait
    second_wait
  end
end

def first_wait
  STEPS.pop
end

def second_wait
  STEPS.pop
end

# Uses 0.2 s of CPU time each time that it gets a word, and tells all that it has used so far.
def work
  WORK.pop
  till = cpu_ns + 200_000_000
  nil until cpu_ns >= till
  ANSWERS << cpu_ns
end

(3..14).each { |i| crew("tp #{i}", format("tp %03d", i)) { GATE.pop } }
3.times { |i| crew("unnamed #{i}", nil) { sleep } }
crew("hostile", "\e[31mevil\u009b \u202e") { Thread.stop }
crew("mover", "mover") { outer }
crew("worker", "worker") { loop { work } }
if ARGV.include?("busy")
  crew("busy", "busy") do
    THREADS.delete(Thread.current)
    spin
  end
end

def settle
  Thread.pass until TIDS.values.all? && THREADS.all? { |thread| thread.status == "sleep" }
end

settle
puts JSON.generate("main" => Process.pid, **TIDS)
while (line = $stdin.gets)
  answer = nil
  case line.chomp
  when "move"
    STEPS << 1
    Thread.pass until STEPS.empty?
  when "work"
    WORK << 1
    answer = ANSWERS.pop
  when "begin"
    $ends = Thread::Queue.new
    crew("short", "short") { $ends.pop }
    settle
    answer = TIDS["short"]
  when "end"
    $ends << 1
    THREADS.pop.join
  when "turn"
    # A thread that waits for one queue after another, all in the same place.
    crew("turner", "turner") { loop { ($turn = Thread::Queue.new).pop } } unless $turn
    settle
    before = $turn
    $turn << 1
    Thread.pass while $turn.equal?(before)
    settle
    answer = Kernel.instance_method(:to_s).bind($turn).call
  when "exec"
    exec("sh", "-c", "echo null; exec sleep 1000")
  when "exit"
    exit!(0)
  end
  settle
  puts JSON.generate(answer)
end
