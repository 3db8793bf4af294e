# Starts so many programs that are no Rubies, and one that becomes a Ruby by exec for each line that it reads: says that
# one's pid.
children = Array.new(ARGV[0].to_i) { spawn("sleep", "1000") }
future = Array.new(2) do
  read, write = IO.pipe
  pid = spawn("sh", "-c", "read go; exec \"$0\" \"$@\"", *ARGV[1..], in: read)
  [pid, write]
end
all = children + future.map(&:first)
at_exit { all.each { |pid| Process.kill(:KILL, pid) rescue nil } }
$stdout.sync = true
puts "ready"
while $stdin.gets
  pid, write = future.shift
  write.puts("go")
  puts pid
end
