# Leaks in five ways, 2,000 objects each, whenever it is told to: each way has a class of its own.
require "thread"
require ARGV[0]

class InCache; end
class InThread; end
class InClosure; end
class InExtension; end

class Store
  @cache = {}
  def self.fetch(key)
    @cache[key] ||= InCache.new
  end

  def self.size
    @cache.size
  end
end

class Events
  HANDLERS = []
  def self.on(&handler)
    HANDLERS << handler
  end
end

def subscribe(number)
  payload = InClosure.new
  Events.on { [number, payload] }
end

orders, done = Queue.new, Queue.new
worker = Thread.new do
  Thread.current[:pending] = []
  done << true
  orders.pop
end
done.pop
held = [nil]
Truth.hold(held)
names = 0
$stdout.sync = true
puts "ready"
while $stdin.gets
  size = Store.size
  # Afterwards, no stack of a thread that lives has the last object of a class.
  Thread.new do
    2_000.times { |number| Store.fetch(size + number) }
    2_000.times { |number| subscribe(number) }
    2_000.times { held << InExtension.new }
    2_000.times { worker[:pending] << InThread.new }
    nil
  end.join
  # The names of instance variables are never freed.
  2_000.times { Object.new.instance_variable_set("@leaked_name_#{names += 1}", nil) }
  3.times { GC.start }
  puts "done"
end
