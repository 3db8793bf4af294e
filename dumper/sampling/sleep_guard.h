/*
 * Watches sleeping threads. The kernel reports when a watched thread gets a CPU. If there is no report, no watched
 * thread has run.
 */
#ifndef RBDUMP_SLEEP_GUARD_H
#define RBDUMP_SLEEP_GUARD_H

#include "sampling/watched.h"

/*
 * This many sleeping threads can be checked one by one, so they need not be watched. For this reason, rbdump begins to
 * watch a thread only if Ruby has more than SLEEP_GUARD_FEW + 1 threads.
 */
#define SLEEP_GUARD_FEW 4u

struct sleep_guard {
	struct switch_events *events; /* NULL: rbdump cannot get reports of context switches */
	size_t nr_opened;	      /* how many threads the guard began to watch in this round */
	/* how many checks in this round found that a thread was awake, or had run since its previous check */
	size_t nr_awake;
	double mean_awake; /* the mean of `nr_awake` per sampling period, over about the last third of a second */
	uint64_t mean_ns;  /* when `mean_awake` was last updated: ns since `origin` (sampling/rounds.h) */
	bool restless;	   /* so many threads wake up that watching is useless */
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
 *   period_ns  the sampling period
 */
void sleep_guard_end_round(struct sleep_guard *guard, struct watched_list *list, uint64_t now_ns, uint64_t period_ns);

/*
 * Notes that a thread was checked. `same` says whether the thread is asleep and has not run since its previous check.
 * Begins to watch the thread if it has slept for a while. Sets the `guarded` flag of the thread if `same` is true and
 * the thread was already watched before this call. In all other cases, clears the flag. If the flag is set, the guard
 * cannot miss a wake-up of the thread after this check.
 */
void sleep_guard_note(struct sleep_guard *guard, struct watched_list *list, struct watched *watched, bool same);

/* Call this function just before a thread is checked. */
void sleep_guard_begin_check(struct watched *watched);

/* Whether any watched thread may have run since all threads were last checked. */
bool sleep_guard_was_woken(struct sleep_guard *guard);

/* Whether a thread is guarded, and has not run since it was last checked. */
bool sleep_guard_sleeps_on(const struct watched *watched);

#endif
