module BodiesAutoloaded
  Still::GATE.pop
end
