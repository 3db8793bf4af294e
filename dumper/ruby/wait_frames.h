/*
 * Finds out what a thread or a suspended fiber waits for. The sources of this information are
 * rb_thread_t.locking_mutex, the frame that waits, and Ruby's own list of waits for child processes (see
 * locks_child()). The frame that waits is usually the innermost frame. But for a fiber that waits in a hook of its
 * scheduler, the frame that waits is the frame that has called the hook. The name of the frame's method and the type of
 * the frame's receiver (self) show the kind of the wait: for example, `pop` of a Thread::Queue, `enter` of a Monitor,
 * or `join` of a Thread.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: thread_sync.c and thread_sync.rb, thread.c, process.c,
 * ext/monitor/monitor.c. For the locks of older Rubies, see plain_locks.h.
 */
#ifndef RBDUMP_WAIT_FRAMES_H
#define RBDUMP_WAIT_FRAMES_H

#include "ruby/locks.h"
#include "trace/trace.h"

/* The struct that a thread or fiber waits for: a Mutex, or a thread that must end. */
struct wait_found {
	uint64_t mutex;	 /* for WAIT_MUTEX and WAIT_MONITOR: the rb_mutex_t; else 0 */
	uint64_t thread; /* for WAIT_JOIN: the rb_thread_t that must end; else 0 */
};

/*
 * Fills in entry->wait, except for these members: the holder, `confirmed`, and the members that wait_graph_find() sets.
 * The wait has the kind WAIT_NONE if rbdump does not know what the entry waits for.
 *   ec     the entry's execution context; 0 if not known
 *   entry  a thread or a suspended fiber; its state, frames, waits_in and waits_for must have been filled in
 *   trace  owns the strings
 */
void wait_frames_find(struct locks *locks, uint64_t ec, struct trace_thread *entry, struct trace *trace,
		      struct wait_found *ret);

/*
 * Fills in entry->holds: the Mutexes that an entry holds. If a call of `synchronize` in the entry's stack has locked a
 * Mutex, also notes the frame of this call, the locked object (the Mutex or its Monitor) and the name of the object's
 * class. Returns false if there is not enough memory.
 *   mutexes  the addresses (rb_mutex_t) of `count` Mutexes that the entry holds
 */
bool wait_frames_holds(struct locks *locks, const uint64_t *mutexes, size_t count, struct trace_thread *entry,
		       struct trace *trace);

#endif
