# Threads that begin during a recording and that rbdump cannot stop. Prints "ready", and does what each line of standard
# input says:
#
#   hide  a thread begins that tells the kernel of a list of robust futexes that is not glibc's, so that nothing tells
#         which native thread it is; then prints "hidden"
#   wait  a thread begins, prints its tid, and waits
#   go    it goes on, prints "goes", and computes: by then another tracer can have it
class Unstoppable
  SET_ROBUST_LIST = 273
  HEAD_BYTES = 24

  def initialize
    @go = Queue.new
    @hidden = []
  end

  def say(what)
    $stdout.write("#{what}\n")
    $stdout.flush
  end

  # An empty list: its head points at itself.
  def hide
    head = "\0" * (10 * HEAD_BYTES)
    at = [[head].pack("p").unpack1("Q")]
    head[0, 8] = at.pack("Q")
    raise "it does not hide" unless syscall(SET_ROBUST_LIST, at[0], HEAD_BYTES) == 0
    head
  end

  def hidden
    @hidden << Thread.new(@hidden.size) do |number|
      head = hide
      Thread.current.name = "hidden #{number}"
      say("hidden")
      loop { rest(head) }
    end
  end

  # The head stays where it is for as long as there are calls that have it.
  def rest(_head)
    sleep 0.01
    compute(1000)
  end

  def wait
    Thread.new do
      say(File.basename(File.readlink("/proc/thread-self")))
      @go.pop
      say("goes")
      go
    end
  end

  def go
    number = 0
    number += 1 while number >= 0
  end

  def compute(turns)
    number = 0
    number += 1 while number < turns
  end

  def run
    while (line = $stdin.gets)
      case line.chomp
      when "hide" then hidden
      when "wait" then wait
      when "go" then @go << nil
      end
    end
  end
end

unstoppable = Unstoppable.new
unstoppable.say("ready")
unstoppable.run
