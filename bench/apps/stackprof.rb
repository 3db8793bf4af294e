# Loaded into an application with -r: samples it with stackprof, in the process. Waits until the file $STACKPROF.begin is there,
# samples the CPU time every 2 ms until $STACKPROF.end is there, and writes to $STACKPROF a line of JSON: for each method in how
# many samples it was, and in how many of these as the innermost frame.
require "json"
require "stackprof"

Thread.new do
  file = ENV.fetch("STACKPROF")
  sleep 0.02 until File.exist?("#{file}.begin")
  StackProf.start(mode: :cpu, interval: 2000, raw: true)
  sleep 0.02 until File.exist?("#{file}.end")
  StackProf.stop
  results = StackProf.results
  counts = Hash.new { |all, name| all[name] = [0, 0] }
  raw = results[:raw]
  until raw.empty?
    *stack, times = raw.shift(raw.first + 2).drop(1)
    names = stack.map { |frame| results[:frames][frame][:name] }
    names.uniq.each { |name| counts[name][0] += times }
    counts[names.last][1] += times
  end
  File.write("#{file}.new", JSON.generate(samples: results[:samples], gc: results[:gc_samples], methods: counts))
  File.rename("#{file}.new", file)
end
