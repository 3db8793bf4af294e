# One thread that computes for a moment, sleeps for a moment, and so on, some thousand times a second, until standard input
# ends. Prints "ready".
require_relative "timeline"

class Naps
  def compute
    i = 0
    i += 1 while i < 10_000
  end

  def run
    until Timeline.done?
      compute
      sleep 0.0005
    end
  end
end

Timeline.ready
Naps.new.run
