# Becomes a user, then prints "ready", and computes and sleeps by turns until standard input ends.
#
#   ruby as_user.rb UID

Process::Sys.setuid(Integer(ARGV[0]))
Thread.new do
  loop do
    1000.times { |i| i * i }
    sleep 0.01
  end
end
$stdout.puts "ready"
$stdout.flush
$stdin.read
