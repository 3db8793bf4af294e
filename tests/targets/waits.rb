# Every way to wait.
# needs: 2.0
require_relative "still"

read, WRITE = IO.pipe
FULL_READ, full_write = IO.pipe
LOCKED = File.open(File.join(ARGV.fetch(0), "locked"), "w")
LOCKED.flock(File::LOCK_EX)
child = spawn("exec cat", in: read.dup, out: File::NULL) # ends with this process, which holds the other end
sized = Thread::SizedQueue.new(1)
sized.push(1)
mutex = Thread::Mutex.new
condition = Thread::ConditionVariable.new
taken = Thread::Mutex.new
taken.lock

{
  "read of pipe" => ["read", -> { read.read }],
  "gets" => ["gets", -> { read.dup.gets }],
  "readpartial" => ["readpartial", -> { read.dup.readpartial(10) }],
  "sysread" => ["sysread", -> { read.dup.sysread(10) }],
  "write" => ["write", -> { full_write.write("x" * 1_000_000) }],
  "select" => ["select", -> { IO.select([read], nil, nil) }],
  "timed select" => ["select", -> { IO.select([read], nil, nil, 3600) }],
  "wait of process" => ["wait", -> { Process.wait(child) }],
  "value of detached" => ["value", -> { Process.detach(child).value }],
  "flock" => ["flock", -> { File.open(LOCKED.path).flock(File::LOCK_EX) }],
  "backtick" => ["`", -> { `exec cat` }],
  "push" => ["push", -> { sized.push(2) }],
  "queue" => ["pop", -> { Thread::Queue.new.pop }],
  "deq" => ["pop", -> { Thread::Queue.new.deq }],
  "shift" => ["pop", -> { Thread::SizedQueue.new(1).shift }],
  "condition variable" => [/sleep|wait/, -> { mutex.synchronize { condition.wait(mutex) } }],
  "timed condition variable" => [/sleep|wait/, -> { mutex.synchronize { condition.wait(mutex, 3600) } }],
  "mutex" => ["lock", -> { taken.lock }],
  "mutex sleep" => ["sleep", -> { Thread::Mutex.new.tap(&:lock).sleep }],
  "timed mutex sleep" => ["sleep", -> { Thread::Mutex.new.tap(&:lock).sleep(3600) }],
  "sleep" => ["sleep", -> { sleep }],
  "timed sleep" => ["sleep", -> { sleep 3600.5 }],
  "stop" => ["stop", -> { Thread.stop }]
}.each { |name, (top, body)| Still.thread(name, top) { body.call } }

subject = Still.thread("joined") { Still::GATE.pop }
Still.thread("join", "join") { subject.join }
Still.thread("timed join", "join") { subject.join(3600) }
Still.thread("value", "value") { subject.value }
Still.thread("each of threads", "join") { [subject].each(&:join) }
Still.watch("join")
subject.join
