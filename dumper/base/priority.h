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
 * Gives the calling thread a priority, if that is permitted. Leaves the thread alone if it has a scheduling policy already:
 * the user may have chosen one (chrt(1)). If only a lower priority is permitted (RLIMIT_RTPRIO), the thread that finds names
 * gets none, and any other thread the highest one that is. Returns whether this call has given it a priority.
 */
bool priority_raise(enum priority priority);

/* Takes away what priority_raise() has given to the calling thread. */
void priority_lower(void);

/* Whether the calling thread has a real-time priority. */
bool priority_is_real_time(void);

#endif
