/*
 * The threads of a target that a recording samples. For each thread, rbdump keeps some data from one round to the next.
 */
#ifndef RBDUMP_WATCHED_H
#define RBDUMP_WATCHED_H

#include "sampling/sample.h"
#include "sampling/switch_events.h"

/* A watched thread, with the data that is kept about this thread. */
struct watched {
	struct subject subject;
	uint64_t noted_tid; /* the tid that Ruby stores; changes if the Ruby thread gets another native thread */
	uint64_t pthread;   /* the pthread_t that Ruby stores; changes if the Ruby thread gets another native thread */
	/*
	 * What task_look() returned just before the stack was last copied. All members are zero if the thread did not
	 * sleep during that copy.
	 */
	struct task_look look;
	bool has_stack;		   /* the last sample had a stack, and this stack was added to the queue */
	bool was_handed_on;	   /* at least one stack of the thread was added to the queue */
	uint64_t seen_ns;	   /* when the thread was last seen: ns since `origin` (rounds.h); 0: never */
	uint64_t round;		   /* the last round in which the thread was in the list of threads */
	struct switch_event event; /* if `ring.fd` is -1, the sleep guard does not watch the thread */
	/* how many checks in a row found that the thread was asleep, and had not run since the previous check */
	unsigned int asleep;
	/* how many checks in a row found that the thread was awake, or had run since the previous check */
	unsigned int awake;
	/*
	 * At the last check, the sleep guard was already watching the thread, and the thread had not run since the
	 * previous check.
	 */
	bool guarded;
	uint64_t mark; /* if `guarded`: the mark that was taken just before the last check (switch_event_mark()) */
};

/*
 * A list of watched threads, sorted by the addresses of their rb_thread_t. If all members are zero, the list is empty.
 */
struct watched_list {
	struct watched *of;
	size_t count, capacity;
};

/*
 * Finds the entry of an rb_thread_t. If the thread has no entry, adds an entry. For a new entry, the thread's files in
 * /proc are not opened. Returns NULL if there is not enough memory. Adding an entry moves other entries in memory, so
 * pointers to entries become invalid.
 *   ec     the thread's execution context; used only if an entry is added
 *   added  receives whether the entry is new
 */
struct watched *watched_find(struct watched_list *list, uint64_t thread, uint64_t ec, bool *added);

#endif
