/*
 * A block of samples: a thread of its own takes them at their times, on the target's CPU where the mode asks for it;
 * whoever began the block decodes them meanwhile, elsewhere.
 *
 * The taking thread ends with its block, so that the kernel gives up whatever it may still trace: a block is over when
 * a thread of the target did not stop in time.
 */
#ifndef RBDUMP_TAKER_H
#define RBDUMP_TAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "error.h"
#include "sample/sampler.h"

struct taker;

/* Makes room for the samples on their way. NULL if out of memory. */
struct taker *taker_create(const struct session *session, struct sampler *sampler);
void taker_destroy(struct taker *taker); /* NULL is fine; no block may be under way */

struct block {
	enum sample_mode mode;
	struct subject *subjects; /* take turns; must stay until taker_end() */
	size_t nr_subjects;
	size_t first;		  /* whose turn it is */
	uint64_t samples;	  /* how many to take */
	double rate;		  /* a second */
	struct timespec deadline; /* CLOCK_MONOTONIC: none is begun after it; 0: there is none */
};

/* What a block cost. */
struct block_result {
	uint64_t taken; /* fewer than asked for: the block was ended early */
	uint64_t late;	/* samples whose turn had passed when they could be begun, or that were slept through */
	double wall_us; /* from the beginning to the end of the last sample */
	double cpu_us;	/* of the taking thread */
	bool realtime;	/* whether it goes before others (sampler_enter()) */
};

/*
 * Begins a block.
 *   stop  is looked at before each sample, and while the taker waits for its time: if it is set, the block ends early
 */
struct error *taker_begin(struct taker *taker, const struct block *block, const _Atomic int *stop);

/* The next sample; NULL when there are no more. Valid until taker_done(). */
struct sample *taker_next(struct taker *taker);

/* Gives the sample that taker_next() gave last back. */
void taker_done(struct taker *taker);

/*
 * From now on, in later blocks as well, no sample is taken before the one before it was given back: of a target that
 * moves its objects, what samples refer to cannot wait.
 */
void taker_keep_pace(struct taker *taker);

/* Ends a block whose samples have all been given. */
void taker_end(struct taker *taker, struct block_result *ret);

#endif
