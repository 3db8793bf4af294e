# Two calls, made when a line comes in: what is left of the first is where the frame of the second is made.
def other(a, b)
  [a, b]
end

def inner(a, b)
  [a, b,
   caller_locations(0).map { |at| [at.label, at.lineno] }]
end

def outer
  other(1, 2)
  inner(1, 2)
end

outer # so that the calls are no longer the first of their kind
puts "ready"
$stdout.flush
$stdin.gets
puts outer.last.map { |label, line| "#{label}:#{line}" }.join(" ")
