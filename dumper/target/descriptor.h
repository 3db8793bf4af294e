/*
 * Finds out what a file descriptor of a live process refers to: a file, a pipe, a socket, and so on. Reads the
 * descriptor's link in /proc/PID/task/TID/fd, and the descriptor's file in /proc/PID/task/TID/fdinfo (proc(5)). If the
 * descriptor refers to a file, rbdump does not open this file for reading or writing. rbdump also does not copy the
 * descriptor, because a copy would keep the file open after the process has closed it.
 */
#ifndef RBDUMP_DESCRIPTOR_H
#define RBDUMP_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/facts.h"
#include "target/mounts.h"

/*
 * Describes a descriptor. `facts` receives the following facts, if they are known and apply to the descriptor:
 *
 *   fd          the descriptor's number
 *   kind        "file", "directory", "symlink", "terminal", "device", "block-device", "pipe", "fifo", "socket",
 *               "eventfd", "epoll", "timerfd", "signalfd", "inotify", "fanotify", "pidfd", "memfd", "userfaultfd",
 *               "io_uring", "bpf", "perf_event", "namespace" or "other". "closed": the thread has no such descriptor.
 *               "unknown": the kernel does not show the kind, or would have to ask a server or a program for the kind
 *   path        for a file that has a path: the path, as seen from the target's root directory. For a memfd: its name. For
 *               the kinds "namespace", "other" and "bpf": the kernel's name for the file
 *   file_system the kind of file system ("nfs4"). This fact exists only if the kernel may have to ask a server or a program
 *               about the file. In this case, rbdump does not access the file: `kind` is "unknown", and only `path` (as
 *               the kernel gives it) and the facts about the open mode (`access`, `nonblocking` and `append`) are known
 *   deleted     true if `path` no longer leads to the file
 *   access      "read", "write", "read-write" or "path" (O_PATH)
 *   offset      for a file, memfd or block device: where the next read or write begins
 *   size        for a file or memfd: its size in bytes
 *   nonblocking true if the descriptor has O_NONBLOCK
 *   append      true if the descriptor has O_APPEND
 *   inode       the inode number, which identifies a pipe, FIFO, socket or file. If the file has a path, the
 *               fact `device` is also added: the number of its file system
 *   count       for an eventfd: its counter
 *   signals     for a signalfd: the signals that it receives
 *   process     for a pidfd: the pid, in rbdump's pid namespace, of the process that the pidfd refers to. 0: the process
 *               is in a pid namespace that rbdump does not see. -1: the process has ended
 *   clock, remaining_ns, interval_ns  for a timerfd: its clock, the time until the timer expires (0: the timer is not
 *               set), and its interval
 *   watches     for an inotify or fanotify descriptor: how many watches it has
 *   targets     for an epoll set: a list of the descriptors that the set watches. Each item has `fd`, `events`, and the
 *               facts of this table that apply to the watched descriptor. `more_targets`: how many descriptors the list
 *               omits
 *   replaced    for an item of `targets`: true if the number `fd` now belongs to another file, or to no file. In this case,
 *               only `fd` and `events` are known
 *   protocol    for a socket: the kernel's name for its protocol ("TCP", "UNIX", …). sockets_describe() adds addresses
 *               and state
 *
 * If there is not enough memory, sets `facts->failed`.
 *   mounts    keeps the lists of mounts, so that later calls can use them again
 *   pid, tid  the thread that has the descriptor; both ids are in rbdump's pid namespace
 */
void descriptor_describe(struct mounts *mounts, pid_t pid, pid_t tid, int fd, struct facts *facts);

#endif
