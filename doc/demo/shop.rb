# A shop with a queue of orders: a few threads that wait, work, and wait for each other.
require 'socket'

class Order
  def initialize(items)
    @items = items
  end

  def total
    @items.sum { |item| Price.of(item) }
  end
end

module Price
  LOCK = Mutex.new

  def self.of(item)
    LOCK.synchronize { item.to_s.length }
  end
end

class Shop
  def initialize
    @orders = Queue.new
    @server = TCPServer.new('127.0.0.1', 0)
  end

  def serve
    loop { @server.accept.close }
  end

  def work
    while (order = @orders.pop)
      order.total
    end
  end

  def count
    Thread.pass until (Thread.list - [Thread.current]).all? { |thread| thread.status == 'sleep' }
    $stdout.puts 'ready'
    $stdout.flush
    n = 0
    n += 1 while true
  end

  def open
    @orders << Order.new(%i[tea milk])
    Price::LOCK.lock
    threads = %w[serve work count].map do |job|
      Thread.new { send(job) }.tap { |thread| thread.name = job }
    end
    threads.each(&:join)
  end
end

Shop.new.open
