# Threads that wake so many times a second each. Says what they have done by now for each line that it reads.
count, rate = ARGV.map(&:to_i)
done = 0
count.times { Thread.new { loop { sleep 1.0 / rate; done += 1 } } }
$stdout.sync = true
puts "ready"
puts done while $stdin.gets
