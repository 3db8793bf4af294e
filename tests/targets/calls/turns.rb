# A thread that waits for two pipes in turn, each in a method of its own. Prints both descriptors. Ends when its standard input does.
FIRST, SECOND = IO.pipe, IO.pipe

def first
  FIRST[0].sysread(1)
end

def second
  SECOND[0].sysread(1)
end

reader = Thread.new { loop { first; second } }
reader.name = "reader"
writer = Thread.new do
  loop do
    [FIRST, SECOND].each do |pipe|
      pipe[1].syswrite("x")
      sleep(rand / 50)
    end
  end
end
writer.name = "writer"
puts "#{FIRST[0].fileno} #{SECOND[0].fileno}"
$stdout.flush
$stdin.read
exit!(0)
