# Methods on a Struct, and its accessors.
# needs: 2.5
require_relative "still"

Point = Struct.new(:x, :y) do
  def distance
    each { |value| each_pair { Still::GATE.pop if value } }
  end

  def y
    [self[:y]].each { Still::GATE.pop }
  end

  def to_s
    "#{members.map { |m| select { public_send(m) } }}"
  end

  def self.origin
    new(0, 0).tap { |point| point.distance }
  end

  def initialize(*)
    super
    Still::GATE.pop if x == :now
  end
end

class Line < Struct.new(:from, :to, keyword_init: true)
  def from
    [super].map { |point| point.origin }
  end
end

Still.thread("block in Struct.new") { Point.origin }
Still.thread("accessor") { Point.new(1, 2).to_s }
Still.thread("initialize") { Point.new(:now, 2) }
Still.thread("keyword") { Line.new(from: Point, to: 2).from }
Still.thread("new of a struct") { Struct.new(:a) { Still::GATE.pop } }
Still.watch("pop")
Point.new(1, 2).y
