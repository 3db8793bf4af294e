/*
 * The children for which a process can wait: processes that its threads have forked, and that it has not reaped yet.
 */
#ifndef RBDUMP_WAITED_CHILDREN_H
#define RBDUMP_WAITED_CHILDREN_H

#include <sys/types.h>

#include "base/facts.h"

/* rbdump looks at no more than CHILDREN_MAX children of a process, and lists at most CHILDREN_LISTED of them. */
#define CHILDREN_LISTED 8
#define CHILDREN_MAX	4096

/*
 * Adds a list `children`. Each element has `process` (the child's pid in rbdump's pid namespace), `name` (the kernel's
 * name for the child) and `state` ("running", "asleep", "uninterruptible", "stopped", "ended"). If the process has more
 * children than CHILDREN_LISTED, also adds `more_children`: how many children rbdump looked at, but did not list. Adds
 * nothing if the kernel was built without CONFIG_PROC_CHILDREN, and so does not list children. Also adds nothing if
 * `child` is not 0 and the kernel does not show which pid a process has in each of its pid namespaces (NSpid).
 *   child  0: lists all children. Otherwise, lists only the child that has this pid in the pid namespace of the process
 *          `pid`
 */
void waited_children_add(pid_t pid, pid_t child, struct facts *facts);

#endif
