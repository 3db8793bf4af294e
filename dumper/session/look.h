/*
 * A look is one pass over the threads, fibers and stacks of a target, through one layout. A look reads from the
 * session's snapshot. The results are in struct look. This header is used only inside session/.
 */
#ifndef RBDUMP_LOOK_H
#define RBDUMP_LOOK_H

#include "ruby/fibers.h"
#include "session/session.h"

/* The time limit for a look at a target that is not stopped: 5 s. */
#define LOOK_NS 5000000000L

struct look {
	struct ruby ruby;
	struct heap_finds found; /* the result of the last search of the heap for fibers; kept for the next looks */
	struct ruby_threads threads;
	struct address_map natives_by_pointer; /* maps known values of fs_base to indexes of the target's `threads` */
	struct address_map natives_by_tid;     /* maps tids to indexes of the target's `threads` */
	/*
	 * Maps tids of the target's pid namespace to tids of rbdump's pid namespace. This map is empty if both
	 * namespaces are the same, or if the target is paused.
	 */
	struct address_map tids_by_inner;
	/* The worst reason why a native thread did not stop; REASON_NONE if all native threads stopped. */
	enum reason unstopped;
	struct ruby_fibers fibers;
	struct stack *stacks; /* one stack for each thread, then one stack for each fiber */
	size_t nr_stacks;
	/* The result. Until look_order() is called, the trace has its threads and fibers in the order of `stacks`. */
	struct trace *trace;
	struct error *refused;	     /* why the self-test refuses the layout; NULL if the layout passes */
	const struct rival *differs; /* a rival (rivals.h) that gives another result for the same bytes; NULL if none */
	bool untested;		     /* there was not enough time for the whole self-test */
	bool no_memory;
};

/*
 * Reads all threads, fibers and stacks once, through `look->ruby.memory`, and runs the self-test. The results replace
 * the results of the previous look.
 *   limit_ns  the time limit for the look, in nanoseconds. The time limit holds even if the target's memory contains
 *             garbage. Most of the time is for reading the stacks, and the rest is for the self-test. Threads and
 *             stacks that were not read in time are marked in the trace
 *
 * Sets `no_memory` if there is not enough memory.
 */
void look_once(const struct session *session, struct look *look, long limit_ns);

/*
 * Reads the list of threads from the target itself, not from the session's snapshot. Returns false if there is not
 * enough memory. If this function returns true, the caller frees `ret` with threads_clear().
 */
bool look_list_now(const struct session *session, const struct look *look, struct ruby_threads *ret);

/*
 * Marks each thread and fiber whose execution context or control frames have changed since the look copied them
 * (memory_has_changed()). Also marks the list of threads if the list has changed. If the self-test has refused the
 * layout and some stacks have changed, repeats the self-test without these stacks. Returns how many stacks and lists
 * have changed. Sets `no_memory` if there is not enough memory.
 *   later  the list of threads that look_list_now() has read after the stacks were copied
 */
size_t look_mark_moved(const struct session *session, struct look *look, const struct ruby_threads *later);

/*
 * Marks all threads and fibers as unreliable, and drops their frames and names. Call this function if the garbage
 * collector moved objects during the look, because any name that the look has read can then be wrong. Returns how many
 * threads and fibers are marked.
 */
size_t look_mark_compacted(struct look *look);

/*
 * Marks each thread and fiber that may have a wrong name, or a frame with a wrong name. Drops the frames and the names
 * of the marked threads and fibers. Call this function if a garbage collection has begun during the look. Returns how
 * many threads and fibers are marked.
 *   old_stay  true if the caller knows that no object of the old generation was freed or moved during the look
 */
size_t look_mark_collected(struct look *look, bool old_stay);

/*
 * Moves the results of `from` to `to`. The moved results replace the previous results of `to`. After the move, `from`
 * has no results. The member `found` is not moved.
 */
void look_move(struct look *from, struct look *to);

/* Sorts the trace so that each thread is followed by its fibers. Returns false if there is not enough memory. */
bool look_order(struct look *look);

/* Frees everything. */
void look_clear(struct look *look);

#endif
