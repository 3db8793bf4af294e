# Keeps more and more objects of one class in a Hash of another, and fewer of a third, whenever it is told to.
class Session
end

class Registry
  SESSIONS = {}
  def self.open(number)
    SESSIONS[number] = Session.new
  end
end

class Job
end

jobs = Array.new(3_000) { Job.new }
$stdout.sync = true
puts "ready"
while $stdin.gets
  10_000.times { |number| Registry.open(Registry::SESSIONS.size + number) }
  jobs = []
  3.times { GC.start }
  puts "done"
end
