# A server that forks its workers: three, one of which forks a process of its own and starts a program that is no Ruby.
# Each says of itself what Ruby shows, and its parent hands that on.
# needs: 1.9
require_relative "still"

def serve(depth)
  depth == 0 ? Still::GATE.pop : serve(depth - 1)
end

# A process that forks what the block forks, and comes to rest.
def worker(depth)
  told, tell = IO.pipe
  pid = fork do
    told.close
    $stdout.reopen(tell)
    Still.extra.clear
    Still.extra["processes"] = {}
    yield
    Still.thread("of worker #{depth}") { Still::GATE.pop }
    Still.watch("pop")
    serve(depth)
  end
  tell.close
  Still.extra["processes"][pid.to_s] = told.gets
end

Still.extra["processes"] = {}
worker(1) {}
worker(2) do
  worker(4) {}
  Still.extra["other"] = spawn("cat", :out => File::NULL) # ends as all do: when standard input does
end
worker(3) {}
Still.watch("pop")
Still::GATE.pop
