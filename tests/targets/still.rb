# What every target uses: threads that come to a known still point, and a watcher that tells what Ruby itself shows.
#
# A target makes its subjects with Still.thread, calls Still.watch, and brings its main thread to rest. The watcher
# waits until each subject sleeps inside the call that it is to rest in, prints one line of JSON on standard output
# (all strings in it in hex, since they may be of any encoding), and reads standard input. When that ends, so does the
# process, with status 0.
#
# No library is loaded: not every Ruby of the test set has one.
module Still
  Subject = Struct.new(:key, :thread, :top)
  GATE = Thread::Queue.new
  BOUND = 30

  @subjects = []
  @fibers = {}
  @extra = {}

  class << self
    attr_reader :extra # more for the line of JSON: String => Integer, String, Array, Hash, nil, true, false

    # A subject: a thread of that name, which runs the block and comes to rest in a method of the name `top`, a
    # String or Regexp.
    def thread(name, top = "pop", &block)
      made = Thread.new(&block)
      made.name = name
      subject(name, made, top)
    end

    # Makes a thread that exists already a subject.
    def subject(key, thread, top)
      thread.abort_on_exception = true
      @subjects << Subject.new(key, thread, top)
      thread
    end

    # Tells of the fiber that calls it. It is about to be left, for good, in the line of the caller, in a C function of
    # the name `top` or, if that is nil, in none. Of a Ruby that does not show the stacks of fibers it is noted here.
    def fiber(key, top)
      if Fiber.method_defined?(:backtrace_locations)
        require "fiber" unless Fiber.respond_to?(:current)
        @fibers[key] = [Thread.current, Fiber.current]
      else
        here = frames(caller_locations(1))
        @fibers[key] = [Thread.current, [*([[*here[0][0, 3], top]] if top), *here]]
      end
    end

    # Starts the watcher. The caller is a subject too, "main", and will come to rest in a method of the name `top`.
    def watch(top)
      subject("main", Thread.current, top)
      watcher = Thread.new do
        report
        $stdin.read
        exit!(0)
      end
      watcher.name = "watcher"
      watcher.abort_on_exception = true
    end

    # Waits until all subjects rest, and prints what Ruby shows of them.
    def report
      wait_until("all subjects are at rest") { @subjects.all? { |subject| rests?(subject) } }
      told = @fibers.map { |key, fiber| describe_fiber(key, *fiber) }
      line = json(extra.merge("fibers" => told, "threads" => @subjects.map { |subject| describe(subject) }))
      $stdout.write(line, "\n")
      $stdout.flush
    end

    def wait_until(what)
      start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      until yield
        if Process.clock_gettime(Process::CLOCK_MONOTONIC) - start > BOUND
          warn "gave up waiting until #{what}"
          @subjects.each { |s| warn "#{s.key}: #{s.thread.status} in #{s.thread.backtrace_locations(0, 1)}, not #{s.top}" }
          exit!(1)
        end
        sleep 0.001
      end
    end

    def rests?(subject)
      return false unless subject.thread.status == "sleep"
      top = subject.thread.backtrace_locations(0, 1)
      !top.nil? && !top.empty? && subject.top === top[0].base_label
    end

    def describe(subject)
      thread = subject.thread
      {
        "key" => subject.key,
        "name" => thread.name,
        "tid" => thread.respond_to?(:native_thread_id) ? thread.native_thread_id : nil,
        "state" => thread.inspect.b[/\w+(?=>\z)/],
        "frames" => frames(thread.backtrace_locations)
      }
    end

    def describe_fiber(key, thread, fiber)
      subject = @subjects.find { |s| s.thread == thread }
      frames = fiber.is_a?(Fiber) ? frames(fiber.backtrace_locations) : fiber
      { "key" => key, "thread" => subject && subject.key, "frames" => frames }
    end

    def frames(locations)
      locations.map { |at| [at.path, at.absolute_path, at.lineno, at.label] }
    end

    def json(value)
      case value
      when Hash then "{#{value.map { |key, item| "\"#{key}\":#{json(item)}" }.join(",")}}"
      when Array then "[#{value.map { |item| json(item) }.join(",")}]"
      when String then "\"#{value.unpack1("H*")}\""
      when nil then "null"
      else value.to_s
      end
    end
  end
end
