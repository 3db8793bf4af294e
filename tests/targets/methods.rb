# Methods of every kind.
# needs: 2.1
require_relative "still"

class Base
  def overridden(first, *rest, key:, **others, &block)
    block.call
  end

  def self.overridden
    yield
  end
end

class Derived < Base
  def plain
    aliased
  end

  def original
    aliased_again
  end
  alias aliased original

  def second
    made
  end
  alias_method :aliased_again, :second

  define_method(:made) do
    made_of_method
  end

  def source
    missing_altogether(1, 2)
  end
  define_method(:made_of_method, instance_method(:source))

  def method_missing(name, *arguments)
    return super unless name == :missing_altogether
    overridden(1, 2, key: 3, other: 4) { of_self }
  end

  def respond_to_missing?(name, all = false)
    name == :missing_altogether || super
  end

  def overridden(*arguments, **options, &block)
    super
  end

  def of_self
    self.class.overridden { hidden }
  end

  def self.overridden
    super
  end

  def optional(one = another_default)
    one
  end

  def another_default(two = keyword(key: 1))
    two
  end

  def keyword(key:, default: guarded(self))
    default
  end

  def writer=(value)
    value.call
  end

  def [](key)
    self.writer = -> { +self }
  end

  def +@
    self + 1
  end

  def +(other)
    question?
  end

  def question?
    bang!
  end

  def bang!
    Still::GATE.pop
  end

  protected

  def guarded(other)
    singleton = Object.new
    def singleton.only_here(other)
      other[:key]
    end
    singleton.only_here(self)
  end

  private

  def hidden
    Functions.function(self)
  end
end

module Functions
  module_function

  def function(object)
    object.extend(Mixed).mixed
  end
end

module Mixed
  def mixed
    optional
  end
end

module Prepended
  def prepended
    super
  end
end

class Target
  prepend Prepended

  def prepended
    Derived.new.plain
  end
end

def top_level
  Target.new.prepended
end

class Constructed
  def initialize
    top_level
  end
end

Still.thread("methods") { Constructed.new }
Still.thread("method objects") do
  Constructed.instance_method(:initialize).bind(Constructed.allocate).call
end
Still.thread("undefined and defined again") do
  class Constructed
    def twice
      raise "not this one"
    end
    undef_method :twice
    def twice
      Still::GATE.pop
    end
  end
  Constructed.allocate.twice
end
Still.watch("sleep")
sleep
