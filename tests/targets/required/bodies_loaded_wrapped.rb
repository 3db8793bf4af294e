class Wrapped
  TOPLEVEL_BINDING.eval("self").instance_eval { 1.times { Still::GATE.pop } }
end
