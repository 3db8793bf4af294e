# What every target uses: threads that come to a known still point, and a watcher that tells what Ruby itself shows.
#
# A target makes its subjects with Still.thread, calls Still.watch, and brings its main thread to rest. The watcher
# waits until each subject sleeps inside the call that it is to rest in, prints one line of JSON on standard output
# (all strings in it in hex, since they may be of any encoding), and reads standard input. When that ends, so does the
# process, with status 0.
#
# No library is loaded: not every Ruby of the test set has one. It runs on every Ruby since 1.9.3, and says nil of what
# that Ruby does not tell. Before 2.7, a subject that calls what its Ruby does not have yet is left out, and told.
require "thread" if RUBY_VERSION < "2.3" # Queue is not built in; until 2.0 it is written in Ruby

module Still
  Subject = Struct.new(:key, :thread, :top)
  GATE = RUBY_VERSION < "2.1" ? ::Queue.new : Thread::Queue.new
  SYS_READ, SYS_OPEN, SYS_CLOSE, SYS_GETTID = 0, 2, 3, 186 # x86_64
  BOUND = 120
  # How deep below a thread's top its still point may be: what rests in a method that is written in Ruby rests deeper.
  DEPTH = RUBY_VERSION < "2.1" ? 8 : 1

  @subjects = []
  @fibers = {}
  @tasks = {}
  @extra = {}

  class << self
    attr_reader :extra # more for the line of JSON: String => Integer, String, Array, Hash, nil, true, false

    # A subject: a thread of that name, which runs the block and comes to rest in a method of the name `top`, a
    # String or Regexp.
    def thread(name, top = "pop", &block)
      made = Thread.new(&block)
      name_thread(made, name)
      subject(name, made, top)
    end

    def name_thread(thread, name)
      thread.name = name if thread.respond_to?(:name=)
    end

    # Makes a thread that exists already a subject.
    def subject(key, thread, top)
      thread.report_on_exception = false if may_lack? && thread.respond_to?(:report_on_exception=)
      thread.abort_on_exception = true unless may_lack?
      @subjects << Subject.new(key, thread, top)
      thread
    end

    # Tells of the fiber that calls it. It is about to be left, for good, in the line of the caller, in a C function of
    # the name `top` or, if that is nil, in none. Of a Ruby that does not show the stacks of fibers it is noted here.
    def fiber(key, top)
      # In 3.0 a library gives Fiber.current.
      if Fiber.method_defined?(:backtrace_locations) && Fiber.respond_to?(:current)
        @fibers[key] = [Thread.current, Fiber.current]
      else
        told = here
        @fibers[key] = [Thread.current, [*([[*told[1][0, 3], top]] if top), *told.drop(1)]]
      end
    end

    # The frames of the caller, as far as this Ruby tells of them.
    def here
      respond_to?(:caller_locations, true) ? frames(caller_locations(1)) : frames_of_lines(caller(1))
    end

    # Tells which kernel thread the caller is, as the kernel says.
    def tell_task(key)
      @tasks[key] = syscall(SYS_GETTID)
    end

    # Starts the watcher. The caller is a subject too, "main", and will come to rest in a method of the name `top`.
    def watch(top)
      subject("main", Thread.current, top)
      watcher = Thread.new do
        report
        $stdin.read
        exit!(0)
      end
      name_thread(watcher, "watcher")
      watcher.abort_on_exception = true
    end

    # Waits until all subjects rest, and prints what Ruby shows of them.
    def report
      with_short_slices do
        wait_until("all subjects are at rest") do
          leave_out_lacking if may_lack?
          @subjects.all? { |subject| rests?(subject) } && settled?
        end
      end
      told = @fibers.map { |key, fiber| describe_fiber(key, *fiber) }
      line = json(extra.merge("tasks" => @tasks, "fibers" => told, "threads" => @subjects.map { |subject| describe(subject) }))
      $stdout.write(line + "\n")
      $stdout.flush
    end

    # Who lets go of the GVL waits for busy threads, which keep it for 100 ms each: for 20 ms at the lowest priority.
    def with_short_slices
      busy = Thread.list - [Thread.current]
      before = busy.map { |thread| thread.priority }
      busy.each { |thread| thread.priority = -3 }
      yield
    ensure
      busy.zip(before).each { |thread, priority| thread.priority = priority }
    end

    def may_lack?
      RUBY_VERSION < "2.7"
    end

    # Drops the subjects that have ended because this Ruby does not have a method, or one of its arguments.
    def leave_out_lacking
      @subjects.reject! do |subject|
        next if subject.thread.status
        begin
          subject.thread.join
          false # it just ended: that is for wait_until to tell
        rescue NameError, ArgumentError, TypeError => e
          # Its message would call methods of the target's.
          extra["lacks"] = [extra["lacks"], "#{subject.key} (#{e.is_a?(NameError) ? e.name : e.class})"].compact.join(", ")
        end
      end
    end

    def wait_until(what)
      start = now
      until yield
        if now - start > BOUND
          warn "gave up waiting until #{what}"
          @subjects.each { |s| warn "#{s.key}: #{s.thread.status} in #{(s.thread.backtrace || [])[0]}, not #{s.top}" }
          exit!(1)
        end
        sleep 0.001
      end
    end

    def now
      defined?(Process::CLOCK_MONOTONIC) ? Process.clock_gettime(Process::CLOCK_MONOTONIC) : Time.now.to_f
    end

    def rests?(subject)
      return false unless subject.thread.status == "sleep"
      return true if RUBY_VERSION < "2.0" && subject.top != "pop" # in the frame that is not told
      top_labels(subject.thread).any? { |label| subject.top === label }
    end

    # Whether no subject has run since this was last asked. Ruby says "sleep" of one that has come back from the kernel
    # and waits for the lock only to go into it once more (a write, or a read, that then has to wait), but its kernel
    # thread has run since, or is about to.
    def settled?
      before, @runs = @runs, kernel_runs
      return false unless before
      unmoved = @runs.select { |tid, runs| runs && runs == before[tid] }.keys
      threads = @subjects.map { |subject| subject.thread }.uniq
      # A Ruby that does not tell which kernel thread is whose: as many as there are subjects.
      return unmoved.size >= threads.size unless Thread.method_defined?(:native_thread_id)
      # That of its parent process (3.1, after a fork) is none of this one's.
      ((threads.map { |thread| tid(thread) } & @runs.keys) - unmoved).empty?
    end

    # { kernel thread => how often it was put on a CPU, or nil while it is there or about to be }
    def kernel_runs
      (Dir.entries("/proc/self/task") - %w[. ..]).each_with_object({}) do |task, runs|
        status = begin
          read_with_gvl("/proc/self/task/#{task}/status")
        rescue SystemCallError
          next # it has ended
        end
        next if status.start_with?("Name:\truby-timer")
        runs[task.to_i] = status =~ /^State:\tS/ && status.scan(/ctxt_switches:\t(\d+)/)
      end
    end

    # The first 4,096 bytes of a file, which can be any, without letting go of the GVL, as IO does for each call.
    def read_with_gvl(path)
      descriptor = syscall(SYS_OPEN, path, 0)
      content = (" " * 4096).force_encoding("ASCII-8BIT")
      content[0, syscall(SYS_READ, descriptor, content, content.size)]
    ensure
      syscall(SYS_CLOSE, descriptor) if descriptor
    end

    # Its kernel thread; nil if its Ruby does not tell, or it has none.
    def tid(thread)
      thread.respond_to?(:native_thread_id) ? thread.native_thread_id : nil
    end

    if RUBY_VERSION < "2.0"
      # Thread#backtrace tells neither the innermost frame, which is that of a C function here, nor absolute paths: false.
      def top_labels(thread)
        (thread.backtrace || [])[0, DEPTH].map { |line| line[/in `(?:.* in )?(.*)'\z/, 1] }
      end

      def frames_of(thread)
        [false] + frames_of_lines(thread.backtrace)
      end

      def frames_of_lines(lines)
        lines.map do |line|
          path, number, label = line.match(/\A(.*?)(?::(\d+))?:in `(.*)'\z/m).captures
          [number && path, number ? false : nil, number.to_i, label] # no line: the program's name stands for a path
        end
      end
    else
      def top_labels(thread)
        (thread.backtrace_locations(0, DEPTH) || []).map(&:base_label)
      end

      def frames_of(thread)
        frames(thread.backtrace_locations)
      end
    end

    def frames(locations)
      locations.map { |at| [at.path, at.absolute_path, at.lineno, at.label] }
    end

    def describe(subject)
      thread = subject.thread
      {
        "key" => subject.key,
        "name" => thread.respond_to?(:name) ? thread.name : nil,
        "tid" => tid(thread),
        "state" => state(thread),
        "frames" => frames_of(thread)
      }
    end

    def describe_fiber(key, thread, fiber)
      subject = @subjects.find { |s| s.thread == thread }
      told = fiber.is_a?(Fiber) ? frames(fiber.backtrace_locations) : fiber
      { "key" => key, "thread" => subject && subject.key, "frames" => told }
    end

    # "sleep" or "sleep_forever"; Thread#inspect has told them apart since 2.4.
    def state(thread)
      thread.inspect.b[/\w+(?=>\z)/] unless RUBY_VERSION < "2.4"
    end

    def json(value)
      case value
      when Array then "[#{value.map { |item| json(item) }.join(",")}]"
      when Hash then "{#{value.map { |key, item| "\"#{key}\":#{json(item)}" }.join(",")}}"
      when String then "\"#{value.unpack("H*")[0]}\""
      when nil then "null"
      else value.to_s
      end
    end
  end
end
