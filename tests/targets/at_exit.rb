# At the end of the process: END, and at_exit from within at_exit.
# needs: 2.0
require_relative "still"

END { 1.tap { Still::GATE.pop } }

def last_words
  at_exit { raise "never" if Still::GATE.nil? }
end

at_exit do
  last_words
end
Still.watch("pop")
