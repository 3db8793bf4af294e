# Code made of strings, with and without a file name.
# needs: 2.0
require_relative "still"

class Evals
  def plain
    eval "Still::GATE.pop"
  end

  def with_file
    eval "\n\nStill::GATE.pop", binding, "made up.rb", 40
  end

  def with_binding
    local = 1
    block = proc { binding }
    block.call.eval "[local].each do |x|\n  Still::GATE.pop\nend"
  end

  def nested
    eval "eval 'eval %q(Still::GATE.pop), nil, %q(third.rb)', nil, 'second.rb', -3"
  end

  def of_instance
    instance_eval "1.times { @x = Still::GATE.pop }"
  end

  def of_class
    self.class.class_eval <<-CODE, __FILE__, __LINE__ + 1
      def made_of_string
        Still::GATE.pop
      end
    CODE
    made_of_string
  end

  def of_method
    eval "def self.made_without_file\n  [1].each { Still::GATE.pop }\nend"
    made_without_file
  end

  def of_main
    TOPLEVEL_BINDING.eval "class EvalBody\n  Still::GATE.pop\nend"
  end

  def in_rescue
    raise "something"
  rescue
    eval "Still::GATE.pop"
  end

  def in_block
    1.times { 1.times { eval "proc { Still::GATE.pop }.call" } }
  end

  def of_iseq
    RubyVM::InstructionSequence.compile("1.times do\n  Still::GATE.pop\nend", "compiled", "/no/such/path", 7).eval
  end

  def of_iseq_without_names
    RubyVM::InstructionSequence.compile("1.times do\n  Still::GATE.pop\nend").eval
  end

  def of_tail_calls
    options = { tailcall_optimization: true, trace_instruction: false }
    code = "def self.tail_one\n  tail_two\nend\ndef self.tail_two\n  [1].each { Still::GATE.pop }\nend\nself"
    RubyVM::InstructionSequence.compile(code, "tails", nil, 1, **options).eval.send(:tail_one)
  end

  def of_empty_name
    eval "Still::GATE.pop", nil, ""
  end
end

evals = Evals.new
Evals.instance_methods(false).each { |name| Still.thread(name.to_s) { evals.public_send(name) } }
Still.watch("pop")
eval "at = 1\nStill::GATE.pop"
