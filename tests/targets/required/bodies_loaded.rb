module Loaded
  1.times do
    load File.join(__dir__, "bodies_loaded_wrapped.rb"), true
  end
end
