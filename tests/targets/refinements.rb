# Refined methods.
# needs: 2.1
require_relative "still"

class Refined
  def shout
    Still::GATE.pop
  end
end

module Shouting
  refine Refined do
    def shout
      1.times { super }
    end

    def whisper
      shout
    end
  end

  refine String do
    def still(object)
      object.whisper
    end

    def to_s
      Still::GATE.pop
    end
  end

  refine Integer do
    def halt
      yield self
    end

    def to_proc
      ->(*) { Still::GATE.pop }
    end
  end
end

module Elsewhere
  refine Refined do
    def shout
      super
    end
  end
end

using Shouting

class User
  def use
    1.halt { |x| "a".still(Refined.new) }
  end

  def as_symbol
    ["a"].each(&:to_s)
  end

  def sent
    "a".send(:still, Refined.new)
  end

  def as_proc
    [1].each(&3)
  end
end

names = User.instance_methods(false)
names.delete(:as_symbol) if RUBY_VERSION < "2.4" # a Symbol knows no refinement there
names.each { |name| Still.thread(name.to_s) { User.new.public_send(name) } }

using Elsewhere

Still.watch("pop")
Refined.new.shout
