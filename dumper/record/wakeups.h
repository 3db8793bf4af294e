/*
 * Which threads of a target have been given a CPU: one that has not since it fell asleep is where it was, and need not
 * be looked at. The kernel tells of it as it happens (perf_event_open(2), PERF_RECORD_SWITCH), so that to ask costs the
 * same for a thousand threads as for one. Or whether one thread has been taken from its CPU, for which no system call
 * is needed at all.
 *
 * Belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_WAKEUPS_H
#define RBDUMP_WAKEUPS_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/perf_ring.h"

struct wakeups;

/* NULL if out of memory. */
struct wakeups *wakeups_create(void);
void wakeups_destroy(struct wakeups *wakeups); /* NULL is fine */

/*
 * The first thread of all that is watched on a machine takes the kernel some 10 ms to arrange: this does that
 * beforehand, until the descriptor that it gives is closed. -1 if it cannot be done. As long as it is arranged, each
 * switch on the machine costs a little (kernel/events/core.c, perf_event_switch(), v6.1).
 */
int wakeups_prepare(void);

/* One thread that is watched. */
struct wakeup {
	struct perf_ring ring; /* its fd -1: none is */
};

/*
 * Begins to watch a thread. False with errno if the kernel does not allow it (kernel.perf_event_paranoid, CAP_PERFMON),
 * or has no room; ESRCH: the thread has ended.
 *   wakeups  among whom it is asked for; NULL: by itself, with wakeup_told()
 */
bool wakeup_open(struct wakeups *wakeups, pid_t tid, struct wakeup *ret);
void wakeup_close(struct wakeup *wakeup);

/* What the kernel has told of a thread that is watched by itself. */
struct wakeup_told {
	bool any;	       /* something: if not, it was neither taken from a CPU nor given one, and has not ended */
	bool ended;	       /* and will tell nothing more: it is about to end, or has become another program */
	unsigned int switches; /* how often it was taken from a CPU, or given one: a least, where there was no room */
};

/* That, since this was asked last. No system call. */
struct wakeup_told wakeup_told(const struct wakeup *wakeup);

/* Whether one of those that are watched was given a CPU, or has ended, since this was asked last. */
bool wakeups_happened(struct wakeups *wakeups);

#endif
