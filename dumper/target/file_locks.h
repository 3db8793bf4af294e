/*
 * If a process waits for a lock on a file, finds the process that has this lock. Reads /proc/locks (proc(5)).
 */
#ifndef RBDUMP_FILE_LOCKS_H
#define RBDUMP_FILE_LOCKS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"

/*
 * Adds two facts. The fact `holder` is the pid, in rbdump's pid namespace, of the process that has the lock. The fact
 * `holder_name` is the kernel's name for this process. Adds nothing in these cases:
 * - according to /proc/locks, the process does not wait for a lock on this file;
 * - the process waits for several locks on this file, and different processes have these locks;
 * - the lock belongs to no process (an open file description lock), or to a process that rbdump does not see;
 * - the holder was not found before `until_ns`.
 *
 *   pid       the process that waits
 *   facts     the facts of the file from descriptor_describe(); receives the two facts
 *   until_ns  the search stops at this time (on the clock of monotonic_ns())
 */
void file_locks_add_holder(pid_t pid, struct facts *facts, uint64_t until_ns);

#endif
