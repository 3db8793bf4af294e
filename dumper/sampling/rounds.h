/*
 * Rounds of sampling. In each round, rbdump observes every Ruby thread of a target.
 *
 * A round first reads the list of threads. Then, for each thread, it reads the state that Ruby notes, the state that
 * the kernel reports, and the stack. The stack of a sleeping thread is copied without stopping the thread. If a
 * sleeping thread has not run since the previous round, its stack is not copied again. Running threads are sampled by
 * the `source` in `struct rounds_options`. A quiet round (quiet.h) reads less from the target.
 *
 * A struct rounds belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_ROUNDS_H
#define RBDUMP_ROUNDS_H

#include "sampling/observation_queue.h"
#include "sampling/source.h"

struct rounds;

struct rounds_options {
	double rate;		     /* rounds per second */
	const struct source *source; /* the source for running threads */
	struct timespec origin;	     /* the moment that is time 0 of all observations, by CLOCK_MONOTONIC */
};

/* The session and the queue must outlive the result. Returns NULL if out of memory. */
struct rounds *rounds_create(const struct session *session, const struct rounds_options *options,
			     struct observation_queue *queue);
void rounds_destroy(struct rounds *rounds); /* NULL is fine */

/* Call this function in the thread that will take the rounds, before the first round. */
void rounds_enter(struct rounds *rounds);

/* How late sampling is when a round begins. Both counts apply to each thread of the target. */
struct lateness {
	uint32_t late;	 /* how many samples are late: all missed samples, and the sample of this round if it is late */
	uint32_t missed; /* how many samples were missed before this round; a missed sample is never taken */
};

/*
 * Takes a round. Returns whether `late` and `skipped` were reported in the observations. Returns false if the list of
 * threads could not be read. Also returns false if the round has no observation because a thread did not stop in time.
 *   skipped  how many rounds were skipped because of the CPU time limit since rounds_take() last returned true
 *   rest_ns  how long sampling paused before this round because of the CPU time limit, in nanoseconds
 */
bool rounds_take(struct rounds *rounds, const struct lateness *late, uint32_t skipped, uint64_t rest_ns);

/*
 * Whether a thread of the target did not stop in time. Such a thread stays traced by the thread of rbdump that tried to
 * stop it. Tracing ends when that thread of rbdump ends.
 */
bool rounds_are_stuck(const struct rounds *rounds);

#endif
