# Threads that wait for something outside of Ruby, each by a method of Ruby's. Prints one line for each thread with a descriptor,
# with tabs: its name, the descriptor, and its kind; then an empty line. Ends when its standard input does: threads.rb FOLDER
require "socket"

def waits(name, io = nil, kind = nil)
  thread = Thread.new { yield }
  thread.name = name
  puts [name, io.fileno, kind].join("\t") if io
end

# 157: prctl, 1: PR_SET_PDEATHSIG, 9: SIGKILL
def fork_bound
  fork do
    syscall(157, 1, 9)
    yield
  end
end

server = TCPServer.new("127.0.0.1", 0)
waits("accept", server, "socket") { server.accept }
reads, writes = IO.pipe
waits("pipe", reads, "pipe") { reads.read }
full, filled = IO.pipe
waits("full pipe", filled, "pipe") { filled.write("x" * 1_000_000) }
one, other = UNIXSocket.pair
waits("unix", one, "socket") { one.recv(1) }
selected, = IO.pipe
waits("select", selected, "pipe") { IO.select([selected], nil, nil, 100_000) }
other_server = TCPServer.new("127.0.0.1", 0)
client = TCPSocket.new("127.0.0.1", other_server.local_address.ip_port)
waits("client", client, "socket") { client.gets }
lock = File.open(File.join(ARGV.fetch(0), "lock"), "w").tap { |file| file.flock(File::LOCK_EX) }
waiting = File.open(lock.path, "w")
waits("flock", waiting, "file") { waiting.flock(File::LOCK_EX) }
waits("sleep") { sleep 100_000 }
waits("child") { Process.wait(fork_bound { sleep }) }
puts
$stdout.flush
$stdin.read
exit!(0)
