# A target with work of its own: Debian's rubocop, over and over the same files, until standard input ends.
#
#   ruby rubocop.rb FOLDER [progress]
#
# It runs on any Ruby that Debian's packages of it run on: what they need is found where Debian keeps gems of Ruby code
# alone. Prints "ready" once the first run is over; and, if asked for, its progress: for each file the moment of the monotonic
# clock, and how long the file took, in seconds.

GEMS = "/usr/share/rubygems-integration/all/gems"
NEEDED = %w[rubocop rubocop-ast ast parser regexp_parser rainbow parallel ruby-progressbar].freeze
NEEDED.each { |name| $LOAD_PATH.concat(Dir["#{GEMS}/#{name}-[0-9]*/lib"]) }
# What was part of Ruby once (racc, rexml) comes from the system's own Ruby, unless this one still has it.
$LOAD_PATH.concat(["/usr/lib/ruby/vendor_ruby", *Dir["/usr/lib/ruby/gems/*/gems/rexml-*/lib"], *Dir["/usr/lib/ruby/[0-9]*"]])
require "rubocop"

class Progress < RuboCop::Formatter::BaseFormatter
  def file_started(_file, _options)
    @began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def file_finished(_file, _offenses)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    $progress&.puts(format("%.6f %.6f", now, now - @began))
  end
end

Thread.new { $stdin.read; exit!(0) }
out = $stdout.dup
out.sync = true
$stdout.reopen(File::NULL, "w")
$stderr.reopen(File::NULL, "w") unless ENV["SHOW"]
first = true
loop do
  status = RuboCop::CLI.new.run(["--cache", "false", "--no-parallel", "--format", "Progress", *Dir["#{ARGV.fetch(0)}/**/*.rb"].sort])
  abort("rubocop failed") unless [0, 1].include?(status) # no offense, some
  out.puts("ready") if first
  out.flush
  $progress = out if ARGV[1] == "progress"
  first = false
end
