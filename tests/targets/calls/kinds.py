"""
Opens a descriptor of each kind, says on standard output what it has opened, and becomes a Ruby that waits for all of
them: kinds.py FOLDER RUBY SCRIPT.

One line of JSON: an object for each descriptor, by name, with `fd` and the facts that this program knows by itself. Those
that report an error or a hang-up at once are watched only by the epoll set, and have `quiet`: false.
"""

import ctypes
import errno
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile

SYS_PERF_EVENT_OPEN, SYS_BPF, SYS_USERFAULTFD, SYS_IO_URING_SETUP = 298, 321, 323, 425
SYS_SIGNALFD4, SYS_TIMERFD_CREATE, SYS_TIMERFD_SETTIME, SYS_INOTIFY_INIT1, SYS_INOTIFY_ADD_WATCH = 289, 283, 286, 294, 254
UDPLITE = 136

libc = ctypes.CDLL(None, use_errno=True)
opened, keep = {}, []


def call(number, *arguments):
    done = libc.syscall(ctypes.c_long(number), *arguments)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def add(name, fd, kind, quiet=True, **facts):
    """Notes a descriptor; it stays open, also in the Ruby."""
    if not isinstance(fd, int):
        keep.append(fd)
        fd = fd.fileno()
    os.set_inheritable(fd, True)
    opened[name] = {"fd": fd, "kind": kind, "quiet": quiet, **facts}
    return fd


def try_to(function, *arguments):
    """Not every machine allows each kind."""
    try:
        function(*arguments)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.EINVAL):
            raise


def end(fd):
    return [{"process": "self", "fd": fd}]


def files(folder):
    (folder / "plain").write_bytes(b"0123456789")
    fd = add("file", os.open(folder / "plain", os.O_RDWR | os.O_APPEND), "file", path=str(folder / "plain"), access="read-write", append=True, offset=4, size=10)
    os.lseek(fd, 4, os.SEEK_SET)
    (folder / "gone").write_bytes(b"")
    add("deleted", os.open(folder / "gone", os.O_RDONLY), "file", path=str(folder / "gone"), deleted=True, access="read", offset=0, size=0)
    (folder / "gone").unlink()
    # One that is there under another name only, and one that is not deleted, whatever its name says.
    (folder / "moved").write_bytes(b"")
    os.link(folder / "moved", folder / "other name")
    add("unlinked", os.open(folder / "moved", os.O_WRONLY), "file", path=str(folder / "moved"), deleted=True, access="write")
    (folder / "moved").unlink()
    odd = folder / "not gone (deleted)"
    odd.write_bytes(b"")
    add("odd", os.open(odd, os.O_RDONLY), "file", path=str(odd), deleted=None)
    hostile = os.fsencode(folder) + b"/\x1b[31m\n\xff\xe2\x80\xae"
    add("hostile", os.open(hostile, os.O_CREAT | os.O_RDONLY), "file", path=os.fsdecode(os.fsencode(folder)) + "/\x1b[31m\n\\xFF\u202e")
    add("directory", os.open(folder, os.O_RDONLY), "directory", path=str(folder))
    (folder / "link").symlink_to("plain")
    add("symlink", os.open(folder / "link", os.O_PATH | os.O_NOFOLLOW), "symlink", quiet=None, path=str(folder / "link"), access="path")
    add("device", os.open("/dev/null", os.O_WRONLY), "device", path="/dev/null", access="write")
    add("namespace", os.open("/proc/self/ns/uts", os.O_RDONLY), "namespace", path=os.readlink("/proc/self/ns/uts"))
    add("memfd", os.memfd_create("a name", 0), "memfd", path="a name", size=0)


def detached(folder):
    """A file of a mount that no list has: nobody can know whether it is one of this machine."""
    (folder / "mount").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder / "mount"], check=True)
    add("detached", os.open(folder / "mount" / "file", os.O_CREAT | os.O_RDONLY), "unknown", path="/file", access="read", inode=None)
    subprocess.run(["umount", "--lazy", folder / "mount"], check=True)


def terminals():
    master, slave = os.openpty()
    add("terminal", slave, "terminal", path=os.ttyname(slave), access="read-write")
    add("ptmx", master, "terminal")


def pipes(folder):
    reads, writes = os.pipe()
    add("pipe-read", reads, "pipe", access="read", ends=end(writes))
    add("pipe-write", writes, "pipe", access="write", ends=end(reads))
    reads, writes = os.pipe()
    os.close(reads)
    add("pipe-alone", writes, "pipe", quiet=False, access="write", ends=[])
    os.mkfifo(folder / "fifo")
    reads = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    writes = os.open(folder / "fifo", os.O_WRONLY)
    add("fifo-read", reads, "fifo", path=str(folder / "fifo"), access="read", nonblocking=True, ends=end(writes))
    add("fifo-write", writes, "fifo", path=str(folder / "fifo"), access="write", nonblocking=None, ends=end(reads))


def ends_of_others():
    """Other processes have the other ends: as root, one in a pid namespace of its own, and the one that has made it."""
    reads, writes = os.pipe()
    shared_reads, shared_writes = os.pipe()
    one, other = socket.socketpair()
    theirs = [writes, shared_writes, other.fileno()]
    enter = ["unshare", "--pid", "--fork", "--kill-child"] if os.geteuid() == 0 else []
    program = [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    child = subprocess.Popen([*enter, *program], pass_fds=theirs, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    keep.append(child)
    # It ends once the Ruby has ended, which alone has the other end.
    os.set_inheritable(child.stdin.fileno(), True)
    os.close(writes)
    add("pipe-of-others", reads, "pipe", access="read", ends=[{"process": "others", "fd": writes}])
    both = [{"process": "self", "fd": shared_writes}, {"process": "others", "fd": shared_writes}]
    add("pipe-of-several", shared_reads, "pipe", access="read", ends=both)
    os.set_inheritable(shared_writes, True)
    add("pair-of-others", one, "socket", type="stream", state="connected", ends=[{"process": "others", "fd": other.fileno()}])
    other.close()


def text_of(address):
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


def tcp(name, family, host):
    server = socket.create_server((host, 0), family=family)
    add(f"{name}-listen", server, "socket", local=text_of(server.getsockname()), remote=None, state="listen", receive_queue=1)
    client = socket.create_connection(server.getsockname()[:2])
    accepted, _ = server.accept()
    client.send(b"seven b")
    waiting = socket.create_connection(server.getsockname()[:2])
    ends = [text_of(client.getsockname()), text_of(client.getpeername())]
    add(f"{name}-client", client, "socket", local=ends[0], remote=ends[1], state="established", receive_queue=0, ends=end(accepted.fileno()))
    add(f"{name}-server", accepted, "socket", local=ends[1], remote=ends[0], state="established", receive_queue=7, ends=end(client.fileno()))
    # It is connected, but nobody has accepted it: the other end has no descriptor.
    add(f"{name}-waiting", waiting, "socket", local=text_of(waiting.getsockname()), state="established")


def mapped():
    server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    client = socket.create_connection(("127.0.0.1", server.getsockname()[1]))
    accepted, _ = server.accept()
    keep.append(server)
    add("mapped-client", client, "socket", local=text_of(client.getsockname()), ends=end(accepted.fileno()))
    add("mapped-server", accepted, "socket", remote=text_of(accepted.getpeername()), ends=end(client.fileno()))


def half_closed():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    keep.append(server)
    client.shutdown(socket.SHUT_WR)
    add("fin-wait", client, "socket", quiet=False, state="fin-wait-2")
    add("close-wait", accepted, "socket", quiet=False, state="close-wait")


def datagrams(name, family, host, protocol=0):
    first, second = (socket.socket(family, socket.SOCK_DGRAM, protocol) for _ in range(2))
    first.bind((host, 0))
    second.connect(first.getsockname())
    add(f"{name}-bound", first, "socket", local=text_of(first.getsockname()), remote=None, state="unconnected")
    add(f"{name}-connected", second, "socket", local=text_of(second.getsockname()), remote=text_of(first.getsockname()), state="established")


def raw(name, family, protocol):
    add(name, socket.socket(family, socket.SOCK_RAW, protocol), "socket", protocol="RAW" if family == socket.AF_INET else "RAWv6", state="unconnected")


def ping():
    ping = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    ping.bind(("127.0.0.1", 0))
    add("ping", ping, "socket", protocol="PING", local=text_of(ping.getsockname()))


def unix(folder):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "unix"))
    server.listen(5)
    add("unix-listen", server, "socket", local=str(folder / "unix"), type="stream", state="listen", send_queue=5)
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(folder / "unix"))
    accepted, _ = server.accept()
    add("unix-client", client, "socket", type="stream", state="connected", ends=end(accepted.fileno()))
    add("unix-server", accepted, "socket", local=str(folder / "unix"), ends=end(client.fileno()))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(b"\0rbdump\0test %d" % os.getpid())
    abstract.listen()
    add("unix-abstract", abstract, "socket", local=f"@rbdump@test {os.getpid()}", state="listen")
    # A name that makes two lines of the table /proc/net/unix.
    odd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    odd.bind(b"\0%d\n00000000: 00000002 00000000 00000000 0001 01 1 /fake" % os.getpid())
    add("unix-odd", odd, "socket", type="datagram", state="unconnected", local=f"@{os.getpid()}\n00000000: 00000002 00000000 00000000 0001 01 1 /fake")
    for name, kind in ("datagram", socket.SOCK_DGRAM), ("seqpacket", socket.SOCK_SEQPACKET), ("stream", socket.SOCK_STREAM):
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        add(f"pair-{name}", one, "socket", type=name, state="connected", ends=end(other.fileno()))
        keep.append(other)
        os.set_inheritable(other.fileno(), True)


def others():
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    netlink.bind((0, 0))
    add("netlink", netlink, "socket", protocol="NETLINK", family="ROUTE", port=netlink.getsockname()[0])
    add("unbound", socket.socket(), "socket", quiet=False, protocol="TCP", state=None, missing="not-listed")


def packet():
    add("packet", socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5)), "socket", type="raw", ethernet_protocol=0x88B5)


def anonymous(folder):
    add("eventfd", os.eventfd(0x1F), "eventfd", count=0x1F)
    timer = call(SYS_TIMERFD_CREATE, 1, 0)
    call(SYS_TIMERFD_SETTIME, timer, 0, struct.pack("4q", 7, 0, 5000, 0), None)
    add("timerfd", timer, "timerfd", clock="monotonic", interval_ns=7 * 10**9)
    add("timerfd-off", call(SYS_TIMERFD_CREATE, 0, 0), "timerfd", clock="realtime", remaining_ns=0)
    mask = struct.pack("Q", 1 << signal.SIGUSR2 - 1 | 1 << signal.SIGWINCH - 1)
    add("signalfd", call(SYS_SIGNALFD4, -1, mask, 8, 0), "signalfd", signals="SIGUSR2, SIGWINCH")
    inotify = call(SYS_INOTIFY_INIT1, 0)
    call(SYS_INOTIFY_ADD_WATCH, inotify, os.fsencode(folder), 0x200)
    call(SYS_INOTIFY_ADD_WATCH, inotify, b"/dev", 0x200)
    add("inotify", inotify, "inotify", watches=2)
    add("pidfd", os.pidfd_open(os.getpid()), "pidfd", process="self")


def rare():
    add("userfaultfd", call(SYS_USERFAULTFD, os.O_NONBLOCK), "userfaultfd", quiet=False)


def ring():
    add("io_uring", call(SYS_IO_URING_SETUP, 4, ctypes.create_string_buffer(120)), "io_uring")


def counter():
    attributes = struct.pack("IIQQQQQ", 1, 112, 1, 0, 0, 0, 1) + bytes(112 - 48)
    add("perf_event", call(SYS_PERF_EVENT_OPEN, attributes, 0, -1, -1, 0), "perf_event", quiet=False)


def map_of_bpf():
    attributes = struct.pack("5I", 2, 4, 4, 1, 0) + bytes(108)
    add("bpf", call(SYS_BPF, 0, attributes, len(attributes)), "bpf", quiet=False, path="anon_inode:bpf-map")


def epoll():
    import select

    watched = select.epoll()
    targets = []
    for name in ("eventfd", "pipe-read", "tcp4-server", *(name for name, one in opened.items() if one["quiet"] is False)):
        # What a set waits for is told by it; errors are always reported.
        events = {"tcp4-server": select.EPOLLIN | select.EPOLLOUT | select.EPOLLET, "pipe-read": select.EPOLLPRI}.get(name, 0)
        watched.register(opened[name]["fd"], events)
        targets.append([opened[name]["fd"], {"tcp4-server": "read, write", "pipe-read": "priority"}.get(name, "errors"), name])
    # A number that has become another file's.
    gone, other = os.eventfd(0), os.eventfd(0)
    os.set_inheritable(gone, True)
    os.set_inheritable(os.dup(gone), True)
    watched.register(gone, 0)
    os.dup2(other, gone)  # stays inheritable
    targets.append([gone, "errors", None])
    add("epoll", watched, "epoll", watched=targets)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1]))
    files(folder)
    if os.path.ismount(sys.argv[1]):  # in a mount namespace of its own
        detached(folder)
    terminals()
    pipes(folder)
    ends_of_others()
    tcp("tcp4", socket.AF_INET, "127.0.0.1")
    try_to(tcp, "tcp6", socket.AF_INET6, "::1")
    try_to(mapped)
    half_closed()
    datagrams("udp4", socket.AF_INET, "127.0.0.1")
    try_to(datagrams, "udp6", socket.AF_INET6, "::1")
    try_to(datagrams, "udplite", socket.AF_INET, "127.0.0.1", UDPLITE)
    try_to(raw, "raw4", socket.AF_INET, 253)
    try_to(raw, "raw6", socket.AF_INET6, 253)
    try_to(ping)
    unix(folder)
    others()
    try_to(packet)
    anonymous(folder)
    for function in rare, ring, counter, map_of_bpf:
        try_to(function)
    epoll()
    sys.stdout.write(json.dumps(opened) + "\n")
    sys.stdout.flush()
    quiet = [str(one["fd"]) for one in opened.values() if one["quiet"]]
    os.execv(sys.argv[2], [sys.argv[2], "--disable-gems", sys.argv[3], *quiet])


main()
