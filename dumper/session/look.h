/*
 * One look at a target through one layout: everything that is read in it, from whatever the session's memory holds, and
 * what came of it. A part of the session.
 */
#ifndef RBDUMP_LOOK_H
#define RBDUMP_LOOK_H

#include "session/session.h"
#include "vm/fibers.h"

/* The longest that a look may take unless the target is stopped: 5 s. What there was no time for is marked. */
#define LOOK_NS 5000000000L

struct look {
	struct ruby ruby;
	struct heap_finds found; /* by the last search for fibers: it outlives a look */
	struct ruby_threads threads;
	struct ruby_fibers fibers;
	struct stack *stacks; /* one for each thread, then one for each fiber */
	size_t nr_stacks;
	struct trace *trace; /* its threads in the same order */
	char *refused;	     /* what the self-test has against the layout; NULL if nothing */
	bool no_memory;
};

/*
 * Reads everything that is wanted through the memory of `look->ruby`, once, in place of what the last look has read.
 *   limit_ns  how long it may take
 * If it runs out of memory, it sets `no_memory`.
 */
void look_once(const struct session *session, struct look *look, long limit_ns);

/*
 * Marks the threads and fibers whose execution context or control frames in the target are no longer what was read, and
 * tests the layout on the others. Returns how many have moved; sets `no_memory` if out of it.
 */
size_t look_mark_moved(const struct session *session, struct look *look);

/* Puts each fiber of the trace behind its thread. False if out of memory. */
bool look_order(struct look *look);

/* Frees everything. */
void look_clear(struct look *look);

#endif
