/*
 * A round is quiet if only the running thread (the thread with the GVL) can have run since the previous round. This is
 * certain if all other threads sleep, and the kernel has given none of them a CPU since the previous round. In a quiet
 * round, only the stack of the running thread and a few words of the target's memory are read (ruby/thread_words.h).
 * These words change when a thread is added, or when another thread gets the GVL.
 */
#ifndef RBDUMP_QUIET_H
#define RBDUMP_QUIET_H

#include "ruby/thread_words.h"
#include "sampling/sleep_guard.h"

/* The data that quiet rounds need. */
struct quiet {
	bool may_be;		    /* whether the next round can be quiet */
	size_t running_at;	    /* index of the running thread in the watched list; SIZE_MAX: no thread runs */
	struct ruby_thread running; /* the running thread */
	/* the words of memory that show whether Ruby's list of threads has changed; set only if a thread is running */
	struct thread_words words;
	/* The indexes, in the watched list, of the threads that are checked one by one. */
	size_t few[SLEEP_GUARD_FEW], nr_few;
	bool any_guarded;  /* whether any thread except the running thread is guarded (sampling/watched.h) */
	uint64_t since_ns; /* when all threads were last checked: ns since `origin` (sampling/rounds.h) */
	uint64_t last_ns;  /* when the last quiet round was: ns since `origin` */
};

/*
 * Call this function after a round in which all threads were checked. Decides whether the next round can be quiet, and
 * prepares for a quiet round.
 *   ruby     `ruby->memory` must be the snapshot from which `threads` was read
 *   now_ns   the current time, in ns since `origin` (sampling/rounds.h)
 */
void quiet_prepare(struct quiet *quiet, const struct ruby *ruby, const struct ruby_threads *threads,
		   const struct watched_list *list, uint64_t now_ns);

/*
 * Returns true if it is certain that no thread except the running thread has run since the previous round. Call this
 * function only if `may_be` is set.
 */
bool quiet_holds(const struct quiet *quiet, const struct watched_list *list, struct sleep_guard *guard);

#endif
