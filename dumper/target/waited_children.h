/*
 * The children for which a process waits: those that its threads have forked, and that it has not reaped yet.
 */
#ifndef RBDUMP_WAITED_CHILDREN_H
#define RBDUMP_WAITED_CHILDREN_H

#include <sys/types.h>

#include "base/facts.h"

/* The maximum numbers of children that are listed, and of children that are looked at. */
#define CHILDREN_LISTED 8
#define CHILDREN_MAX	4096

/*
 * Adds a list `children` of things with `process` (its pid in rbdump's pid namespace), `name` (the kernel's name) and
 * `state` ("running", "asleep", "uninterruptible", "stopped", "ended"), and a number `more_children` if there are more
 * than CHILDREN_LISTED. Adds nothing if the kernel does not list children (CONFIG_PROC_CHILDREN).
 *   child  the only child that is listed: its pid as the process knows it; 0: all children are listed
 */
void waited_children_add(pid_t pid, pid_t child, struct facts *facts);

#endif
