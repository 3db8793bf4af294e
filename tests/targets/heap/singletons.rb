# More classes than rbdump tells apart: each of these objects has a singleton class.
class Single
end

KEPT = Array.new(70_000) { Single.new.tap { |single| def single.own; end } }
$stdout.sync = true
puts "ready"
sleep
