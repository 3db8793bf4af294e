workers 2
threads 2, 2
bind "unix://#{ENV.fetch("WITNESS")}/server.sock"
