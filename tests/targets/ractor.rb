# needs: 3.0
# A ractor that waits, and tells by a thread of its own what Ruby shows of it; threads of the main ractor beside it.
require_relative "still"

Warning[:experimental] = false
told_read, told_write = IO.pipe

ractor = Ractor.new(told_write.fileno) do |fileno|
  def self.receive_in_method
    [1].each { Ractor.receive }
  end

  Thread.new(Thread.current) do |subject|
    subject.name = "receiver"
    Thread.current.name = "teller"
    sleep 0.001 until subject.status == "sleep" && subject.backtrace_locations(0, 1)[0].base_label == "receive"
    frames = subject.backtrace_locations.map { |at| [at.path, at.absolute_path, at.lineno, at.label] }
    tid = subject.respond_to?(:native_thread_id) ? subject.native_thread_id : nil
    told = IO.for_fd(fileno, autoclose: false)
    told.write(Marshal.dump([tid, subject.inspect[/\w+(?=>\z)/], frames]))
    told.close
    sleep
  end
  receive_in_method
end

tid, state, frames = Marshal.load(told_read)
Still.extra["ractor"] = { "key" => "receiver", "name" => "receiver", "tid" => tid, "state" => state, "frames" => frames }
Still.thread("worker") { Still::GATE.pop }
# Ractor#value took the place of #take in 4.0.
Still.watch(/take|value|receive/)
[ractor].each { ractor.respond_to?(:take) ? ractor.take : ractor.value }
