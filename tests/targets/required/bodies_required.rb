class Required
  require_relative "bodies_required_relatively"
end
