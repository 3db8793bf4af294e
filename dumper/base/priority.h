/*
 * The real-time priorities (SCHED_FIFO) of rbdump's threads. To set these priorities, rbdump needs root, CAP_SYS_NICE,
 * or a limit RLIMIT_RTPRIO that permits them. A thread with a real-time priority preempts all threads that have a lower
 * real-time priority or no real-time priority.
 */
#ifndef RBDUMP_PRIORITY_H
#define RBDUMP_PRIORITY_H

#include <stdbool.h>

enum priority {
	/*
	 * for the thread that finds the names of stack frames, as long as the CPU time of this thread is within a limit
	 * (sampling/names_priority.h)
	 */
	PRIORITY_NAMES = 1,
	PRIORITY_SAMPLES, /* for the thread that takes samples, or that stops the target for a dump */
	PRIORITY_GUARD,	  /* for the guard, which resumes the targets of stuck tracers (guard/stop_guard.h) */
};

/*
 * Gives the calling thread a real-time priority, if this is permitted. Does nothing if the thread has a scheduling
 * policy other than SCHED_OTHER, because the user may have chosen that policy (chrt(1)). If RLIMIT_RTPRIO permits only
 * priorities that are lower than `priority`, the thread gets the highest permitted priority. However, if `priority` is
 * PRIORITY_NAMES, the thread gets a real-time priority only if PRIORITY_SAMPLES is also permitted. Returns whether this
 * call has given the thread a real-time priority.
 */
bool priority_raise(enum priority priority);

/* Takes away the priority that priority_raise() has given to the calling thread. */
void priority_lower(void);

/* Returns whether the calling thread has a real-time priority. */
bool priority_is_real_time(void);

/*
 * Lets other threads of the machine go first: raises the nice value of the calling thread to PRIORITY_NICE. Threads that
 * the calling thread creates later inherit this value. Does nothing if the nice value is already that high. An ordinary
 * user cannot lower the nice value again.
 */
void priority_give_way(void);

#define PRIORITY_NICE 10

#endif
