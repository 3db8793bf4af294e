class Wrapped
  TOPLEVEL_BINDING.receiver.instance_eval { 1.times { Still::GATE.pop } }
end
