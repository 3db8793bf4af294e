/*
 * Takes a block: a series of samples at a fixed rate. A separate thread of rbdump, the sampling thread, takes each
 * sample at its scheduled time. The thread that called block_sampler_begin() decodes the samples during the block. If
 * possible, the decoding thread runs on a CPU other than the CPU of the sampled thread. In the mode `unpaused`, the
 * sampling thread moves to the CPU of the sampled thread.
 *
 * The sampling thread ends when its block ends. The kernel then detaches the sampling thread from all threads that the
 * sampling thread still traces. If a thread of the target does not stop in time, the block ends early. To detach from a
 * thread that does not stop, rbdump must end the sampling thread.
 */
#ifndef RBDUMP_BLOCK_SAMPLER_H
#define RBDUMP_BLOCK_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "sampling/sampler.h"

struct block_sampler;

/*
 * Creates a block sampler, with a queue for samples that wait to be decoded. Returns NULL if there is not enough
 * memory.
 */
struct block_sampler *block_sampler_create(const struct session *session, struct sampler *sampler);
void block_sampler_destroy(struct block_sampler *block_sampler); /* never call this during a block; NULL is fine */

struct block {
	const struct source *source;
	struct subject *subjects; /* the threads to sample, one after another; valid until block_sampler_end() */
	size_t nr_subjects;
	size_t first;		  /* index in `subjects` of the thread that is sampled first */
	uint64_t samples;	  /* how many samples to take */
	double rate;		  /* samples per second */
	struct timespec deadline; /* no sample begins after this time (CLOCK_MONOTONIC); 0: no time limit */
};

/* The result and the cost of a block. */
struct block_result {
	uint64_t taken; /* the number of samples taken; fewer than requested if the block ended early */
	uint64_t late;	/* the number of samples that began late: the sampling thread was busy, or woke up late */
	double wall_us; /* the time from the beginning of the block to the end of the last sample */
	double cpu_us;	/* CPU time of the sampling thread */
	bool realtime;	/* whether the sampling thread had real-time priority (see sampler_enter()) */
};

/*
 * Begins a block. Fails if the sampling thread cannot be started.
 *   stop  if *stop is not 0, the block ends early; the sampling thread checks *stop while it waits to take a sample
 */
struct error *block_sampler_begin(struct block_sampler *block_sampler, const struct block *block,
				  const _Atomic int *stop);

/*
 * Waits for the next sample. The sample is valid until block_sampler_done() is called. Returns NULL after the last
 * sample.
 */
struct sample *block_sampler_next(struct block_sampler *block_sampler);

/* Gives back the sample that block_sampler_next() returned last. */
void block_sampler_done(struct block_sampler *block_sampler);

/*
 * For ten seconds after this call, even in later blocks, the sampling thread takes each sample only after the caller
 * has given back the previous sample. In this way, the names of each sample are read before the next sample is taken.
 * Call this function if a sample was rejected because a garbage collection may have freed or moved objects of this
 * sample before the names were read (REASON_COLLECTED, REASON_COMPACTED).
 */
void block_sampler_keep_pace(struct block_sampler *block_sampler);

/* Ends a block. Call this function after block_sampler_next() has returned NULL. */
void block_sampler_end(struct block_sampler *block_sampler, struct block_result *ret);

#endif
