/*
 * What the threads and fibers of a trace wait for, and which Mutexes they hold. These facts are from Ruby's own data. What
 * the kernel shows about a thread's system call is in target/call.h.
 *
 * If a thread or fiber waits for another thread or fiber, this wait is an edge of a graph. wait_graph.h follows the edges.
 */
#ifndef RBDUMP_TRACE_WAITS_H
#define RBDUMP_TRACE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum wait_kind {
	WAIT_NONE,	/* the thread does not wait, or rbdump does not know what it waits for */
	WAIT_MUTEX,	/* to lock a Mutex */
	WAIT_MONITOR,	/* to enter a Monitor */
	WAIT_CONDITION, /* for a signal of a ConditionVariable */
	WAIT_POP,	/* for an element of a Queue or SizedQueue */
	WAIT_PUSH,	/* for room in a SizedQueue */
	WAIT_JOIN,	/* for the end of a thread */
	WAIT_GVL,	/* for the GVL */
	WAIT_PROCESS,	/* for a child process */
	WAIT_SLEEP,	/* until a time has passed, or until the thread is woken up */
};

/* Who must act before a wait can end. */
enum wait_holder {
	HOLDER_NONE,	/* nobody in particular */
	HOLDER_KNOWN,	/* a thread or fiber of the trace */
	HOLDER_ENDED,	/* a fiber that has ended, so that the wait cannot end */
	HOLDER_UNKNOWN, /* rbdump could not find out who must act */
};

/* Stands in place of the index of an entry if there is no entry. */
#define WAIT_NO_ENTRY SIZE_MAX

struct trace_wait {
	enum wait_kind kind;
	const char *method;	/* the method that waits ("Thread::Queue#pop"); NULL if not known */
	uint64_t object;	/* the object (a VALUE) that the thread or fiber waits for; 0 if there is none */
	const char *class_name; /* class of the object; NULL if not known */
	enum wait_holder holder_state;
	/*
	 * For HOLDER_KNOWN: the address of a fiber (rb_fiber_t), or of a thread (rb_thread_t). The address of a thread
	 * stands for the thread's current fiber.
	 */
	uint64_t holder;
	size_t holder_entry; /* index of the holder in trace->threads; set by wait_graph_find() */
	/*
	 * The wait is certain: the waiter sleeps until somebody wakes it, nobody has woken it, and it is in Ruby's list
	 * of those that wait for this object. If the wait is for a lock, the lock is also in the list of Mutexes that
	 * the holder's thread holds. rbdump makes these checks only if the holder has ended, is a suspended fiber, or
	 * also waits for a holder. In all other cases, `confirmed` is false.
	 */
	bool confirmed;
	bool limited;	    /* the wait has a time limit */
	bool limit_unknown; /* it is not known whether the wait has a time limit; in this case, `limited` is false */
	bool has_seconds;   /* `seconds` is known */
	double seconds;	    /* the time limit, counted from the beginning of the wait */
	bool has_length;
	uint64_t length; /* how many elements a Queue has */
	uint64_t max;	 /* the maximum number of elements of a SizedQueue; 0 for a Queue */
	int64_t child;	 /* pid of the child process, as the target sees it; -1: any child; 0: not known */
	size_t waiters;	 /* how many entries wait for this object, including this entry; set by wait_graph_find() */
};

/* A Mutex that a thread or fiber holds. */
struct trace_hold {
	uint64_t lock;		/* address of the rb_mutex_t */
	uint64_t object;	/* the Mutex, or the Monitor to which the Mutex belongs; 0 if not known */
	const char *class_name; /* class of the object; NULL if not known */
	bool has_frame;
	size_t frame;	/* index of the frame of `synchronize` that has locked the Mutex */
	size_t waiters; /* how many entries wait for it; set by wait_graph_find() */
};

/* Entries that can never go on, because each of them waits for the next one, and the last one waits for the first. */
struct trace_deadlock {
	size_t *entries; /* indexes in trace->threads */
	size_t count;
	/* The deadlock is a single entry, which waits for a lock whose holder has ended. */
	bool holder_ended;
};

#endif
