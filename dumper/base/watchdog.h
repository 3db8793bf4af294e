/*
 * Ends a capture (the process of rbdump that samples one target) when a read of the target's memory does not return. If
 * a page of this memory must come from a file system that does not answer, or through userfaultfd(2), the read can wait
 * in the kernel forever. A thread of the target might remain stopped during this wait. The wait ends only when the
 * capture itself ends. When the capture ends, the kernel resumes the thread.
 */
#ifndef RBDUMP_WATCHDOG_H
#define RBDUMP_WATCHDOG_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* The maximum duration of a read, in seconds. If a read takes longer, the watchdog calls give_up(). */
#define WATCHDOG_S 5

/* The two kinds of reads of the target's memory. Each kind is watched separately. */
enum reading { READING_STACKS, READING_NAMES, READINGS };

/*
 * Starts a thread that watches all reads of the target's memory until the calling process ends. Fails if the thread
 * cannot be started.
 */
struct error *watchdog_begin(pid_t target);

/* Call watchdog_reads() before the target's memory is read, and watchdog_has_read() afterwards. */
void watchdog_reads(enum reading who);
void watchdog_has_read(enum reading who);

#endif
