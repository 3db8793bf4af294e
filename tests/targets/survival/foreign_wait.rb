# A C function waits for an event, without the GVL: `ruby foreign_wait.rb [THREADS]`, beside so many threads that run.
# Prints the id of the waiting thread. When standard input ends, the event comes; prints what the function returned.
require "fiddle"

SYS_GETTID = 186 # x86_64
EPOLL_CTL_ADD = 1
EPOLLIN = 1

def function(name, *arguments)
  types = arguments.map { |type| type == :pointer ? Fiddle::TYPE_VOIDP : Fiddle::TYPE_INT }
  Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], types, Fiddle::TYPE_INT)
end

read, write = IO.pipe
epoll = function("epoll_create1", :int).call(0)
function("epoll_ctl", :int, :int, :int, :pointer).call(epoll, EPOLL_CTL_ADD, read.fileno, [EPOLLIN, 0].pack("LQ"))
epoll_wait = function("epoll_wait", :int, :pointer, :int, :int)

waiting = Thread.new do
  puts syscall(SYS_GETTID)
  $stdout.flush
  epoll_wait.call(epoll, "\0" * 12, 1, -1)
end
ARGV.fetch(0, "0").to_i.times { Thread.new { loop {} } }
$stdin.read
write.write("x")
puts waiting.value
