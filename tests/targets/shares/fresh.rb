# Most of the time it has a few stacks, again and again; now and then, for some 25 us, one of very many: no two samples see
# the same. Prints "ready", and once standard input has ended what share of the time those have had, by its own clock.
class Fresh
  USUAL = 20_000 # rounds of a loop
  METHODS = 64
  SITES = 500

  def initialize
    @usual = @fresh = 0
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def leaf(i)
    i + 1
  end

  # So many places to call from.
  METHODS.times { |n| class_eval("def sites_#{n}(i)\n#{"i = leaf(i)\n" * SITES}end", "sites.rb", 1) }
  NAMES = Array.new(METHODS) { |n| :"sites_#{n}" }

  def usual
    i = 0
    i += 1 while i < USUAL
  end

  def turn(name)
    before = now
    usual
    between = now
    send(name, 0)
    @usual += between - before
    @fresh += now - between
  end

  def run
    n = 0
    turn(NAMES[(n += 1) % METHODS]) until $done
    $stdout.write("#{@fresh.to_f / (@usual + @fresh)}\n")
  end
end

Thread.new do
  $stdin.read
  $done = true
end
fresh = Fresh.new
$stdout.write("ready\n")
$stdout.flush
fresh.run
