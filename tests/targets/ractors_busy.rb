# needs: 3.0
# Four ractors, each with two threads that never stop running, and one that tells what Ruby shows of them.
require_relative "still"

Warning[:experimental] = false
told_read, told_write = IO.pipe

def spin
  n = 0
  n += 1 while true
end

def work(depth)
  depth == 0 ? spin : [depth].each { |d| work(d - 1) }
end

ractors = Array.new(4) do |i|
  Ractor.new(i, told_write.fileno) do |number, fileno|
    busy = Array.new(2) { |t| Thread.new { work(number + t) } }
    busy.each_with_index { |thread, t| thread.name = "busy #{number} #{t}" }
    Thread.current.name = "teller #{number}"
    spins = busy.map do |thread|
      nil until thread.backtrace_locations(0, 1)&.first&.base_label == "spin"
      [thread.name, thread.backtrace_locations.map { |at| [at.path, at.absolute_path, at.lineno, at.label] }]
    end
    told = IO.for_fd(fileno, autoclose: false)
    told.syswrite(Marshal.dump(spins))
    sleep
  end
end

told = ractors.flat_map { Marshal.load(told_read) }
Still.extra["busy"] = told.map { |name, frames| { "name" => name, "frames" => frames } }
Still.watch("sleep")
sleep
