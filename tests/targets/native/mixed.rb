# Threads and fibers that rest in C functions, which Ruby code has called that C functions have called, and so on:
# mixed.rb EXTENSION DEPTH. Prints the name of each thread with its tid, and how many frames Ruby counts in each method of
# the extension, the outermost first; one line of JSON. Then runs the commands of its standard input, until it ends.
require "json"
require ARGV[0]

DEPTH = ARGV.fetch(1).to_i

module Mixed
  module_function

  # The number of frames of the method that has called this one, and of its callers.
  def note(_)
    Thread.current.thread_variable_get(:counts) << caller_locations(1).size
  end

  def through(&block)
    block.call
  ensure
    block.to_s
  end

  def down(number)
    return Thread.current.thread_variable_get(:rest).call if number == 0
    case number % 4
    when 0 then yields(number) { |n| through { down(n - 1) } }
    when 1 then calls(number - 1)
    when 2 then ensures(number) { |n| [n].each { |m| down(m - 1) } }
    else sorts(number) { |n| begin; down(n - 1); ensure; n.to_s; end }
    end
  end
end

THREADS = []
RESTING = Queue.new

def rests(name, &rest)
  THREADS << Thread.new do
    thread = Thread.current
    thread.name = name
    thread.thread_variable_set(:tid, File.readlink("/proc/thread-self").split("/").last.to_i)
    thread.thread_variable_set(:counts, [])
    thread.thread_variable_set(:rest, proc { RESTING << true; rest.call })
    Mixed.down(DEPTH)
  end
end

EMPTY = Queue.new
READ, WRITE = IO.pipe
LOCK = Mutex.new
LOCK.lock
rests("sleeps") { sleep }
rests("timed") { sleep 3600 }
rests("reads") { READ.read }
rests("pops") { EMPTY.pop }
rests("locks") { LOCK.lock }
rests("joins") { THREADS.first.join }
rests("in a fiber") do
  suspended = Fiber.new { [1].each { Fiber.yield } }
  suspended.resume
  Fiber.new { [1].map { sleep } }.resume
  suspended.to_s
end
THREADS.each { RESTING.pop }
# The notes are made before a thread rests; it is at rest when the kernel says that it sleeps.
state = proc { |tid| File.read("/proc/self/task/#{tid}/stat").split(")").last.split.first }
Thread.pass until THREADS.all? { |thread| thread.stop? && state.call(thread.thread_variable_get(:tid)) == "S" }
said = THREADS.map { |thread| [thread.name, %w[tid counts].map { |key| [key, thread.thread_variable_get(key)] }.to_h] }.to_h
puts JSON.generate(said)
$stdout.flush

while (command = $stdin.gets)
  case command.chomp
  when "collect" then GC.start
  when "wait" then [1].each { Mixed.waits(1) }
  when "deflate" then (require "zlib"; Zlib::Deflate.deflate("native " * 10_000))
  when "crash" then [1].each { Process.kill(:SEGV, $$); sleep }
  end
end
exit!
