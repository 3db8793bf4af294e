# An application: some requests are answered at once, and some never.
GATE = Queue.new

class Application
  def call(env)
    env["PATH_INFO"] == "/wait" ? wait_for_ever(env) : answer(env)
  end

  def answer(env)
    [200, { "Content-Type" => "text/plain" }, ["from #{Process.pid}\n"]]
  end

  def wait_for_ever(env)
    [env].each { GATE.pop }
  end
end

use Rack::ContentLength
run Application.new
