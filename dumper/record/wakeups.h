/*
 * Which threads of a target have been given a CPU: one that has not since it fell asleep is where it was, and need not
 * be looked at. The kernel tells of it as it happens (perf_event_open(2), PERF_RECORD_SWITCH), so that to ask costs the
 * same for a thousand threads as for one.
 *
 * Belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_WAKEUPS_H
#define RBDUMP_WAKEUPS_H

#include <stdbool.h>
#include <sys/types.h>

struct wakeups;

/* NULL if out of memory. */
struct wakeups *wakeups_create(void);
void wakeups_destroy(struct wakeups *wakeups); /* NULL is fine */

/* One thread that is watched. */
struct wakeup {
	int fd; /* -1: none */
	void *records;
};

/*
 * Begins to watch a thread. False with errno if the kernel does not allow it (kernel.perf_event_paranoid, CAP_PERFMON),
 * or has no room; ESRCH: the thread has ended.
 *   wakeups  among whom it is asked for; NULL: by itself, with wakeup_switches()
 */
bool wakeup_open(struct wakeups *wakeups, pid_t tid, struct wakeup *ret);
void wakeup_close(struct wakeup *wakeup);

/*
 * How often a thread that is watched by itself was given a CPU or taken from one since this was asked last: 0 only if
 * it was not, and has not ended. As many at most as there is room for. No system call.
 */
unsigned int wakeup_switches(const struct wakeup *wakeup);

/* Whether one of those that are watched was given a CPU, or has ended, since this was asked last. */
bool wakeups_happened(struct wakeups *wakeups);

#endif
