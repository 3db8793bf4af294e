/*
 * Finds out what a thread or a suspended fiber waits for: from rb_thread_t.locking_mutex, and from the innermost frame.
 * The name of the frame's method and the type of its receiver (self) show it: a Thread::Queue that waits in `pop`, a
 * Monitor in `enter`, a Thread in `join`.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: thread_sync.c and thread_sync.rb, thread.c, process.c,
 * ext/monitor/monitor.c; and plain_locks.h.
 */
#ifndef RBDUMP_WAIT_FRAMES_H
#define RBDUMP_WAIT_FRAMES_H

#include "ruby/locks.h"
#include "trace/trace.h"

/* What a thread or fiber waits for, as far as its own memory tells it. */
struct wait_found {
	uint64_t mutex;	 /* for WAIT_MUTEX and WAIT_MONITOR: the rb_mutex_t; else 0 */
	uint64_t thread; /* for WAIT_JOIN: the rb_thread_t that must end; else 0 */
};

/*
 * Fills in entry->wait, except for its holder, `confirmed`, and the members that wait_graph_find() sets. The wait has the
 * kind WAIT_NONE if rbdump does not know what the entry waits for.
 *   ec     the entry's execution context; 0 if not known
 *   entry  a thread or a suspended fiber; its state, frames, waits_in and waits_for must have been filled in
 *   trace  owns the strings
 */
void wait_frames_find(struct locks *locks, uint64_t ec, struct trace_thread *entry, struct trace *trace,
		      struct wait_found *ret);

/*
 * Fills in entry->holds: the Mutexes that belong to an entry, the objects of these Mutexes and the frames that have
 * locked them, if that can be told. Returns false if there is not enough memory.
 *   mutexes  the addresses (rb_mutex_t) of `count` Mutexes that the entry holds
 */
bool wait_frames_holds(struct locks *locks, const uint64_t *mutexes, size_t count, struct trace_thread *entry,
		       struct trace *trace);

#endif
