# A target that spends its time in functions of Ruby's own C code: it sorts, searches, formats and hashes, one after the other,
# until standard input ends. Prints "ready".
Thread.new { $stdin.read; exit!(0) }
words = Array.new(400) { |i| "#{i * 7919 % 1000} word #{i}" }
$stdout.puts "ready"
$stdout.flush
loop do
  words.sort_by { |word| word.reverse }
  words.each { |word| word.gsub(/o(r)d/, '\1') }
  words.each { |word| word.sum }
  words.to_h { |word| [word, word.size] }
  words.map { |word| format("%08d %s", word.to_i, word) }
  (1..200).map { |i| 3**(i + 100) }.sum
end
