/*
 * The children for which a process can wait: processes that its threads have forked, and that it has not reaped yet.
 */
#ifndef RBDUMP_WAITED_CHILDREN_H
#define RBDUMP_WAITED_CHILDREN_H

#include <sys/types.h>

#include "base/facts.h"

/* rbdump lists at most CHILDREN_LISTED children of a process, and looks at no more than CHILDREN_MAX. */
#define CHILDREN_LISTED 8
#define CHILDREN_MAX	4096

/*
 * Adds a list `children`. Each element has `process` (the child's pid in rbdump's pid namespace), `name` (the kernel's
 * name for the child) and `state` ("running", "asleep", "uninterruptible", "stopped", "ended"). If the process has more
 * children than CHILDREN_LISTED, also adds `more_children`: how many children are not listed. Adds nothing if the kernel
 * does not list children (CONFIG_PROC_CHILDREN), or, if `child` is not 0, if it does not list pids by namespace (NSpid).
 *   child  0: lists all children; otherwise, the pid of the only child to list, as the process `pid` sees this pid
 */
void waited_children_add(pid_t pid, pid_t child, struct facts *facts);

#endif
