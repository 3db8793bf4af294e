# One thread that does four things in turn: 25 % of its time the garbage collector runs, 25 % it computes, 30 % it waits in
# read(2) for what another process writes, and 20 % it sleeps.
#
#   ruby phases.rb FOLDER
require_relative "timeline"

class Phases
  KEEP = Array.new(200_000) { |i| i.to_s } # so that a collection takes much longer than its call

  def initialize(folder)
    # Of a pipe of its own making, Ruby 3.0 and later do not wait in read(2), but in poll(2).
    names = %w[request answer].map { |name| "#{folder}/#{name}" }
    names.each { |name| File.mkfifo(name) }
    fork { answer(*names) }
    @request = File.open(names[0], "w")
    @answer = File.open(names[1], "r")
    names.each { |name| File.unlink(name) } # both ends are open: the folder can be used again
    @request.sync = true
    @timeline = Timeline.new("main")
  end

  # The other process.
  def answer(request, answer)
    $stdin.close
    $stdout.reopen(File::NULL)
    request = File.open(request, "r")
    answer = File.open(answer, "w")
    while request.sysread(1)
      sleep Timeline.varied(60_000_000) / 1e9
      answer.syswrite(".")
    end
  rescue EOFError, Errno::EPIPE
    exit!(0)
  end

  def collect
    @timeline.note("gc")
    limit = Timeline.now + Timeline.varied(50_000_000)
    GC.start while Timeline.now < limit
  end

  def compute
    @timeline.note("cpu")
    Timeline.compute(Timeline.varied(50_000_000))
  end

  def receive
    @timeline.note("blocked")
    @request.syswrite(".")
    @answer.getbyte # IO#sysread waits in poll(2) first, until 3.0
  end

  def rest
    @timeline.note("sleeping")
    sleep Timeline.varied(40_000_000) / 1e9
  end

  def run
    until Timeline.done?
      collect
      compute
      receive
      rest
    end
    @timeline.note(nil)
  end
end

phases = Phases.new(ARGV[0])
Timeline.ready
phases.run
Timeline.tell
