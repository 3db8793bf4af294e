/*
 * Finds out what a file descriptor of a live process is, from its link and file in /proc (proc(5)):
 * /proc/PID/task/TID/fd and fdinfo. Nothing is opened, and no descriptor is copied: a copy would keep the file open after
 * the process has closed it.
 */
#ifndef RBDUMP_DESCRIPTOR_H
#define RBDUMP_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/facts.h"
#include "target/mounts.h"

/*
 * Describes a descriptor. `facts` receives these facts; each only if it is known and applies:
 *
 *   fd          its number
 *   kind        "file", "directory", "symlink", "terminal", "device", "block-device", "pipe", "fifo", "socket", "eventfd",
 *               "epoll", "timerfd", "signalfd", "inotify", "fanotify", "pidfd", "memfd", "userfaultfd", "io_uring", "bpf",
 *               "perf_event", "namespace", "other"; "closed": the thread has no such descriptor; "unknown": the
 *               kernel does not tell, or a server or a program would have to be asked
 *   path        of a file, directory, terminal, device or FIFO: its path in the target's root directory. Of a memfd: its
 *               name. For "other" and "bpf": what the kernel calls it
 *   file_system the kind of file system ("nfs4"), if it may have to ask a server or a program. Then the file is not
 *               looked at, and only `path` and `access` are known; `kind` is "unknown"
 *   deleted     true if no path leads to the file any more
 *   access      "read", "write", "read-write" or "path" (O_PATH)
 *   offset      where in the file the next read or write begins; only of a file
 *   size        of a file, in bytes
 *   nonblocking true if it has O_NONBLOCK
 *   inode       identifies a pipe, FIFO, socket or file; if it has a path, `device` is the number of its file system
 *   count       of an eventfd
 *   signals     of a signalfd
 *   process     of a pidfd: the process in rbdump's pid namespace; 0: in none that rbdump sees; -1: it has ended
 *   clock, remaining_ns, interval_ns  of a timerfd; remaining_ns is 0 if the timer is not set
 *   watches     of an inotify or a fanotify: how many
 *   targets     of an epoll set: a list of things with `fd`, `events` and these facts. `more_targets`: how many more
 *   replaced    of a target of an epoll set: true if the number now belongs to another file, or to no file; then only
 *               `fd` and `events` are known
 *   protocol    of a socket: the kernel's name ("TCP", "UNIX", …); sockets.h adds addresses and state
 *
 * If there is not enough memory, sets `facts->failed`.
 *   mounts    keeps the lists of mounts for the next descriptor of the same look
 *   pid, tid  the thread whose descriptor it is, in rbdump's pid namespace
 */
void descriptor_describe(struct mounts *mounts, pid_t pid, pid_t tid, int fd, struct facts *facts);

#endif
