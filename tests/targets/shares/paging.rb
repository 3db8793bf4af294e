# A thread that reads a page of memory which another process has to supply first (userfaultfd(2)): prints "ready" before
# it does so, or why it cannot. The page is there when standard input ends; then both processes end.
begin
  require "fiddle"
rescue LoadError => error
  abort error.message
end
PAGE = 4096
MMAP, USERFAULTFD, USER_MODE_ONLY = 9, 323, 1 # of x86_64
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_ZEROPAGE = 0xc018aa3f, 0xc020aa00, 0xc020aa04

begin
  at = syscall(MMAP, 0, PAGE, 3, 0x22, -1, 0)
  faults = IO.for_fd(syscall(USERFAULTFD, USER_MODE_ONLY))
  faults.ioctl(UFFDIO_API, [0xaa, 0, 0].pack("Q3"))
  faults.ioctl(UFFDIO_REGISTER, [at, PAGE, 1, 0].pack("Q4"))
rescue SystemCallError => error
  abort error.message
end
# All of this process waits for who is in the page and has the GVL.
supplier = fork do
  $stdin.read
  faults.ioctl(UFFDIO_ZEROPAGE, [at, PAGE, 0, 0].pack("Q4"))
end
memory = Fiddle::Pointer.new(at)

def page(memory)
  memory[0, 8]
end

$stdout.puts "ready"
$stdout.flush
page(memory)
Process.wait(supplier)
