/*
 * If a process waits for a lock of a file: which process has this lock, as /proc/locks says (proc(5)).
 */
#ifndef RBDUMP_FILE_LOCKS_H
#define RBDUMP_FILE_LOCKS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"

/*
 * Adds the facts `holder`, the process that has the lock, in rbdump's pid namespace, and `holder_name`, the kernel's name
 * for it. Adds nothing in these cases: the kernel lists no lock of this file for which the process waits; the process
 * waits for several locks of this file, and different processes have these locks; the lock belongs to no process (an open
 * file description lock), or to a process that rbdump does not see.
 *   pid       the process that waits
 *   facts     the facts of the file from descriptor_describe()
 *   until_ns  when to stop, a time of monotonic_ns()
 */
void file_locks_add_holder(pid_t pid, struct facts *facts, uint64_t until_ns);

#endif
