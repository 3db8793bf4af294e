# Threads that are in C functions of many kinds, which call Ruby code and are called by it: many.rb THREADS SECONDS.
# Prints "ready" once each of them runs, and ends with its standard input, or after so many seconds.
require "json"
require "zlib"
require "digest/sha2"

Thread.abort_on_exception = true
DATA = (1..200).map { |n| [n.to_s * 3, n] }
TEXT = DATA.flatten.join(" ")
LARGE = TEXT * 40
LOCK = Mutex.new
QUEUE = Queue.new
SIZED = SizedQueue.new(2)
Pair = Struct.new(:first, :last) do
  include Comparable
  def <=>(other)
    first <=> other.first
  end
end

class Answers
  def method_missing(name, *arguments, &block)
    name == :down ? go(*arguments, &block) : super
  end

  def respond_to_missing?(name, all = false)
    name == :down || super
  end

  define_method(:go) { |n, &block| n.zero? ? block.call : send(:down, n - 1, &block) }

  def each
    DATA.each { |text, n| yield text + n.to_s }
  end
  include Enumerable
end

def fibers(depth)
  return yield if depth.zero?
  Fiber.new { fibers(depth - 1) { yield } }.resume
end

def through_pipe
  reader, writer = IO.pipe
  child = Thread.new { writer.write(LARGE * 4); writer.close }
  reader.read
  child.join
ensure
  [reader, writer].each { |io| io.close unless io.closed? }
end

DOES = [
  -> { DATA.sort_by { |text, n| [text.reverse, -n] } },
  -> { DATA.map { |pair| Pair.new(*pair) }.sort.max },
  -> { DATA.sort { |a, b| a[0].sum <=> b[0].sum } },
  -> { TEXT.gsub(/(\d)\1+/) { |all| all.size.to_s } },
  -> { LARGE.scan(/(?:1|11|111)+2/) },
  -> { Zlib::Inflate.inflate(Zlib::Deflate.deflate(LARGE, 9)) },
  -> { Digest::SHA256.hexdigest(LARGE) },
  -> { JSON.parse(JSON.generate(DATA)) },
  -> { Marshal.load(Marshal.dump([DATA, Pair.new(1, 2)])) },
  -> { (3**5_000).to_s.to_i(10).to_s(36) },
  -> { DATA.each_with_object(Hash.new { |hash, key| hash[key] = [] }) { |(text, n), hash| hash[text[0]] << n } },
  -> { DATA.each_slice(7).lazy.map { |part| part.inject(0) { |sum, (_, n)| sum + n } }.reject(&:odd?).first(9) },
  -> { Answers.new.down(12) { Answers.new.sort_by(&:hash) } },
  -> { each = Answers.new.each_entry; 50.times { each.next } },
  -> { fibers(5) { DATA.each_cons(2).map { |a, b| a <=> b } } },
  -> { catch(:done) { DATA.each { |_, n| throw :done if n == 150 } } },
  -> { DATA.each { |text, _| begin; Integer(text + "x"); rescue ArgumentError => error; error.message; ensure; text.hash; end } },
  -> { eval("[1, 2].map { |n| binding.local_variables.size + n }") },
  -> { DATA.map { |text, n| [text, n].pack("A8N").unpack("A8N") } },
  -> { 200.times { |n| format("%08.3f %-20s %x", n / 7.0, n, n) } },
  -> { Object.new.instance_eval { DATA.each { |text, _| instance_variable_set("@a#{text}", text) } } },
  -> { Class.new(Answers) { DATA.first(20).each { |text, _| define_method("m#{text}") { text } } }.new.m333 },
  -> { Dir.glob("/usr/*/*").sort.map { |path| File.basename(path) } },
  -> { File.read("/proc/self/maps").lines.map(&:split) },
  -> { through_pipe },
  -> { sleep(0.002) },
  -> { Thread.pass },
  -> { LOCK.synchronize { DATA.reverse_each.to_a } },
  -> { QUEUE << DATA; QUEUE.pop },
  -> { Thread.new { SIZED << 1 }; SIZED.pop },
  -> { IO.select(nil, nil, nil, 0.002) },
  -> { Thread.new { DATA.map(&:inspect) }.value },
  -> { ObjectSpace.each_object(Class) { |one| one.name } },
  -> { 20_000.times.map { |n| "#{n}" } },
  -> { Array.new(20_000) { Object.new }.each(&:object_id).clear },
  -> { TEXT.encode("UTF-16LE").encode("UTF-8").each_char.to_a.tally if TEXT.chars.respond_to?(:tally) },
].freeze

number, seconds = ARGV.map { |word| Integer(word) }
running = Queue.new
number.times do |n|
  Thread.new do
    random = Random.new(n)
    running << n
    DOES.sample(:random => random).call while true
  end
end
number.times { running.pop }
puts "ready"
$stdout.flush
IO.select([$stdin], nil, nil, seconds)
exit!(true)
