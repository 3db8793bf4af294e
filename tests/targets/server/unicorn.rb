worker_processes 2
listen "#{ENV.fetch("WITNESS")}/server.sock"
