# What a golden core shows: methods, blocks, evals and C functions, in threads that wait in several ways.
require_relative "still"

module Shop
  class Order
    def self.all
      yield new
    end

    def total
      [1].each { |item| price(item) }
    end

    def price(_item)
      wait
    end

    def wait
      Still::GATE.pop
    end

    define_method(:made) { instance_eval { wait } }
  end
end

def factorial(number)
  number == 0 ? Shop::Order.new.wait : number * factorial(number - 1)
end

taken = Thread::Mutex.new
taken.lock
Still.thread("order") { Shop::Order.all { |order| order.total } }
Still.thread("made") { Shop::Order.new.made }
Still.thread("recursion") { factorial(30) }
Still.thread("eval") { eval("Shop::Order.all { |order| order.wait }", binding, "written.rb", 7) }
Still.thread("mutex", "lock") { taken.lock }
Still.thread("rescue") do
  begin
    raise "expected"
  rescue RuntimeError
    Shop::Order.new.wait
  ensure
    nil
  end
end
Still.thread("sleep", "sleep") { sleep }
Still.watch("pop")
Still::GATE.pop
