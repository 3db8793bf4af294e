# Calls the methods of a C extension, one after the other, until its standard input ends: busy.rb EXTENSION
require ARGV[0]

def in_ruby(number)
  sum = 0
  (number / 10).times { |i| sum += i }
end

def round
  Busy.work(800_000)
  Busy.leaves(800_000)
  Busy.dives(800_000)
  Busy.sorts(3_000)
  Busy.yields(100_000) { |number| in_ruby(number) }
  Busy.naps(500_000)
end

ended = false
Thread.new { $stdin.read; ended = true }
puts "ready"
$stdout.flush
round until ended
