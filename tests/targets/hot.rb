# Methods and blocks that have run often before they rest: what a JIT has compiled, and calls from one to the other.
# needs: 2.6
require_relative "still"

class Hot
  def self.run(n, last)
    new.outer(n,
              last)
  end

  def outer(n, last)
    x = n + 1
    y = inner(x, last: last) +
        x
    y * 2
  end

  def inner(n, m = n - 1, last: false)
    twice(n) { |x| [x, m].sum { |each| count(each.abs, last) } }
  end

  def twice(n)
    yield n
    yield n
  end

  def count(n, last)
    return rescued(last) if n == 0
    count(n - 1, last)
  end

  def rescued(last)
    begin
      Integer(last ? "none" : "1")
    rescue ArgumentError
      pop(last)
    end
    1.times { |i| [i].each { pop(last) } }
    pop(last) || 1
  end

  def pop(last)
    nil
  end
end

class Hotter < Hot
  define_method(:leaf) { |gate| gate.pop }

  def count(n, last)
    super(n,
          last)
  end

  def pop(last)
    super
    last&.then { |gate| leaf(gate) }
  end
end

100.times { |i| (i.odd? ? Hot : Hotter).run(i % 5, nil) }
Still.thread("hot") { Hotter.run(3, Still::GATE) }
Still.watch("pop")
Hotter.run(3, Still::GATE)
