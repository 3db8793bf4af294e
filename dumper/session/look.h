/*
 * One look at a target through one layout: everything that is read in it, from whatever the session's memory holds, and
 * what came of it. A part of the session.
 */
#ifndef RBDUMP_LOOK_H
#define RBDUMP_LOOK_H

#include "session/session.h"
#include "vm/fibers.h"

/* The longest that a look may take unless the target is stopped: 5 s. */
#define LOOK_NS 5000000000L

struct look {
	struct ruby ruby;
	struct heap_finds found; /* by the last search for fibers: it outlives a look */
	struct ruby_threads threads;
	struct address_map natives_by_pointer, natives_by_tid; /* the target's native threads: the index of each */
	/* Unpaused, of a target in another pid namespace: our tid by the target's. */
	struct address_map tids_by_inner;
	enum reason unstopped; /* why some of them did not stop: the worst of that; REASON_NONE if all did */
	struct ruby_fibers fibers;
	struct stack *stacks; /* one for each thread, then one for each fiber */
	size_t nr_stacks;
	struct trace *trace;	     /* its threads in the same order */
	char *refused;		     /* what the self-test has against the layout; NULL if nothing */
	const struct rival *differs; /* a layout that shows something else of the same bytes (rivals.h); NULL */
	bool untested;		     /* there was no time for all of the self-test: nothing is known of the layout */
	bool no_memory;
};

/*
 * Reads everything that is wanted through the memory of `look->ruby`, once, in place of what the last look has read.
 *   limit_ns  how long it may take, whatever the target says: the most of that for reading, and the rest for the
 *             self-test. Which threads there was no time for, or which stacks, is said in the trace
 * If it runs out of memory, it sets `no_memory`.
 */
void look_once(const struct session *session, struct look *look, long limit_ns);

/*
 * Marks the threads and fibers whose execution context or control frames in the target are no longer what was read, and
 * the list of threads if there are others now, and tests the layout on the rest. Returns how many stacks and lists have
 * moved; sets `no_memory` if out of it.
 */
size_t look_mark_moved(const struct session *session, struct look *look);

/*
 * Marks all threads and fibers as having no names for certain, since the garbage collector was moving objects while
 * they were read. Returns how many they are.
 */
size_t look_mark_compacted(struct look *look);

/* Moves what a look has found into another one, in place of what that had. `from` is as before its first look. */
void look_move(struct look *from, struct look *to);

/* Puts each fiber of the trace behind its thread. False if out of memory. */
bool look_order(struct look *look);

/* Frees everything. */
void look_clear(struct look *look);

#endif
