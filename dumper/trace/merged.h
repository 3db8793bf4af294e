/*
 * Merges the traces of several looks at one process. The result shows which stacks each thread had, in which looks it had
 * each stack, and how much CPU time it used between the first look and the last.
 */
#ifndef RBDUMP_MERGED_H
#define RBDUMP_MERGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"
#include "trace/trace.h"

/* The number of values of enum trace_state. */
#define MERGED_STATES (STATE_SUSPENDED + 1)

/* A stack that a thread had in one look or in several. */
struct merged_stack {
	const struct trace *trace;     /* the trace of the first of these looks */
	const struct trace_thread *as; /* the thread as that trace shows it: frames, verdict, reason, waits */
	uint64_t hash;		       /* trace_stack_hash() */
	unsigned int *looks;	       /* the numbers of these looks, ascending */
	size_t nr_looks;
	bool waits_differ; /* what the thread waited for, or what it held, was not the same in all of these looks */
	bool calls_differ; /* the thread was not in the same system call in all of these looks */
};

/* A thread, or a suspended fiber, that was there in one look or in several. */
struct merged_thread {
	const struct trace_thread *as; /* the thread in one of these looks; ids and name are as in the last of them */
	enum trace_state last;	       /* its state in the last of these looks */
	unsigned int first_look, last_look, nr_looks;
	size_t last_entry;		    /* its index in the trace of `last_look` */
	unsigned int states[MERGED_STATES]; /* in how many looks it was in each state */
	/* The look before `first_look` had a complete list of threads, without this thread: it has begun since then. */
	bool began;
	/* A look after `last_look` had a complete list of threads, without this thread: it has ended. */
	bool ended;
	/* It may not have ended: it may have got another tid, and then it is also another element of `threads`. */
	bool doubtful;
	bool has_cpu; /* `cpu_ns` is known */
	/* CPU time from the first of all looks (or from the thread's start, if it started later) to `last_look`. */
	uint64_t cpu_ns;
	bool slept; /* the native thread has not run at all between the first and the last of these looks */
	/* In the order in which they were first seen. After merged_finish(): sorted by the number of looks. */
	struct merged_stack *stacks;
	size_t nr_stacks;
};

/* One look. */
struct merged_look {
	unsigned int number;
	struct timespec time;
	unsigned int pauses; /* `pauses` and `pause_us` are as in struct trace */
	double pause_us;
	bool all_threads, all_fibers; /* the list of threads is complete; the list of fibers is complete */
	bool gc_known, gc_running;
	size_t nr_threads; /* without suspended fibers */
};

struct merged_kept {
	struct trace *trace;
};

/* A zeroed struct is empty. To free the memory, call merged_clear(). */
struct merged {
	struct merged_look *looks;
	size_t nr_looks;
	uint64_t ns; /* nanoseconds from the beginning of the first look to the beginning of the last look */
	/* In the order in which they were first seen. After merged_finish(): each thread is followed by its fibers. */
	struct merged_thread *threads;
	size_t nr_threads;
	struct trace *last; /* the trace of the last look */
	/* Only merged.c uses the members below. */
	struct index_table by_thread;
	size_t threads_capacity, looks_capacity;
	struct merged_kept *kept; /* the traces to which `threads` has pointers, except `last` */
	size_t nr_kept, kept_capacity, kept_bytes;
	bool last_has_parts; /* `threads` has pointers to parts of `last` */
};

/*
 * Adds the trace of the next look. The traces must come in the order of their looks, and trace_compare() must have compared
 * each trace with the previous one. Takes ownership of the trace, even if the function fails. Returns false if there is
 * not enough memory.
 */
bool merged_add(struct merged *merged, struct trace *trace);

/* Whether the merged traces need so much memory that no further trace should be added. */
bool merged_is_full(const struct merged *merged);

/*
 * Call this function after the last trace. Sorts the threads so that each is followed by its fibers, finds out which threads
 * have ended, and sorts the stacks of each thread by the number of looks in which they were seen, the highest number first.
 * Returns false if there is not enough memory.
 */
bool merged_finish(struct merged *merged);

/*
 * Whether a thread has moved between the first and the last look in which it was there. Call this function after
 * merged_finish(). MOVED_YES if the thread had at least two different complete stacks. Otherwise, MOVED_NOT_KNOWN if it had a
 * stack that is not complete. Otherwise, MOVED_NOT_ASKED if it was there in only one look.
 */
enum trace_moved merged_moved(const struct merged_thread *thread);

/* The index of a thread in merged->last->threads; SIZE_MAX if the thread was not there in the last look. */
size_t merged_last_entry(const struct merged *merged, const struct merged_thread *thread);

/* The stack that a thread had in the last look in which it was there. */
const struct merged_stack *merged_last_stack(const struct merged_thread *thread);

void merged_clear(struct merged *merged);

#endif
