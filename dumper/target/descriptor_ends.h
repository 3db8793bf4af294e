/*
 * Finds the processes that have the other end of a pipe, a FIFO or a socket. Reads the links in /proc/PID/fd of all
 * processes whose links rbdump may read.
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
 * Finds the other ends of all wanted descriptors in a single search of all processes. Adds these facts to each wanted
 * descriptor that is a pipe, a FIFO, or a socket whose `peer` is known:
 *
 *   ends          a list of the other ends, which may be empty. Each item has `process`, `name` (the kernel's name for
 *                 the process) and `fd`. If the wanted descriptor of a pipe or FIFO can only read, its other ends are
 *                 the descriptors that can write. If it can only write, its other ends are the descriptors that can read
 *   more_ends     how many other ends were found, but are not in `ends`
 *   ends_missing  why the search may have missed other ends: "out-of-time", or "refused" (rbdump is not permitted
 *                 to read the descriptors of some processes)
 *
 * Adds nothing to any other descriptor. The search begins with `pid`, the process that has the wanted descriptors, and
 * with the parent of this process. The search cannot find these descriptors:
 * - descriptors of processes in pid namespaces that rbdump does not see;
 * - descriptors of threads that do not share the descriptors of their process;
 * - descriptors that were sent through a Unix socket, but not received yet.
 *
 *   mounts         keeps the lists of mounts, so that later calls can use them again
 *   wanted, count  the facts of the descriptors, from descriptor_describe() and sockets_describe(). Several descriptors
 *                  can have the same other end
 *   until_ns       the search stops at this time (on the clock of monotonic_ns())
 */
void descriptor_ends_find(struct mounts *mounts, pid_t pid, struct facts *const *wanted, size_t count,
			  uint64_t until_ns);

#endif
