# Fibers that are never long at rest: a thread that resumes twenty of them in turn, each as deep as its number says, and
# two that make new ones all the time: one goes on to the next at once, the other keeps some.
# needs: 1.9
require_relative "still"

def turn(depth)
  return turn(depth - 1) + 1 if depth > 0
  Fiber.yield while true
end

def made
  Fiber.yield
end

BEGUN = Queue.new

turns = Thread.new do
  fibers = Array.new(20) { |n| Fiber.new { turn(n) } }
  fibers.each(&:resume)
  BEGUN.push(true)
  fibers.each(&:resume) while true
end
makes = Thread.new do
  Fiber.new { made }.resume while true
end
keeps = Thread.new do
  kept = []
  while true
    kept << Fiber.new { made }
    kept.last.resume
    kept.shift.resume if kept.size > 30
  end
end
{ "turns" => turns, "makes" => makes, "keeps" => keeps }.each { |name, thread| Still.name_thread(thread, name) }
BEGUN.pop
Still.watch("sleep")
sleep
