# Calls that go over several lines, heredocs, and methods longer than the first tables of their line numbers.
require_relative "still"

class Multiline
  def chain
    [1, 2]
      .map { |x| x }
      .select do |x|
        x &&
          Still::GATE
          .pop
      end
      .first
  end

  def arguments
    taken(
      1,
      2,
      Still::GATE.pop,
      4
    )
  end

  def taken(*)
    1
  end

  def heredoc
    [<<~ONE, <<~TWO].each { |x| x }
      #{1}
      a #{Still::GATE.pop} b
    ONE
      two
    TWO
  end

  def argument_after_heredoc
    taken(<<~ONE, 1,
      one
      two
    ONE
      Still::GATE.pop)
  end

  def continued
    1 + \
      2 + \
      (Still::GATE.pop || 3) \
      + 4
  end

  def string
    "one
    #{
      Still::GATE.pop
    }
    three"
  end

  def literal
    {
      one: 1,
      two: [
        2,
        Still::GATE.pop,
        3
      ],
      three: 3
    }
  end

  def condition
    if 1 == 1 &&
       (2 == 3 ||
        Still::GATE.pop)
      1
    end
  end

  def ternary
    1 == 2 ?
      3 :
      Still::GATE.pop
  end

  def chosen
    case 3
    when 1, 2
      1
    when 3,
         4
      Still::GATE.
        pop
    end
  end

  # The first line of a lambda is where its parameters end.
  def parameters_of_a_lambda
    made = ->(
      one = [1].first,
      two = 2 + one
    ) do
      one + two
      Still::GATE.pop
    end
    made.call
  end

  def default_in_a_lambda
    made = ->(
      one = Still::GATE.pop,
      two = 2
    ) do
      one
    end
    made.call
  end

  def default(one = 1,
              two = Still::GATE.pop,
              three = 3)
    one
  end

  def keyword(one: 1,
              two:
                Still::GATE.pop,
              three: 3)
    one
  end

  def assigned
    one,
      two =
      1,
      Still::GATE.pop
    one || two
  end

  def caller_of_multiline
    taken 1,
          taken(2,
                3),
          [4].each { |x|
            x.tap do
              Still::GATE
                .pop
            end
          },
          5
  end

  def operator
    self <<
      1 <<
      2
  end

  def <<(other)
    return Still::GATE.pop if other ==
                              2
    self
  end

  def index
    self[
      1,
      2
    ] = 3
  end

  def []=(a, b, c)
    Still::GATE.pop
  end

  # Methods of n lines of several instructions each: with the still point at the end, and in the middle.
  [3, 9, 10, 60, 70, 130, 700, 1500, 5000].each do |n|
    lines = Array.new(n) { |i| "x = x + #{i}" }
    class_eval "def end_of_#{n}\n  x = 0\n  #{lines.join("\n  ")}\n  Still::GATE.pop\nend", "long_#{n}.rb"
    lines.insert(n / 2, "\n\nStill::GATE.pop")
    class_eval "def middle_of_#{n}\n  x = 0\n  #{lines.join("\n  ")}\n  x\nend", "long_#{n}.rb", 100_000
  end
end

multiline = Multiline.new
(Multiline.instance_methods(false) - %i[taken << []=]).each do |name|
  Still.thread(name.to_s) { multiline.public_send(name) }
end
Still.watch("pop")
Still::GATE
  .tap do |gate|
    gate
      .pop
  end
