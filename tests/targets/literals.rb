# Names that are words of Ruby's own C code, which its Strings then share (rb_fstring_lit): of methods, labels and paths.
# needs: 1.9
require_relative "still"

def once
  Still::GATE.pop
end

class Plain
  class << self
    Still.thread("singleton class") { Still::GATE.pop }
  end
end

Still.thread("once") { once }
Still.thread("eval") { eval("Still::GATE.pop") }
Still.watch("pop")
Still::GATE.pop
