/*
 * Rounds of sampling. In each round, rbdump observes every Ruby thread of a target.
 *
 * At the beginning of a round, rbdump reads the list of threads. For each thread, rbdump then reads three things: the
 * state of the thread according to Ruby, the state according to the kernel, and the stack. The stack of a sleeping
 * thread is copied without stopping the thread. If a sleeping thread has not run since the previous round, its stack is
 * not copied again. A running thread is sampled by the source that `struct rounds_options` names. In a quiet round
 * (quiet.h), rbdump reads only the stack of the running thread and a few other words of memory.
 *
 * A struct rounds belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_ROUNDS_H
#define RBDUMP_ROUNDS_H

#include "sampling/observation_queue.h"
#include "sampling/sampler_options.h"
#include "sampling/source.h"

struct rounds;

struct rounds_options {
	double rate;		     /* rounds per second */
	const struct source *source; /* the source for running threads */
	struct timespec origin;	     /* time 0 of all observations, by CLOCK_MONOTONIC */
	/*
	 * What samples have of native stacks. For NATIVE_INNERMOST, even the observation of a cache hit has a sample
	 * (native_frames.h). For NATIVE_WHOLE, stacks are not cached (mixed_stack.h).
	 */
	enum native_copies native;
};

/* The session and the queue must outlive the struct rounds. Returns NULL if there is not enough memory. */
struct rounds *rounds_create(const struct session *session, const struct rounds_options *options,
			     struct observation_queue *queue);
void rounds_destroy(struct rounds *rounds); /* NULL is fine */

/* Call this function in the thread that will take the rounds, before the first round. */
void rounds_enter(struct rounds *rounds);

/* How late sampling is when a round begins. `late` and `missed` are numbers of samples per thread of the target. */
struct lateness {
	uint32_t late;	 /* how many samples are late: all missed samples, and the sample of this round if it is late */
	uint32_t missed; /* how many samples were missed before this round, and so are never taken */
};

/*
 * Takes a round. Returns true if the observations of this round contain `late` and `skipped`. Otherwise, returns false:
 * either the list of threads could not be read, or a thread did not stop in time (rounds_are_stuck()).
 *   skipped  how many rounds the CPU time limit has prevented since rounds_take() last returned true
 *   rest_ns  for how many nanoseconds the CPU time limit made sampling pause before this round
 */
bool rounds_take(struct rounds *rounds, const struct lateness *late, uint32_t skipped, uint64_t rest_ns);

/*
 * Whether a thread of the target did not stop in time. Such a thread is still traced by the rbdump thread that tried to
 * stop it. The tracing ends when that rbdump thread ends.
 */
bool rounds_are_stuck(const struct rounds *rounds);

#endif
