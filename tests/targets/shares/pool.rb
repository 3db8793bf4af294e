# A pool that grows from 2 threads to so many (50) and shrinks to 2 again, so often as a line of standard input says. All
# of its threads begin when that line comes; the oldest end first, so that each is there for about half a second. What
# they do is one of KINDS, and each has the name of that:
#
#   compute  calls two methods by turns from two lines, and lets others have the GVL: it has it, or waits for it
#   rest     sleeps for a hundredth of a second, again and again
#   receive  reads from a pipe: another process writes what time it is into that every hundredth of a second
#   burn     compresses, which needs a CPU and not the GVL: one of all
#
# Prints "ready"; "done" once the pool is empty; and, when standard input ends, for each kind of how many seconds its
# threads were there and waited for something other than the GVL or a CPU, as their own clocks tell. How many garbage
# collections there were until the pool was empty, it writes to the file that POOL_COLLECTIONS names, if there is that.
#
#   ruby pool.rb [THREADS]
require "json"
require "zlib"

class Pool
  FEWEST = 2
  KINDS = %w[compute rest receive rest receive rest].freeze
  # Zlib asks for the GVL each time that 16 KB of what comes out are full: of this text, little comes out.
  TEXT = Random.new(1).bytes(20_000) * 1000

  class Member
    attr_reader :kind
    attr_accessor :thread, :leaves

    def initialize(kind)
      @kind = kind
      @leaves = false
    end
  end

  def initialize(most)
    @most = most
    @told = []
    @members = []
    @begun = 0
    @pipes = Array.new(most) { IO.pipe }
    @writer = fork { write }
  end

  # The other process.
  def write
    $stdin.close
    $stdout.close
    @pipes.each { |read, _| read.close }
    loop do
      sleep 0.01
      @pipes.each { |_, pipe| pipe.write_nonblock([now].pack("d"), exception: false) }
    end
  rescue Errno::EPIPE
    exit!(0)
  end

  def a(number)
    number = b(number)
    c(number)
  end

  def b(number)
    number + 1
  end

  def c(number)
    number - 1
  end

  def compute(member)
    number = count = 0
    until member.leaves
      number = a(number)
      Thread.pass if (count += 1) % 8000 == 0
    end
    0
  end

  def rest(member)
    waited = 0
    until member.leaves
      began = now
      sleep 0.01
      waited += [now - began, 0.01].min
    end
    waited
  end

  def receive(member)
    waited = 0
    pipe = @pipes.pop
    until member.leaves
      began = now
      written = pipe[0].readpartial(8).unpack1("d")
      waited += written - began if written > began
    end
    @pipes.push(pipe)
    waited
  end

  def burn(member)
    Zlib::Deflate.deflate(TEXT, 9) until member.leaves
    0
  end

  def work(member)
    Thread.current.name = member.kind
    began = now
    waited =
      case member.kind
      when "compute" then compute(member)
      when "rest" then rest(member)
      when "receive" then receive(member)
      when "burn" then burn(member)
      end
    @told << [member.kind, now - began, waited]
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # There is never more than one that burns.
  def enter
    kind = @begun % @most == FEWEST ? "burn" : KINDS[@begun % KINDS.size]
    @begun += 1
    member = Member.new(kind)
    member.thread = Thread.new { work(member) }
    @members << member
  end

  def leave
    member = @members.shift
    member.leaves = true
    member.thread.join
  end

  def grow_and_shrink
    while @members.size < @most
      enter
      sleep 0.008
    end
    while @members.size > FEWEST
      leave
      sleep 0.008
    end
  end

  def run(turns)
    FEWEST.times { enter }
    turns.times { grow_and_shrink }
    leave until @members.empty?
    Process.kill(:KILL, @writer)
    Process.wait(@writer)
  end

  def told
    @told.group_by(&:first).transform_values { |told| told.map { |_, *times| times }.transpose.map(&:sum) }
  end
end

pool = Pool.new((ARGV[0] || 50).to_i)
$stdout.puts "ready"
$stdout.flush
turns = $stdin.gets.to_i
collections = GC.count
pool.run(turns)
File.write(ENV["POOL_COLLECTIONS"], GC.count - collections) if ENV["POOL_COLLECTIONS"]
$stdout.puts "done"
$stdout.flush
$stdin.read
$stdout.puts JSON.generate(pool.told)
