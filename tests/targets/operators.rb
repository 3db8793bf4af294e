# Operators whose names nobody has asked Ruby for: until 2.1 they have no Strings. No watcher, which would ask for them.
# needs: 1.9
class Operand
  def ==(other)
    sleep
  end

  def coerce(other)
    [self] == [Operand.new]
  end
end

$stdout.write("{}\n")
$stdout.flush
Thread.new do
  $stdin.read
  exit!(0)
end
1 + Operand.new
