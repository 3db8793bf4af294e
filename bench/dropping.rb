# A process that defines methods, calls them for a moment, and drops them, for ever. Writes "ready".
def leaf(n) = n + 1

class Dropping
  def work
    n = 0
    garbage = []
    2_000.times { n = leaf(n); garbage << n.to_s }
  end

  def drop(number)
    singleton_class.class_eval("def dropped_#{number}\n  work\nend", "dropped_#{number}.rb")
    send(:"dropped_#{number}")
    singleton_class.send(:remove_method, :"dropped_#{number}")
  end
end

$stdout.write("ready\n")
$stdout.flush
dropping = Dropping.new
number = 0
dropping.drop(number += 1) while true
