require "io/wait"

# Methods that are defined, dropped, exchanged, aliased, refined, extended, made of blocks and renamed with their class,
# some eighty times a second; each time, a generation, they are called for a moment, each from a line of its own, and
# garbage is collected, by turns in all ways. The files of a generation, and methods that get a new name each time, have
# its number in their names.
#
# Prints "ready"; and once standard input ends a line for each generation: its number, and until when its methods were called,
# in ns of CLOCK_REALTIME.
class Redefining
  WORK_NS = 10_000_000

  # What a method of each kind is made from: it calls a block from its second line, through a method of the same file.
  def self.source(name, kind)
    "def #{name}(n)\n  through_#{kind}(n) { n + 1 }\nend\ndef through_#{kind}(n)\n  yield\nend"
  end

  module Refined
    REFINEMENT = refine(Redefining) do
      def refined(n)
        n
      end
    end
  end

  attr_reader :generations

  def initialize
    @generations = []
    @makers = %i[plain exchanged aliased refined extended made renamed].map { |kind| method(:"make_#{kind}") }
  end

  def make_plain(file)
    Redefining.class_eval(Redefining.source(:plain, :plain), file)
  end

  # By turns the one first, and the other: so each comes to be where the other was.
  def make_exchanged(file)
    names = %i[left right]
    names.reverse! if @generations.size[1].odd?
    names.each { |name| Redefining.class_eval(Redefining.source(name, name), file.sub("exchanged", name.to_s)) }
  end

  # A backtrace shows the name under which it was defined.
  def make_aliased(file)
    name = :"original_#{file[/\d+/]}"
    Redefining.class_eval(Redefining.source(name, :aliased), file)
    Redefining.send(:alias_method, :aliased, name)
    Redefining.send(:remove_method, name)
  end

  def make_refined(file)
    Refined::REFINEMENT.class_eval("def refined(n)\n  through_refined(n) { n + 1 }\nend", file)
    Redefining.class_eval("\n\n\ndef through_refined(n)\n  yield\nend", file)
  end

  def make_extended(file)
    @extended = Object.new
    @extended.extend(Module.new { class_eval(Redefining.source(:extended, :extended), file) })
  end

  def make_made(file)
    Redefining.class_eval("define_method(:made) do |n|\n  through_made(n) { n + 1 }\nend\n" \
                          "def through_made(n)\n  yield\nend", file)
  end

  # The class gets its name after its methods were called.
  def make_renamed(file)
    renamed = Class.new
    renamed.class_eval(Redefining.source(:renamed, :renamed), file)
    @renamed = renamed.new
    @renamed.renamed(0)
    Redefining.const_set(:"Renamed_#{file[/\d+/]}", renamed)
    Redefining.send(:remove_const, :"Renamed_#{file[/\d+/]}")
  end

  def collect(number)
    case number % 12
    when 0, 5 then GC.start
    when 1, 3, 7 then GC.start(full_mark: false)
    when 4 then GC.start(full_mark: true, immediate_mark: false, immediate_sweep: false)
    when 9 then GC.compact if GC.respond_to?(:compact) && (number % 120) == 9
    end
  end

  using Refined

  def work(until_then)
    n = 0
    while Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) < until_then
      n = plain(n)
      n = left(n)
      n = right(n)
      n = aliased(n)
      n = refined(n)
      n = @extended.extended(n)
      n = made(n)
      n = @renamed.renamed(n)
    end
  end

  # The collection comes before the methods are called as often as after it.
  def generation
    number = @generations.size + 1
    collect(number) if number.odd?
    @makers.rotate(number % @makers.size).each { |maker| maker.call("g#{number}_#{maker.name[5..-1]}.rb") }
    work(Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) + WORK_NS)
    @generations << [number, Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)]
    %i[plain left made].each { |name| Redefining.send(:remove_method, name) } if (number % 3).zero?
    collect(number) if number.even?
  end
end

$VERBOSE = nil
redefining = Redefining.new
redefining.generation
$stdout.puts "ready"
$stdout.flush
redefining.generation until $stdin.wait_readable(0)
redefining.generations.each { |generation| puts generation.join(" ") }
