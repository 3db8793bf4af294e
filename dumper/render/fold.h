/*
 * Decides in which order threads are shown to people, and which threads are shown as one. Threads can be shown as one if
 * they are idle and have the same stack. So even a dump of many threads is short enough to read.
 */
#ifndef RBDUMP_FOLD_H
#define RBDUMP_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/trace.h"

/* Threads are shown as one only if there are at least this many of them. */
#define FOLD_LEAST 3

/* A thread or suspended fiber that is to be shown. */
struct fold_entry {
	const struct trace_thread *thread;
	bool active;	   /* the thread runs, or waits for the GVL; active threads are shown above the others */
	bool alone;	   /* always shown alone */
	unsigned int kind; /* only entries of the same kind are shown as one */
};

/* A single entry, or at least FOLD_LEAST entries that are shown as one. */
struct fold {
	const size_t *members; /* indexes of the entries, in ascending order */
	size_t count;
};

struct folding {
	struct fold *folds; /* in the order in which they are shown */
	size_t nr_folds;
	size_t *members; /* the array that `members` of each fold points into */
};

/*
 * Returns the entry for a thread or suspended fiber of a trace.
 *   next  the thread or fiber that follows `thread` in the trace; NULL if `thread` is the last
 */
struct fold_entry fold_entry_of(const struct trace *trace, const struct trace_thread *thread,
				const struct trace_thread *next);

/*
 * Makes the folding. The active threads come first, then the other threads that are shown alone, then the threads that
 * are shown as one. Apart from this, the order of the entries does not change. Suspended fibers stay after their
 * thread. Suspended fibers of one thread are shown as one, too, if they have the same stack and wait for the same
 * thing.
 *
 * Threads are shown as one only if they sleep or are blocked, if their stacks are complete and the same (trace/same.h), and
 * if they have the same state, ractor and `kind`. If they wait for a Mutex, a Monitor or the end of a thread, they must all
 * wait for the same object. These threads are always shown alone: the main thread, a thread with fibers, a thread that holds
 * a lock, a thread whose native frames may be in wrong places, and the thread that has received the signal that ended the
 * process.
 *   all  if true, the order of the entries does not change, and each entry is shown alone
 * Returns false if there is not enough memory. To free `ret`, call folding_clear().
 */
bool fold(const struct fold_entry *entries, size_t count, bool all, struct folding *ret);

void folding_clear(struct folding *folding);

#endif
