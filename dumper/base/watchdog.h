/*
 * Ends a capture (the process of rbdump that samples one target) when a read of the target's memory does not return. If
 * a page must come from a dead file system or from userfaultfd(2), the read waits in the kernel. A thread of the target
 * may be stopped during the wait. The wait ends only when the capture itself ends. When the capture ends, the kernel
 * lets the target go on.
 */
#ifndef RBDUMP_WATCHDOG_H
#define RBDUMP_WATCHDOG_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* How many seconds may pass between watchdog_reads() and watchdog_has_read() before give_up() ends the process. */
#define WATCHDOG_S 5

/* The two kinds of reads of the target's memory. Each kind is watched separately. */
enum reading { READING_STACKS, READING_NAMES, READINGS };

/* Starts a thread that watches all reads until the process ends. Fails if the thread cannot be started. */
struct error *watchdog_begin(pid_t target);

/* Call watchdog_reads() before the target's memory is read, and watchdog_has_read() afterwards. */
void watchdog_reads(enum reading who);
void watchdog_has_read(enum reading who);

#endif
