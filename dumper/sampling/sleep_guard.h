/*
 * Watches sleeping threads: the kernel reports when one of them gets a CPU. As long as there is no report, no watched
 * thread has run.
 */
#ifndef RBDUMP_SLEEP_GUARD_H
#define RBDUMP_SLEEP_GUARD_H

#include "sampling/watched.h"

/* If no more than this many threads sleep, they are checked one by one instead of being watched. */
#define SLEEP_GUARD_FEW 4u

struct sleep_guard {
	struct switch_events *events; /* NULL: the kernel cannot report context switches */
	size_t nr_opened;	      /* how many threads the guard began to watch in this round */
	/* how many threads were awake at their check in this round, or had run since their previous check */
	size_t nr_awake;
	double mean_awake; /* the mean of `nr_awake` per period of sampling over about the last third of a second */
	uint64_t mean_ns;  /* when `mean_awake` was last updated: ns since `origin` (sampling/rounds.h) */
	bool restless;	   /* so many threads wake up that watching is of no use */
	bool woken;	   /* a watched thread may have run since all threads were last checked */
};

void sleep_guard_init(struct sleep_guard *guard);
void sleep_guard_clear(struct sleep_guard *guard);

/*
 * Begins a round in which all threads are checked. Call sleep_guard_note() for each thread before
 * sleep_guard_end_round().
 */
void sleep_guard_begin_round(struct sleep_guard *guard);
/*
 * Ends a round in which all threads were checked.
 *   now_ns     the current time, in ns since `origin` (sampling/rounds.h)
 *   period_ns  the period of sampling
 */
void sleep_guard_end_round(struct sleep_guard *guard, struct watched_list *list, uint64_t now_ns, uint64_t period_ns);

/*
 * Notes that a thread was checked. `same` says whether the thread is asleep and has not run since its previous check.
 * If the thread has slept for a while, begins to watch the thread. If `same` is true, and the thread was already
 * watched before this call, sets `guarded` of the thread, because no wake-up can have been missed. Otherwise clears
 * `guarded`.
 */
void sleep_guard_note(struct sleep_guard *guard, struct watched_list *list, struct watched *watched, bool same);

/* Call this function just before a thread is checked. */
void sleep_guard_begin_check(struct watched *watched);

/* Whether a guarded thread may have run since all threads were last checked. */
bool sleep_guard_was_woken(struct sleep_guard *guard);

/* Whether a thread is guarded, and has not run since it was last checked. */
bool sleep_guard_sleeps_on(const struct watched *watched);

#endif
