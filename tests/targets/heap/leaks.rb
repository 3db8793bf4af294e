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
  while (count = orders.pop)
    count.times { Thread.current[:pending] << InThread.new }
    done << true
  end
end
held = [nil]
Truth.hold(held)
names = 0
$stdout.sync = true
puts "ready"
while $stdin.gets
  size = Store.size
  2_000.times { |number| Store.fetch(size + number) }
  2_000.times { |number| subscribe(number) }
  2_000.times { held << InExtension.new }
  # The names of instance variables are never freed.
  2_000.times { Object.new.instance_variable_set("@leaked_name_#{names += 1}", nil) }
  orders << 2_000
  done.pop
  3.times { GC.start }
  puts "done"
end
