# The rules of rbdump's `name`. Behind each line stand the names of the frames that begin there: the Ruby frame at that
# line, then the frames that it calls (C functions, and methods of Ruby's own that are written in Ruby).
require_relative "still"

class Plain
  def method
    sleep # names: Plain#method > Kernel#sleep
  end

  def self.singleton
    new.method # names: Plain.singleton
  end

  class << self
    def in_singleton_body
      [1].each do # names: Plain.in_singleton_body > Array#each
        3.times do # names: block in Plain.in_singleton_body > Integer#times
          singleton # names: block (2 levels) in Plain.in_singleton_body
        end
      end
    end
  end

  define_method(:defined) do
    self.class.in_singleton_body # names: block in <class:Plain>
  end

  def original
    defined # names: Plain#original
  end
  alias aliased original

  def +(other)
    aliased # names: Plain#+
  end

  def value=(other)
    self + 1 # names: Plain#value=
  end
end

module Outer
  module Mixed
    def mixed
      self.value = 1 # names: Outer::Mixed#mixed
    end

    def self.of_module
      Inner.new.mixed # names: Outer::Mixed.of_module
    end
  end

  class Inner < Plain
    include Mixed

    class Deeper
      def call
        Mixed.of_module # names: Outer::Inner::Deeper#call
      end
    end
  end
end

module Refining
  refine Plain do
    def refined
      1.tap do # names: #<refinement Plain of Refining>#refined > Kernel#tap
        Outer::Inner::Deeper.new.call # names: block in #<refinement Plain of Refining>#refined
      end
    end
  end
end
using Refining

OBJECT = Plain.new
def OBJECT.only
  refined # names: #<instance of Plain>#only
end

ANONYMOUS = [Class.new(Plain) do
  def of_anonymous
    OBJECT.only # names: #<anonymous subclass of Plain>#of_anonymous
  end

  def self.of_anonymous
    new.of_anonymous # names: #<anonymous subclass of Plain>.of_anonymous
  end
end]

NAMED_LATER = Class.new(Plain) do
  def later
    ANONYMOUS[0].of_anonymous # names: NAMED_LATER#later
  end
end

NAMED_LATER.name # until 2.3 it has its path only when somebody asks for it

def top_level
  [2, 1].sort_by do # names: Object#top_level > Enumerable#sort_by > Array#each
    NAMED_LATER.new.later # names: block in Object#top_level
  end
end

self.class.send(:define_singleton_method, :of_object) { top_level } # names: block in <main>

class << self
  def of_main
    Object.of_object # names: #<instance of Object>#of_main
  end
end

at_top = self
RUN = lambda do
  1.tap do # names: block in <main> > Kernel#tap
    at_top.of_main # names: block (2 levels) in <main>
  end
end

def bodies
  eval(<<~CODE, TOPLEVEL_BINDING, __FILE__, __LINE__ + 1) # names: Object#bodies > Kernel#eval
    module Bodies # names: <main>
      class Body # names: <module:Bodies>
        class << self # names: <class:Body>
          RUN.call # names: singleton class
        end
      end
    end
  CODE
end

Still.watch("sleep")
bodies # names: <main>
