# Forks a child for each system call, which goes to sleep in this call. Prints one line for each child, with tabs: its pid,
# the number of the call, and what rbdump must say of it; then an empty line. Ends when its standard input does. With names of
# calls in the arguments, only these: calls.rb FOLDER [NAME…]
FOLDER = ARGV.fetch(0)
LONG = 100_000
@kept = []

# The address of a string's bytes, which stay where they are.
def at(*values, as)
  @kept << values.pack(as)
  [@kept.last].pack("P").unpack("Q")[0]
end

def room(size)
  at("\0" * size, "a*")
end

def timespec(seconds, ns = 0)
  at(seconds, ns, "q2")
end

def pollfds(*fds)
  at(*fds.flat_map { |fd, events| [fd, events, 0] }, "iss" * fds.size)
end

def set_of(*fds)
  words = [0] * 16
  fds.each { |fd| words[fd / 64] |= 1 << fd % 64 }
  at(*words, "Q16")
end

# Since 3.0, Ruby makes pipes nonblocking. 72: fcntl, 4: F_SETFL, 0: without O_NONBLOCK.
def fresh_pipe
  @kept << (pair = IO.pipe)
  pair.map(&:fileno).each { |fd| syscall(72, fd, 4, 0) }
end

def full_pipe
  reads, writes = fresh_pipe
  nil while @kept.last[1].write_nonblock("x" * 4096, :exception => false) != :wait_writable
  syscall(72, writes, 4, 0)
  [reads, writes]
end

# 157: prctl, 1: PR_SET_PDEATHSIG, 9: SIGKILL. All processes end with their parents.
def fork_bound
  fork do
    syscall(157, 1, 9)
    yield
  end
end

def plain_file
  @kept << (file = File.open(File.join(FOLDER, "file"), "w+"))
  file.write("content")
  file.flush
  file.rewind
  file.fileno
end

def address_of_full_server
  path = File.join(FOLDER, "server")
  # 41: socket, 49: bind, 50: listen, of AF_UNIX and SOCK_STREAM.
  server = syscall(41, 1, 1, 0)
  address = [1, path].pack("Sa108")
  syscall(49, server, at(address, "a*"), 110)
  syscall(50, server, 0)
  syscall(42, syscall(41, 1, 1, 0), at(address, "a*"), 110)
  [address, path]
end

def sockets
  pair = room(8)
  syscall(53, 1, 1, 0, pair)
  @kept.last.unpack("i2")
end

def child
  fork_bound { sleep }
end

REAL, MONOTONIC = Process::CLOCK_REALTIME, Process::CLOCK_MONOTONIC

def now(clock)
  Process.clock_gettime(clock, :nanosecond)
end

# What each does: [number, argument, …], and what it is in words.
CALLS = {
  "read" => -> { r, = fresh_pipe; [[0, r, room(8), 8], "reads from fd #{r}"] },
  "readv" => -> { r, = fresh_pipe; [[19, r, at(room(8), 8, "QQ"), 1], "reads from fd #{r}"] },
  "write" => -> { _, w = full_pipe; [[1, w, room(8), 8], "writes to fd #{w}"] },
  "writev" => -> { _, w = full_pipe; [[20, w, at(room(8), 8, "QQ"), 1], "writes to fd #{w}"] },
  "splice" => -> { r, = fresh_pipe; _, w = fresh_pipe; [[275, r, 0, w, 0, 100, 0], "moves bytes from fd #{r} to fd #{w}"] },
  "tee" => -> { r, = fresh_pipe; _, w = fresh_pipe; [[276, r, w, 100, 0], "copies bytes from fd #{r} to fd #{w}"] },
  "sendfile" => -> { _, w = full_pipe; f = plain_file; [[40, w, f, 0, 7], "copies bytes from fd #{f} to fd #{w}"] },
  "vmsplice" => -> { _, w = full_pipe; [[278, w, at(room(8), 8, "QQ"), 1, 0], "moves memory through fd #{w}"] },
  "connect" => lambda {
    address, path = address_of_full_server
    fd = syscall(41, 1, 1, 0)
    [[42, fd, at(address, "a*"), 110], "connects fd #{fd} to #{path}"]
  },
  "accept" => lambda {
    fd = syscall(41, 1, 1, 0)
    syscall(49, fd, at([1].pack("S"), "a*"), 2)
    syscall(50, fd, 1)
    [[43, fd, 0, 0], "accepts a connection on fd #{fd}"]
  },
  "recvfrom" => -> { fd, = sockets; [[45, fd, room(8), 8, 0, 0, 0], "receives from fd #{fd}"] },
  "recvmsg" => lambda {
    fd, = sockets
    [[47, fd, at(0, 0, at(room(8), 8, "QQ"), 1, 0, 0, 0, "Q7"), 0], "receives from fd #{fd}"]
  },
  "recvmmsg" => lambda {
    fd, = sockets
    [[299, fd, at(0, 0, at(room(8), 8, "QQ"), 1, 0, 0, 0, 0, "Q8"), 1, 0, 0], "receives from fd #{fd}"]
  },
  "flock" => lambda {
    @kept << (file = File.open(File.join(FOLDER, "locked"), "w"))
    @kept << (other = File.open(File.join(FOLDER, "locked"), "w"))
    other.flock(File::LOCK_EX)
    [[73, file.fileno, 2], "waits for a lock (flock) on fd #{file.fileno}"]
  },
  "fcntl" => lambda {
    path = File.join(FOLDER, "posix")
    ready, tells = IO.pipe
    fork_bound do
      file = File.open(path, "w")
      syscall(72, file.fileno, 6, at(1, 0, 0, 0, 0, 0, "ssx4qqix4"))
      tells.write("x")
      sleep
    end
    ready.read(1)
    @kept << (file = File.open(path, "r+"))
    [[72, file.fileno, 7, at(1, 0, 0, 0, 0, 0, "ssx4qqix4")], "waits for a lock (fcntl) on fd #{file.fileno}"]
  },
  "open" => lambda {
    path = File.join(FOLDER, "fifo 1")
    File.mkfifo(path)
    [[2, at(path, "a*x"), 0], "opens #{path}"]
  },
  "openat" => lambda {
    path = File.join(FOLDER, "fifo\n2")
    File.mkfifo(path)
    [[257, -100, at(path, "a*x"), 0], "opens #{path}"]
  },
  "poll" => lambda {
    one, = fresh_pipe
    other, = sockets
    [[7, pollfds([one, 1], [-1, 1], [other, 3]), 3, LONG * 1000], "waits for fd #{one} (read), fd #{other} (read, priority), for at most #{LONG} s"]
  },
  "ppoll" => -> { r, = fresh_pipe; [[271, pollfds([r, 1]), 1, timespec(LONG, 500_000_000), 0, 0], "waits for fd #{r} (read), for at most #{LONG}.5 s"] },
  "ppoll for nothing" => -> { [[271, 0, 0, 0, 0, 0], "waits for"] },
  "select" => lambda {
    r, = fresh_pipe
    _, w = full_pipe
    [[23, 1024, set_of(r), set_of(w), 0, at(LONG, 250_000, "q2")], "waits for fd #{r} (read), fd #{w} (write), for at most #{LONG}.25 s"]
  },
  "pselect6" => -> { r, = fresh_pipe; [[270, r + 1, set_of(r, r + 5), 0, set_of(r), 0, 0], "waits for fd #{r} (read, priority)"] },
  "epoll_wait" => -> { fd = syscall(291, 0); [[232, fd, room(12), 1, LONG * 1000], "waits for the epoll set fd #{fd}, for at most #{LONG} s"] },
  "epoll_pwait" => -> { fd = syscall(291, 0); [[281, fd, room(12), 1, -1, 0, 8], "waits for the epoll set fd #{fd}"] },
  "wait4" => -> { pid = child; [[61, pid, 0, 0, 0], "waits for child #{pid}"] },
  # 56: clone, with CLONE_NEWPID and SIGCHLD, if that is permitted: the child is in a pid namespace of its own. Not unshare:
  # after it, a process can start no threads, but fork lets Ruby start its timer thread again.
  "wait4 for an init" => lambda {
    pid = begin
      syscall(56, 0x20000000 | 17, 0, 0, 0, 0)
    rescue Errno::EPERM
      child
    end
    if pid.zero?
      syscall(157, 1, 9)
      syscall(34)
    end
    [[61, pid, 0, 0, 0], "waits for child #{pid}"]
  },
  "wait4 for any" => -> { child; [[61, -1, 0, 0, 0], "waits for any child"] },
  "waitid" => -> { pid = child; [[247, 1, pid, room(128), 4, 0], "waits for child #{pid}"] },
  "nanosleep" => -> { [[35, timespec(LONG), 0], "sleeps for #{LONG} s"] },
  "clock_nanosleep" => -> { [[230, 1, 0, timespec(LONG, 5), 0], "sleeps for #{LONG}.000000005 s"] },
  "clock_nanosleep until" => lambda {
    until_ns = now(REAL) + LONG * 1_000_000_000
    [[230, 0, 1, timespec(*until_ns.divmod(1_000_000_000)), 0], "sleeps until UNTIL", until_ns]
  },
  "clock_nanosleep monotonic" => lambda {
    until_ns = now(MONOTONIC) + LONG * 1_000_000_000
    [[230, 1, 1, timespec(*until_ns.divmod(1_000_000_000)), 0], "sleeps until UNTIL", until_ns - now(MONOTONIC) + now(REAL)]
  },
  "pause" => -> { [[34], "waits for a signal"] },
  "rt_sigsuspend" => -> { [[130, at(0, "Q"), 8], "waits for a signal"] },
  "rt_sigtimedwait" => -> { [[128, at(1 << 9 | 1 << 33, "Q"), 0, timespec(LONG), 8], "waits for one of the signals SIGUSR1, 34, for at most #{LONG} s"] },
  "futex" => -> { word = at(7, "I"); [[202, word, 128, 7, timespec(LONG)], "waits for futex 0x#{word.to_s(16)}, for at most #{LONG} s"] },
  "futex without end" => -> { word = at(7, "I"); [[202, word, 0, 7, 0], "waits for futex 0x#{word.to_s(16)}"] },
  "futex until" => lambda {
    word = at(7, "I")
    until_ns = now(REAL) + LONG * 1_000_000_000
    [[202, word, 9 | 256, 7, timespec(*until_ns.divmod(1_000_000_000)), 0, 0xffffffff], "waits for futex 0x#{word.to_s(16)}, until UNTIL at the latest", until_ns]
  },
  "futex until monotonic" => lambda {
    word = at(7, "I")
    until_ns = now(MONOTONIC) + LONG * 1_000_000_000
    [[202, word, 9, 7, timespec(*until_ns.divmod(1_000_000_000)), 0, 0xffffffff], "waits for futex 0x#{word.to_s(16)}, until UNTIL at the latest", until_ns - now(MONOTONIC) + now(REAL)]
  },
}

wanted = ARGV.drop(1)
pids = CALLS.map do |name, make|
  next unless wanted.empty? || wanted.include?(name)

  reads, writes = IO.pipe
  pid = fork_bound do
    $stdin.close
    call, text, until_ns = make.call
    writes.puts([name, call[0], text.unpack("H*")[0], until_ns].join("\t"))
    writes.close
    syscall(*call)
    raise "#{name} has returned"
  end
  writes.close
  puts "#{pid}\t#{reads.gets}"
  pid
end
puts
$stdout.flush
$stdin.read
pids.compact.each { |pid| Process.kill(:KILL, pid) }
exit!(0)
