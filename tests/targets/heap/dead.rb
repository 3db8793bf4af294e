# Keeps some objects and drops others. They were marked, but most of the pages are not swept yet.
class Kept
end

class Dropped
end

KEPT = Array.new(1_000) { Kept.new }
GC.start
GC.disable
100_000.times { Dropped.new }
GC.enable
# GC.disable would sweep all pages.
GC.start(full_mark: true, immediate_sweep: false)
$stdout.sync = true
puts "ready"
sleep
