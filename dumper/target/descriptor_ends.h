/*
 * Which processes have the other end of a pipe, a FIFO or a socket: found by the links in /proc/PID/fd of all processes
 * that rbdump may read.
 */
#ifndef RBDUMP_DESCRIPTOR_ENDS_H
#define RBDUMP_DESCRIPTOR_ENDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"
#include "target/mounts.h"

/* The maximum number of ends that are listed for one descriptor. */
#define DESCRIPTOR_ENDS_MAX 8

/*
 * Searches all processes once for all descriptors. Adds these facts to each descriptor that has another end:
 *
 *   ends          a list, perhaps empty, of things with `process`, `name` (the kernel's name of the process) and `fd`.
 *                 For a descriptor that only reads a pipe or FIFO: those that can write; for one that only writes:
 *                 those that can read
 *   more_ends     how many more ends were found
 *   ends_missing  why there can be more: "out-of-time", or "refused" (rbdump may not read the descriptors of all
 *                 processes)
 *
 * Adds nothing to other descriptors, or to a socket whose `peer` is not known. The search begins with the process
 * itself and its parent. The search cannot find descriptors of processes in pid namespaces that rbdump does not see,
 * descriptors of threads that have their own descriptors, or descriptors that are on their way through a Unix socket.
 *   mounts         keeps the lists of mounts
 *   wanted, count  the facts from descriptor_describe() and sockets_describe(). Several descriptors can have the same
 *                  other end
 *   until_ns       when to stop, a time of monotonic_ns()
 */
void descriptor_ends_find(struct mounts *mounts, pid_t pid, struct facts *const *wanted, size_t count,
			  uint64_t until_ns);

#endif
