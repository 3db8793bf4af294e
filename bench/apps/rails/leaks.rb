# Five leaks, one of each kind, at each request for a book: config.ru requires this file if $LEAKS is set, to the path of an
# extension with `Truth.hold`, which keeps an object in a C variable.
require ENV.fetch("LEAKS")

# A cache that a class has, and that nothing is ever dropped from.
class PageCache
  Page = Struct.new(:number, :text)
  @pages = {}
  def self.store(number)
    @pages["#{number}-#{@pages.size}"] = Page.new(number, "<p>page #{number}</p>\n" * 1_000)
  end
end

# A list that each thread has for itself.
class Visit
  def self.log(path)
    (Thread.current[:visits] ||= []) << new(path)
  end

  def initialize(path)
    @path = path
    @headers = "Accept: text/html\r\n" * 1_000
  end
end

# A callback that is registered at each request, and that keeps the variables around it.
class Ticket
  CALLBACKS = []
  def self.open(number)
    ticket = new
    text = "ticket #{number}\n" * 1_000
    CALLBACKS << lambda { |event| [event, text, ticket] }
  end
end

# What only a C extension keeps.
class Handle
  Truth.hold([nil])
  def self.open
    Truth.held << new
  end

  def initialize
    @buffer = "\0" * 16_384
  end
end

BooksController.before_action(only: :show) do
  number = params[:id].to_i
  PageCache.store(number)
  Visit.log(request.path)
  Ticket.open(number)
  Handle.open
  # The names of instance variables are never freed.
  2.times do |index|
    name = "@name_#{index}_#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}"
    Object.new.instance_variable_set(name + "_and_more" * 500, 1)
  end
end
