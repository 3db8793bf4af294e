# Fibers that are never long at rest: a thread that resumes twenty of them in turn, each as deep as its number says, and
# two that make new ones all the time: one goes on to the next at once, the other keeps some.
require_relative "still"

def turn(depth)
  return turn(depth - 1) + 1 if depth > 0
  Fiber.yield while true
end

def made
  Fiber.yield
end

BEGUN = Thread::Queue.new

Thread.new do
  fibers = Array.new(20) { |n| Fiber.new { turn(n) } }
  fibers.each(&:resume)
  BEGUN.push(true)
  fibers.each(&:resume) while true
end.name = "turns"
Thread.new do
  Fiber.new { made }.resume while true
end.name = "makes"
Thread.new do
  kept = []
  while true
    kept << Fiber.new { made }
    kept.last.resume
    kept.shift.resume if kept.size > 30
  end
end.name = "keeps"
BEGUN.pop
Still.watch("sleep")
sleep
