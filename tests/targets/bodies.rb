# Bodies of classes and modules, and files that are required and loaded: one stack through all of them.
# needs: 2.0
require_relative "still"

BEGIN { $begun = -> { 1.tap { Still::GATE.pop } } }

module Outer
  class Inner
    class << self
      def descend
        # Reopened from within a method by way of a string: a class body may not stand in a method.
        Outer.class_eval "class Inner; class << self; module Deep; Outer.required; end; end; end"
      end
    end
  end

  def self.required
    $LOAD_PATH.unshift(File.join(__dir__, "required"))
    require "bodies_required"
  end
end

Still.thread("begin") { $begun.call }
Still.thread("class new") { Class.new { Module.new { Class.new(String) { Still::GATE.pop } } } }
Still.thread("autoload") do
  Object.autoload(:BodiesAutoloaded, File.join(__dir__, "required", "bodies_autoloaded.rb"))
  BodiesAutoloaded
end
Still.watch("pop")

class Outer::Inner
  class Nested
    module Further
      class << self
        Outer::Inner.descend
      end
    end
  end
end
