/*
 * Finds out whether the kernel has given a CPU to any thread of a set. If a thread fell asleep earlier, and the kernel
 * has not given it a CPU since then, the thread has not run. So such a thread need not be checked individually. The
 * kernel reports context switches as they happen (perf_event_open(2), PERF_RECORD_SWITCH). So checking a set costs the
 * same for a thousand threads as for one thread. A thread can also be watched alone, outside of a set. Checking a
 * thread that is watched alone requires no system call.
 *
 * A set belongs to one thread of rbdump at a time. The same applies to a `struct switch_event` for a thread that is
 * watched alone.
 */
#ifndef RBDUMP_SWITCH_EVENTS_H
#define RBDUMP_SWITCH_EVENTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "sampling/perf_ring.h"

struct switch_events;

/* Creates an empty set of watched threads. Returns NULL if memory or file descriptors are used up. */
struct switch_events *switch_events_create(void);
void switch_events_destroy(struct switch_events *events); /* NULL is fine */

/*
 * Before the kernel can watch the first thread on a machine, it needs about 10 ms to prepare. To avoid this delay
 * later, this function makes the kernel prepare now. So this function takes about 10 ms. Returns a descriptor, or -1 on
 * failure. Until the caller closes the descriptor, each context switch on the machine takes a little longer
 * (kernel/events/core.c, perf_event_switch(), v6.1).
 */
int switch_events_prepare(void);

/* One thread that is watched. */
struct switch_event {
	struct perf_ring ring; /* if `ring.fd` is -1, no thread is watched */
};

/*
 * Begins to watch a thread. On failure, returns false and sets errno. There are two usual causes: the kernel does not
 * allow rbdump to watch the thread (kernel.perf_event_paranoid, CAP_PERFMON), or the kernel has no room for another
 * event. If the thread has ended, errno is ESRCH.
 *   events  the set to which the thread is added; NULL: the thread is watched alone (see switch_event_told())
 */
bool switch_event_open(struct switch_events *events, pid_t tid, struct switch_event *ret);
void switch_event_close(struct switch_event *event);

/* What the kernel has reported about a thread that is watched alone. */
struct switches_told {
	bool any;	       /* whether there was a report; if not, the thread was not switched, and has not ended */
	bool ended;	       /* the thread is about to end, or has called exec; there will be no more reports */
	unsigned int switches; /* how many switches were reported; too low if the ring had no room for all reports */
};

/*
 * Returns what the kernel has reported about a thread that is watched alone. Each call covers the time since the
 * previous call for the same thread. Makes no system call.
 */
struct switches_told switch_event_told(const struct switch_event *event);

/*
 * Drops all earlier reports about a thread. Returns a mark. Pass this mark to switch_event_reported() to find out
 * whether the kernel has reported anything about the thread since the mark was returned. Makes no system call. Call
 * this function only for a thread that is watched.
 */
uint64_t switch_event_mark(const struct switch_event *event);
bool switch_event_reported(const struct switch_event *event, uint64_t mark);

/*
 * Whether any thread of the set has been given a CPU, has lost its CPU, or has ended since the previous call of this
 * function for this set. Also returns true if the reports cannot be read.
 */
bool switch_events_happened(struct switch_events *events);

#endif
