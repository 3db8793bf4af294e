# Frames of rescue and of ensure, with and without an exception under way.
# needs: 1.9
require_relative "still"

class Rescues
  class Odd < StandardError
    def self.===(error)
      [1].each { Still::GATE.pop }
    end
  end

  def in_rescue
    raise "first"
  rescue
    Still::GATE.pop
  end

  def in_ensure
    1
  ensure
    Still::GATE.pop
  end

  def in_ensure_of_exception
    raise "first"
  ensure
    Still::GATE.pop
  end

  def in_ensure_of_return
    return 1
  ensure
    Still::GATE.pop
  end

  def in_ensure_of_throw
    catch(:out) do
      begin
        throw :out
      ensure
        Still::GATE.pop
      end
    end
  end

  def in_ensure_of_break
    [1].each do
      begin
        break
      ensure
        Still::GATE.pop
      end
    end
  end

  def nested
    begin
      begin
        raise "first"
      rescue => first
        raise "second"
      ensure
        begin
          raise "third"
        rescue
          Still::GATE.pop
        end
      end
    rescue
      1
    end
  end

  def nested_rescue
    raise "first"
  rescue
    begin
      raise "second"
    rescue
      begin
        raise "third"
      rescue
        [1].each { Still::GATE.pop }
      end
    end
  end

  def block_in_ensure
    1.times do
      begin
        raise "first"
      ensure
        1.times do
          begin
            raise "second"
          rescue
            1.times { Still::GATE.pop }
          end
        end
      end
    end
  end

  def modifier
    raise("first") rescue Still::GATE.pop
  end

  def again
    tries = 0
    begin
      tries += 1
      raise "first" if tries < 3
      Still::GATE.pop
    rescue
      retry
    end
  end

  def otherwise
    1
  rescue
    2
  else
    Still::GATE.pop
  ensure
    3
  end

  def matching
    raise "first"
  rescue Odd
    1
  end

  def computed
    raise "first"
  rescue *classes
    1
  end

  def classes
    Still::GATE.pop
  end

  class_eval(<<-CODE, __FILE__, __LINE__ + 1) unless RUBY_VERSION < "2.5"
  def of_block
    [1].each do
      raise "first"
    rescue
      Still::GATE.pop
    end
  end
  CODE

  def calls_from_rescue
    raise "first"
  rescue => e
    in_ensure_of_exception
  end

  def from_c
    Integer("x")
  rescue ArgumentError
    Still::GATE.pop
  end

  def to_exception
    raise Class.new { def exception(*) Still::GATE.pop; end }.new
  end
end

rescues = Rescues.new
(Rescues.instance_methods(false) - [:classes]).each do |name|
  Still.thread(name.to_s) { rescues.public_send(name) }
end
Still.thread("class body") do
  class Rescues
    begin
      raise "first"
    rescue
      begin
        raise "second"
      ensure
        Still::GATE.pop
      end
    end
  end
end
Still.watch("pop")
begin
  raise "first"
rescue
  begin
    raise "second"
  ensure
    Still::GATE.pop
  end
end
