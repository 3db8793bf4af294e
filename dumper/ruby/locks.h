/*
 * Ruby's Mutexes, Queues and ConditionVariables, and the lists of the threads and fibers that wait for them. Based on
 * Ruby's sources, 1.9.3 to 4.0.5 and head: thread_sync.c (rb_mutex_t, struct sync_waiter, rb_queue, rb_szqueue),
 * thread.c (rb_mutex_t up to 2.3, thread_join), vm_core.h (rb_thread_t.keeping_mutexes, locking_mutex, join_list),
 * ext/monitor/monitor.c.
 *
 * The lists are in the target's memory, so a list can be circular or very long. All functions together take at most
 * LOCKS_STEPS steps. When no steps are left, a search ends as if it had reached the end of the list.
 */
#ifndef RBDUMP_LOCKS_H
#define RBDUMP_LOCKS_H

#include "ruby/typed.h"

/* The maximum number of steps for one trace. To follow one link of a list is one step. */
#define LOCKS_STEPS 1000000u

struct locks {
	const struct ruby *ruby;
	uint32_t steps_left;
};

static inline struct locks locks_begin(const struct ruby *ruby)
{
	return (struct locks){ruby, LOCKS_STEPS};
}

/* Takes a step. Returns false if no step is left. */
static inline bool locks_step(struct locks *locks)
{
	if (locks->steps_left == 0)
		return false;
	locks->steps_left--;
	return true;
}

/* Whether this Ruby's layout has the member that shows who holds a Mutex. */
bool locks_are_known(const struct layout *layout);

/* Who holds a Mutex. At most one member is set; the other members are 0. */
struct lock_owner {
	uint64_t thread; /* rb_thread_t, up to 2.7 */
	uint64_t fiber;	 /* rb_fiber_t, 3.0 to 3.4 */
	uint64_t serial; /* the number of an execution context (ec.serial), since 4.0 */
};

/*
 * Reads who holds the Mutex at `mutex` (rb_mutex_t). All members of `ret` are 0 if nobody holds the Mutex. Returns false if
 * the Mutex cannot be read.
 */
bool locks_owner(const struct locks *locks, uint64_t mutex, struct lock_owner *ret);

/*
 * Whether a thread is in the list of the threads and fibers that wait for a Mutex. Up to Ruby 2.4, a Mutex has no such
 * list. In these Rubies, the result shows only whether any thread waits for the Mutex.
 *   fiber  if a fiber waits in a hook of a fiber scheduler: this fiber; 0: any fiber of the thread can be in the list
 */
bool locks_mutex_has_waiter(struct locks *locks, uint64_t mutex, uint64_t thread, uint64_t fiber);

/* Whether the thread `waiter` is in the list of the threads and fibers that wait for the end of `thread`. */
bool locks_is_joined_by(struct locks *locks, uint64_t thread, uint64_t waiter);

/*
 * The Mutexes that a thread and its fibers hold. The Mutex that was locked last is the first in the list. Returns the
 * number of Mutexes, at most `max`.
 *   mutexes  receives the addresses (rb_mutex_t)
 */
size_t locks_held(struct locks *locks, uint64_t thread, uint64_t *mutexes, size_t max);

/*
 * Whether a thread was woken, but has not continued yet (vm_core.h, RUBY_VM_INTERRUPTED). Also true if this is not known.
 */
bool locks_is_woken(const struct locks *locks, uint64_t thread, uint64_t ec);

/* The Mutex (a VALUE) of a Monitor. Returns 0 if `typed` is not a Monitor, or if the Mutex cannot be read. */
uint64_t locks_monitor_mutex(const struct locks *locks, const struct typed *typed);

/*
 * Reads how full a Queue or SizedQueue is.
 *   sized   whether the queue is a SizedQueue
 *   length  receives the number of elements in the queue
 *   max     receives the maximum number of elements; 0 for a Queue
 * Returns false if the queue cannot be read.
 */
bool locks_queue_length(const struct locks *locks, const struct typed *typed, bool sized, uint64_t *length,
			uint64_t *max);

/*
 * The pid of the child process that an execution context waits for; -1 if the execution context waits for any child. The
 * pid is the one that the target itself uses for the child. Returns 0 if this Ruby has no list of such waits (only 2.6 to
 * 3.2 have such a list), or if the execution context is not in the list.
 */
int64_t locks_child(struct locks *locks, uint64_t ec);

#endif
