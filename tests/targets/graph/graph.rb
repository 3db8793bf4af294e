# Ground truth: a program whose every legal call is known, and the file that tells them (--oracle of rbdump experiment).
#
#   ruby graph.rb VARIANT SEED FOLDER [ROUNDS]
#
# Writes FOLDER/program.rb, a class of 64 methods each of which calls two others, at lines of their own: a sparse
# digraph, in which most pairs of methods never call each other. Writes FOLDER/oracle.json, which names each legal caller,
# line and callee (dumper/experiment/oracle.h has the form), and runs the program: for ever, or so many rounds. Prints
# "ready" once it does, ends when standard input does, and prints at the end of ROUNDS the result of all its sums, which
# is the same for the same variant, seed and rounds, whatever was done to the process meanwhile. FOLDER/progress holds the
# number of rounds that are done (8 bytes, little-endian), now and then; where there is but one thread.
#
# A stack that was put together from two moments has, with these odds, a pair in it that cannot be.

class Program
  NODES = 64
  # What Ruby itself may have on top of a stack, or between, in one version or another: code in C or of Ruby's own.
  BUILTINS = %w[Array#each Array#map Integer#times Kernel#loop Kernel#catch Kernel#raise Kernel#throw Proc#call
                Method#call Kernel#tap Kernel#then Class#new Exception#initialize BasicObject#initialize
                Exception#exception Exception.exception Exception#backtrace Array#initialize String#initialize
                Exception.new Integer#<=> Integer#== Integer#< Integer#succ Integer#+ Integer#* Integer#& Integer#- Array#[]
                Kernel#method Enumerator#initialize Fiber#resume Fiber.yield Fiber#initialize Fiber.new Array#size
                GC.start GC.compact Array#<< String#<< String#* Array#push Kernel#class Kernel#block_given?
                Kernel#Integer StopIteration#result Integer#^ Integer#to_s Module#=== Array#clear
                Kernel#respond_to? Kernel#puts IO#puts IO#write IO#pwrite IO#flush Array#pack Kernel#lambda RubyVM::FrozenCore#lambda RubyVM::FrozenCore.lambda #<instance\ of\ Class>#lambda].freeze

  def initialize(variant, seed, depth, folder)
    @variant = variant
    @folder = folder
    @random = Random.new(seed)
    @depth = depth
    @lines = []
    @frames = {}
    @tails = Hash.new { |tails, name| tails[name] = [] }
  end

  def emit(line)
    @lines << line
    @lines.size
  end

  # A frame of that name, with the lines from `first` to `last`; `calls` is {line => [callee, …]}.
  def frame(name, first, last, calls)
    known = (@frames[name] ||= { "lines" => [], "calls" => {} })
    known["lines"] |= (first..last).to_a
    # 2.7 itself has a line 0 for the first instruction of some code.
    known["lines"] |= [0] if RUBY_VERSION < "3.0"
    calls.each { |line, callees| known["calls"][line.to_s] = (known["calls"][line.to_s] || []) | callees }
  end

  # The ways to call a method of the graph, by variant. Gives {line => callees} of the frames that it makes.
  def call(name, callee, way)
    target = "Graph##{callee}"
    case way
    when :plain
      { name => { emit("      x = #{callee}(d - 1, x)") => [target] } }
    when :tail
      # The frame of what is called takes the place of this one.
      line = emit("      return #{callee}(d - 1, x)")
      @tails[name] << target
      { name => { line => [] } }
    when :each
      line = emit("      [1].each { x = #{callee}(d - 1, x) }")
      { name => { line => ["Array#each"] }, "Array#each" => { "*" => ["block in #{name}"] },
        "block in #{name}" => { line => [target] } }
    when :times
      line = emit("      1.times { x = #{callee}(d - 1, x) }")
      { name => { line => ["Integer#times"] }, "Integer#times" => { "*" => ["block in #{name}"] },
        "block in #{name}" => { line => [target] } }
    when :yield
      line = emit("      given { x = #{callee}(d - 1, x) }")
      { name => { line => ["Graph#given"] }, "Graph#given" => { @given.to_s => ["block in #{name}"] },
        "block in #{name}" => { line => [target] } }
    when :proc
      line = emit("      ->(e) { x = #{callee}(e, x) }.call(d - 1)")
      { name => { line => ["block in #{name}", "Proc#call"] }, "Proc#call" => { "*" => ["block in #{name}"] },
        "block in #{name}" => { line => [target] } }
    when :method
      line = emit("      x = method(:#{callee}).call(d - 1, x)")
      { name => { line => ["Method#call"] }, "Method#call" => { "*" => [target] } }
    when :rescue
      emit("      begin")
      line = emit("        x = #{callee}(d - 1, x)")
      emit("        raise ArgumentError if x & 0x700 == 0")
      emit("      rescue ArgumentError")
      emit("        x = x ^ 0x55")
      emit("      ensure")
      last = emit("        x = x ^ 0x1")
      emit("      end")
      # Frames of rescue and ensure go by the name of the method, and are above its own until 3.3.
      { name => (line..last).to_h { |at| [at, at == line ? [target, name] : [name]] } }
    when :catch
      line = emit("      x = catch(:done) { throw :done, #{callee}(d - 1, x) }")
      { name => { line => ["Kernel#catch"] }, "Kernel#catch" => { "*" => ["block in #{name}"] },
        "block in #{name}" => { line => [target] } }
    when :fiber
      line = emit("      x = Fiber.new { #{callee}(d - 1, x) }.resume")
      # A fiber that has just begun, or ended, has no frame.
      @roots.push("block in #{name}", "")
      { name => { line => [] }, "block in #{name}" => { line => [target] } }
    end
  end

  WAYS = {
    "churn" => [:plain], "deep" => [:plain], "threads" => [:plain], "ractors" => [:plain], "gc" => [:plain],
    "blocks" => %i[plain each times yield proc method], "exceptions" => %i[plain rescue catch],
    "fibers" => [:plain, :plain, :plain, :plain, :fiber], "tailcalls" => %i[plain plain tail]
  }.freeze

  def method(index)
    name = "Graph#m#{index}"
    callees = (0...NODES).to_a.sample(2, random: @random).map { |callee| "m#{callee}" }
    first = emit("  def m#{index}(d, x)")
    emit("    return x if d == 0")
    emit("    x = (x * 1103515245 + 12345) & 0x7fffffff")
    emit("    KEEP << x.to_s * 3; KEEP.clear if KEEP.size > 1000") if @variant == "gc"
    emit("    if x & 0x10000 == 0")
    made = [call(name, callees[0], WAYS[@variant].sample(random: @random))]
    emit("    else")
    made << call(name, callees[1], WAYS[@variant].sample(random: @random))
    emit("    end")
    emit("    x")
    last = emit("  end")
    made.each do |frames|
      frames.each { |frame, calls| frame(frame, first, last, calls) }
    end
    frame(name, first, last, {})
  end

  def text
    @roots = []
    emit("KEEP = []") if @variant == "gc"
    emit("DONE = File.open(#{@folder.inspect} + '/progress', 'wb')")
    emit("class Graph")
    first = emit("  def given")
    @given = emit("    yield")
    last = emit("  end")
    frame("Graph#given", first, last, {})
    NODES.times { |index| method(index) }
    first = emit("  def run(x, rounds)")
    emit("    while rounds != 0")
    entry = emit("      x = m0(#{@depth}, x)")
    emit("      rounds -= 1")
    emit("      DONE.pwrite([@done = (@done || 0) + 1024].pack('Q<'), 0) if rounds & 1023 == 0") unless %w[threads ractors].include?(@variant)
    emit("      GC.compact if rounds % 64 == 0 && GC.respond_to?(:compact)") if @variant == "gc"
    emit("    end")
    emit("    x")
    last = emit("  end")
    frame("Graph#run", first, last, entry => ["Graph#m0"])
    emit("end")
    main
    tails
    builtins
    @lines.join("\n") << "\n"
  end

  def main
    case @variant
    when "threads"
      line = emit("ANSWER = ->(rounds) { (1..4).map { |n| Thread.new { Graph.new.run(n, rounds) } }.sum(&:value) }")
      @roots.push("block (3 levels) in <top (required)>", "") # a thread that is about to begin has no frame
      frame("block (3 levels) in <top (required)>", line, line, line => ["Graph#run"])
      waiting(line, "Thread#value", "Array#sum", "Range#each", "Enumerable#map", "Array#map", "Thread.new",
              "Thread#initialize", "block (2 levels) in <top (required)>")
    when "ractors"
      line = emit("ANSWER = ->(rounds) { rs = (1..3).map { |n| Ractor.new(n, rounds) { |m, r| Graph.new.run(m, r) } }; " \
                  "rs.sum { |r| r.respond_to?(:take) ? r.take : r.value } }")
      @roots.push("block (3 levels) in <top (required)>", "")
      frame("block (3 levels) in <top (required)>", line, line, line => ["Graph#run"])
      waiting(line, "Ractor#take", "Ractor#value", "Ractor#join", "Ractor.new", "Array#sum", "Array#each", "Range#each",
              "Enumerable#map", "Ractor.receive", "Ractor::Port#receive", "Ractor#initialize", "Ractor#monitor",
              "block (2 levels) in <top (required)>")
    else
      line = emit("ANSWER = ->(rounds) { Graph.new.run(1, rounds) }")
      frame("block in <top (required)>", line, line, line => ["Graph#run"])
      @tails["block in <top (required)>"] << "Graph#run" if @variant == "tailcalls"
    end
    # The code that runs all this, in this file.
    @roots << "<main>"
    frame("<main>", 1, 1000, "*" => ["block in <top (required)>", "Proc#call"] + BUILTINS)
    frame("Proc#call", 1, 1, "*" => ["block in <top (required)>"])
  end

  # Where a method is called, one that it calls in its own place may be on top, too.
  def tails
    @frames.each_value do |known|
      known["calls"].each_value do |callees|
        callees.each { |callee| callees.concat(@tails[callee] - callees) } # grows while it is gone through
      end
    end
  end

  # The thread that waits for the others.
  def waiting(line, *names)
    frame("block in <top (required)>", line, line, "*" => names)
    names.each { |name| frame(name, line, line, "*" => names) }
    # Some of these are in Ruby, with lines of their own (<internal:ractor>).
    names.each { |name| @frames[name].delete("lines") unless name.start_with?("block") }
  end

  def builtins
    BUILTINS.each { |name| @frames[name] ||= { "lines" => [], "calls" => {} } }
    # Any frame of the program's own may have one of these on top.
    @frames.each_value { |known| known["calls"]["*"] = (known["calls"]["*"] || []) }
    @frames.each do |name, known|
      lines = known["lines"]
      next if BUILTINS.include?(name) || !lines
      lines.each { |at| known["calls"][at.to_s] = (known["calls"][at.to_s] || []) | BUILTINS } unless lines.size > 999
    end
    BUILTINS.each do |name|
      @frames[name].delete("lines")
      @frames[name]["calls"]["*"] = (@frames[name]["calls"]["*"] || []) | BUILTINS
    end
  end

  def oracle
    { "schema_version" => 1, "roots" => @roots.uniq, "frames" => @frames }
  end
end

# Not every Ruby of the test set has a library for this.
def json(value)
  case value
  when Hash then "{#{value.map { |key, item| "\"#{key}\":#{json(item)}" }.join(",")}}"
  when Array then "[#{value.map { |item| json(item) }.join(",")}]"
  when String then "\"#{value}\""
  else value.to_s
  end
end

variant, seed, folder, rounds = ARGV
if variant == "ractors" && !defined?(Ractor)
  puts "unsupported"
  exit
end
Warning[:experimental] = false if Warning.respond_to?(:[]=)
depth = variant == "deep" ? 400 : 20
program = Program.new(variant, seed.to_i, depth, folder)
text = program.text
File.write("#{folder}/program.rb", text)
File.write("#{folder}/oracle.json", json(program.oracle))
program = nil
RubyVM::InstructionSequence.compile_option = { tailcall_optimization: true, trace_instruction: false } if variant == "tailcalls"
load "#{folder}/program.rb"
if rounds
  puts "ready"
  $stdout.flush
else
  watcher = Thread.new { $stdin.read; exit!(0) }
  Thread.pass until watcher.status == "sleep"
  puts "ready"
  $stdout.flush
end
puts ANSWER.call(rounds ? rounds.to_i : -1)
