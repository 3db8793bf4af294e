require "io/wait"

# A method whose blocks are moved by a compaction while it runs, so that its method entry is not, and whose code is held
# where it is. Then it evals thousands of blocks, some of which get the places where its own blocks were. Its own blocks
# call work_block, and those that it evals call work_eval. Prints "ready"; "many" after two rounds of that; and once
# standard input ends, how many rounds there were.
class Moved
  SOURCE = <<~METHOD
    def method(phase)
      case phase
      when :own then [
        #{(["proc { work_block }"] * 200).join(",\n    ")}
      ]
      when :compact then GC.compact
      when :eval then Array.new(2000) { eval("proc { work_eval }") }
      end
    end
  METHOD

  def spin(seconds)
    until_then = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_then
  end

  def work_block
    spin(0.001)
  end

  def work_eval
    spin(0.0003)
  end

  def round
    # What is dropped makes room, so that what is made after it is moved there.
    dropped = Array.new(100_000) { "dropped" * 10 }
    self.class.class_eval(SOURCE, __FILE__, 1000)
    held = RubyVM::InstructionSequence.of(self.class.instance_method(:method))
    method(:own).each(&:call)
    dropped.clear
    GC.start
    method(:compact)
    3.times { method(:eval).each(&:call) unless $stdin.wait_readable(0) }
    held
  end
end

$stdout.puts "ready"
$stdout.flush
rounds = 0
until $stdin.wait_readable(0)
  Moved.new.round
  next unless (rounds += 1) == 2
  $stdout.puts "many"
  $stdout.flush
end
$stdout.puts rounds
