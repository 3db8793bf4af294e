# A server that forks its workers before there is anything to do, and replaces those that die, as unicorn does:
#
#   ruby prefork.rb WORKERS
#
# A worker that has begun to serve prints "worker PID" on standard output. All end when standard input does; workers, too, if
# there is no server any more.
class Server
  def initialize(workers)
    @workers = workers
    @pids = []
  end

  def run
    @workers.times { start }
    Thread.new do
      $stdin.read
      exit!(0)
    end
    loop { replace }
  end

  def start
    @pids << fork { Worker.new.run }
  end

  def replace
    pid = Process.wait
    @pids.delete(pid)
    start
  end
end

class Worker
  def run
    $stdin.close
    $stdout.write("worker #{Process.pid}\n")
    $stdout.flush
    server = Process.ppid
    serve while Process.ppid == server
  end

  def serve
    handle
    idle
  end

  def handle
    limit = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) + 3_000_000
    while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) < limit
      i = 0
      i += 1 while i < 1000
    end
  end

  def idle
    sleep 0.03
  end
end

$stdout.sync = true
Server.new(Integer(ARGV[0])).run
