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
 * of it. Adds nothing if the kernel does not list a lock of this file for which the process waits, if the process waits
 * for several locks of the file that different processes have, or if the lock belongs to no process (an open file
 * description lock) or to one that rbdump does not see.
 *   pid       the process that waits
 *   facts     what descriptor_describe() has told of the file
 *   until_ns  when to stop, a time of monotonic_ns()
 */
void file_locks_add_holder(pid_t pid, struct facts *facts, uint64_t until_ns);

#endif
