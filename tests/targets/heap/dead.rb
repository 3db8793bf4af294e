# Keeps some objects and drops others, in the same pages: Ruby 4.0 sweeps pages without any live object at once. Most of
# these pages are not swept yet.
class Kept
end

class Dropped
end

KEPT = Array.new(1_000)
GC.start
GC.disable
1_000.times do |number|
  KEPT[number] = Kept.new
  100.times { Dropped.new }
end
GC.enable
# GC.disable would sweep all pages.
GC.start(full_mark: true, immediate_sweep: false)
$stdout.sync = true
puts "ready"
sleep
