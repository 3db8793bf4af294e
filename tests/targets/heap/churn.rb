# Keeps some objects, and makes others as fast as it can.
class Keeps
end

class AlsoKeeps
  def initialize(number)
    @number = number
  end
end

class Drops
end

class Changes
end

KEPT = [Array.new(5_000) { Keeps.new }, Array.new(2_000) { |number| AlsoKeeps.new(number) }]
RING = Array.new(3_000) { Changes.new }
$stdout.sync = true
puts "ready"
at = 0
until $stdin.closed?
  Drops.new
  RING[at = (at + 1) % RING.size] = Changes.new
end
