# Methods that set $~ or $_: the place of the method entry on their stack is taken by something else.
# needs: 1.9
require_relative "still"

class Matching
  def match
    "abc" =~ /b/
    $~ && Still::GATE.pop
  end

  def match_in_block
    [1].each do
      "abc" =~ /(b)/
      [2].each { Still::GATE.pop if $1 }
    end
  end

  def last_line
    read, write = IO.pipe
    write.puts "x"
    $_ = read.gets
    Still::GATE.pop
  end

  def flip
    if true..false
      Still::GATE.pop
    end
  end

  def replaced
    "aXb".gsub(/X/) { $~ && Still::GATE.pop }
  end

  def named
    if /(?<found>b)/ =~ "abc"
      [found].each { "x".match(/x/) && Still::GATE.pop }
    end
  end

  def rescued
    "abc" =~ /b/
    raise $&
  rescue => e
    e && Still::GATE.pop
  end

  define_method(:by_define) do
    "abc" =~ /b/
    Still::GATE.pop
  end

  def self.of_class
    "abc"[/b/]
    "abc" =~ /b/
    Still::GATE.pop
  end

  def kept
    "abc" =~ /b/
    environment = binding
    environment && Still::GATE.pop
  end
end

matching = Matching.new
Matching.instance_methods(false).each { |name| Still.thread(name.to_s) { matching.public_send(name) } }
Still.thread("of_class") { Matching.of_class }
Still.thread("thread") { "abc" =~ /b/ and Still::GATE.pop }
Still.watch("pop")
"abc" =~ /b/
Still::GATE.pop
