#include "experiment/block_sampler.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "sampling/deadlines.h"
#include "sampling/observation_queue.h"
#include "target/hold.h"

/*
 * How many samples are taken before the first of them is decoded: with more, names would be read later. And how many bytes
 * all of them may have.
 */
#define AHEAD	    32u
#define QUEUE_BYTES (8u << 20)

struct block_sampler {
	struct sampler *sampler;
	struct sample sample; /* the one that is being taken */
	struct sample lost;   /* stands for one that was too large for the queue */
	struct observation_queue *queue;
	pthread_t thread;
	struct block block;
	const _Atomic int *stop;
	struct block_result result;
};

struct block_sampler *block_sampler_create(const struct session *session, struct sampler *sampler)
{
	struct block_sampler *block_sampler = calloc(1, sizeof(*block_sampler));

	if (!block_sampler)
		return NULL;
	block_sampler->sampler = sampler;
	block_sampler->queue = observation_queue_create(QUEUE_BYTES, true);
	if (!block_sampler->queue || !sample_init(&block_sampler->sample, session) ||
	    !sample_init(&block_sampler->lost, session)) {
		block_sampler_destroy(block_sampler);
		return NULL;
	}
	return block_sampler;
}

void block_sampler_destroy(struct block_sampler *block_sampler)
{
	if (!block_sampler)
		return;
	observation_queue_destroy(block_sampler->queue);
	sample_clear(&block_sampler->sample);
	sample_clear(&block_sampler->lost);
	free(block_sampler);
}

/* Whether the block is to end. */
static bool is_over(void *context, const struct timespec *now)
{
	const struct block_sampler *block_sampler = context;
	const struct timespec *deadline = &block_sampler->block.deadline;

	return *block_sampler->stop || (deadline->tv_sec != 0 && ns_between(deadline, now) >= 0);
}

static void *take_block(void *argument)
{
	struct block_sampler *block_sampler = argument;
	const struct block *block = &block_sampler->block;
	long long period = (long long)(1e9 / block->rate);
	struct timespec began, due, now, cpu;
	bool stuck = false;

	block_sampler->result.realtime = sampler_enter(block_sampler->sampler);
	clock_gettime(CLOCK_MONOTONIC, &began);
	due = began;
	for (uint64_t i = 0; i < block->samples && !stuck; i++) {
		struct subject *subject = &block->subjects[(block->first + i) % block->nr_subjects];
		struct timespec next = plus_ns(due, period);
		struct observation seen = {.sample = &block_sampler->sample, .end_of_round = true};
		bool behind;

		observation_queue_wait_for_pace(block_sampler->queue);
		observation_queue_wait_for_room(block_sampler->queue, AHEAD);
		clock_gettime(CLOCK_MONOTONIC, &now);
		behind = ns_between(&next, &now) > 0;
		/* If it is behind, or nearly, later deadlines are counted from here. */
		due = deadline_next(&next, &now);
		if (!deadline_wait(&due, is_over, block_sampler))
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
		block_sampler->result.late += behind || deadline_is_late(ns_between(&next, &now), period);
		sampler_take(block_sampler->sampler, block->source, subject, false, seen.sample);
		stuck = seen.sample->stop.stuck;
		block_sampler->result.taken++;
		observation_queue_add(block_sampler->queue, &seen);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	block_sampler->result.wall_us = (double)ns_between(&began, &now) / 1e3;
	block_sampler->result.cpu_us = (double)ns_of(&cpu) / 1e3;
	observation_queue_end(block_sampler->queue);
	return NULL;
}

struct error *block_sampler_begin(struct block_sampler *block_sampler, const struct block *block,
				  const _Atomic int *stop)
{
	block_sampler->block = *block;
	block_sampler->stop = stop;
	observation_queue_begin(block_sampler->queue);
	block_sampler->result = (struct block_result){0};
	/* It blocks SIGCHLD, too, which it waits for (target/tracee.h). */
	return thread_start(&block_sampler->thread, take_block, block_sampler);
}

struct sample *block_sampler_next(struct block_sampler *block_sampler)
{
	const struct observation *seen = observation_queue_next(block_sampler->queue, NULL, NULL);

	if (!seen || seen->sample)
		return seen ? seen->sample : NULL;
	block_sampler->lost.source = block_sampler->block.source;
	sample_reject(&block_sampler->lost, REASON_LOST);
	return &block_sampler->lost;
}

void block_sampler_done(struct block_sampler *block_sampler)
{
	observation_queue_done(block_sampler->queue);
}

void block_sampler_keep_pace(struct block_sampler *block_sampler)
{
	observation_queue_keep_pace(block_sampler->queue);
}

void block_sampler_end(struct block_sampler *block_sampler, struct block_result *ret)
{
	pthread_join(block_sampler->thread, NULL);
	/* The kernel has detached that thread from what did not stop in time. */
	hold_end();
	*ret = block_sampler->result;
}
