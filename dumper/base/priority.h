/*
 * The real-time priorities (SCHED_FIFO) of rbdump's threads, which need root or CAP_SYS_NICE. A thread preempts each thread
 * of a lower priority, and each that has none.
 */
#ifndef RBDUMP_PRIORITY_H
#define RBDUMP_PRIORITY_H

#include <stdbool.h>

enum priority {
	PRIORITY_NAMES =
	    1, /* finds names: only for as long as the limit of CPU time allows (sampling/names_priority.h) */
	PRIORITY_SAMPLES, /* takes samples, or stops the target for a dump */
	PRIORITY_GUARD,	  /* lets a stopped target go on if its tracer does not (guard/stop_guard.h) */
};

/*
 * Gives the calling thread a priority, if that is permitted. Leaves the thread alone if the user has started rbdump with a
 * scheduling policy of their own (chrt(1)). Returns whether the thread has a real-time priority now.
 */
bool priority_raise(enum priority priority);

/* Takes the calling thread's priority away, after priority_raise() has returned true. */
void priority_lower(void);

#endif
