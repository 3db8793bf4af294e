/*
 * Ends a capture whose target's memory does not answer: a page that a dead file system, or userfaultfd(2), is to
 * provide is waited for in the kernel, maybe with a thread of the target stopped. Nothing but the end of the process
 * ends that wait; the kernel then lets the target go on.
 */
#ifndef RBDUMP_WATCHDOG_H
#define RBDUMP_WATCHDOG_H

#include <stdint.h>
#include <sys/types.h>

#include "error.h"

/* How long it may take to read what is wanted at one time. */
#define WATCHDOG_S 5

/* Who reads the target's memory. */
enum reading { READING_PULSE, READING_NAMES, READINGS };

/* Begins to watch, until the process ends. Fails if there can be no thread. */
struct error *watchdog_begin(pid_t target);

/* The target's memory is going to be read; it was. */
void watchdog_reads(enum reading who);
void watchdog_has_read(enum reading who);

#endif
