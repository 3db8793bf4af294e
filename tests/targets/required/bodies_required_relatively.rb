load File.join(__dir__, "bodies_loaded.rb")
