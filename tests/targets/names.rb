# Names in Unicode, and names that are no valid UTF-8 at all.
require_relative "still"

module Größe
  class Umänderung
    def πρῶτος
      日本語
    end

    def 日本語
      [1].each { 🦀? }
    end

    def 🦀?
      public_send("white space and \\ \"quotes\"\t\u0001\u{7f}\u{2028}\n")
    end

    define_method("white space and \\ \"quotes\"\t\u0001\u{7f}\u{2028}\n") do
      Eétranger.étrange
    end

    class Eétranger
      class << self
        def étrange
          Still::GATE.pop
        end
      end
    end
  end
end

class Bytes
  # Not UTF-8: as binary, as broken UTF-8, cut in the middle of a character, overlong, a surrogate, above U+10FFFF.
  LABELS = ["caf\xE9".b, "\xFF\xFE".b, "a\xC3\xA9b\xE2\x82".b, "\xC0\x80".b, "\xED\xA0\x80".b, "\xF4\x90\x80\x80".b,
            "\\xE9\xE9".b, "\xE2\x28\xA1".b]

  LABELS.each_with_index do |label, i|
    define_method(label) { |&block| block.call }
    class_eval("def ascii_#{i}; public_send(LABELS[#{i}]) { Still::GATE.pop }; end", "dir/\xE9t\xE9-#{i}.rb".b, 5)
  end
end

LATIN = <<~CODE.encode("ISO-8859-1").force_encoding("ASCII-8BIT").freeze
  # encoding: ISO-8859-1
  class E\u00C9tat
    def \u00E9gal
      [1].each { Still::GATE.pop }
    end
  end
CODE
eval LATIN, nil, "latin-\xE9.rb".b
LATIN_STATE = Object.const_get("E\u00C9tat".encode("ISO-8859-1"))

eval <<~CODE.encode("EUC-JP").force_encoding("ASCII-8BIT")
  # encoding: EUC-JP
  class Japanese
    def \u3042\u3044
      yield
    end

    def run
      \u3042\u3044 { Still::GATE.pop }
    end
  end
CODE

# A name that fits into its String object, one that just does not, and long ones; likewise of files.
class Lengths
  [1, 7, 8, 14, 15, 16, 22, 23, 24, 25, 63, 64, 119, 120, 127, 255, 256, 600].each do |n|
    class_eval("def #{"m" * n}; Still::GATE.pop; end", "f" * n)
  end
end

Still.thread("größe \u{1F980}") { Größe::Umänderung.new.πρῶτος }
Bytes::LABELS.each_index { |i| Still.thread("bytes #{i}") { Bytes.new.public_send("ascii_#{i}") } }
Still.thread("latin") { LATIN_STATE.new.public_send("\u00E9gal".encode("ISO-8859-1")) }
Still.thread("japanese") { Japanese.new.run }
Lengths.instance_methods(false).each { |name| Still.thread("length #{name.size}") { Lengths.new.public_send(name) } }
Still.thread("\xFF name".b) { Still::GATE.pop }
Still.thread("") { Still::GATE.pop }
Still.thread("n" * 300) { Still::GATE.pop }

# A file whose name is no valid UTF-8, in a folder whose name is Unicode.
folder = File.join(ARGV.fetch(0), "d\u00EFr")
Dir.mkdir(folder)
file = "#{folder}/caf\xE9.rb".b
File.binwrite(file, "Still.thread('file') { Still::GATE.pop }\nload_more\n")
define_singleton_method(:load_more) { Still::GATE.pop }
Still.watch("pop")
load file
