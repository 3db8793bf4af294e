# Waits in poll(2) for all descriptors in its arguments, for nothing but errors: so it waits for files, too.
fds = ARGV.map { |fd| [Integer(fd), 0, 0].pack("iss") }.join
syscall(7, [fds].pack("P").unpack("q")[0], ARGV.size, 86_400_000)
