# needs: 3.2
# Methods on a Data, and its accessors.
require_relative "still"

Coordinate = Data.define(:x, :y) do
  def sum
    [x].each { |value| [y].each { Still::GATE.pop if value } }
  end

  def +(other)
    with(x: other)
  end

  def self.origin
    new(0, 0)
  end

  def initialize(x:, y: 0)
    super(x: x, y: y)
    tap { Still::GATE.pop if x == :now }
  end
end

class Place < Data.define(:name)
  def name
    [super].each { Still::GATE.pop }
  end

  def inspect
    "#{to_h { |k, v| [k, Still::GATE.pop] }}"
  end
end

Still.thread("accessor") { Place.new("here").name }
Still.thread("block in Data.define") { Coordinate.origin.sum }
# Until 3.3 it does not call initialize.
Still.thread("with") { Coordinate.origin + :now } if RUBY_VERSION >= "3.3"
Still.thread("inspect") { [Place.new("here")].inspect }
Still.thread("new of a data") { Data.define(:a) { Still::GATE.pop } }
Still.watch("pop")
Coordinate.new(x: :now)
