#include "experiment/kernel_blocks.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/priority.h"
#include "kernel/programs.h"
#include "sampling/kernel_pace.h"
#include "sampling/kernel_process.h"
#include "sampling/kernel_sample.h"
#include "sampling/old_objects.h"

/*
 * The room for samples that were not read yet, and how often they are read: if a collection begins before the objects of a
 * sample were read, nothing proves its names, unless these objects are old. At rates up to KERNEL_RATE_WAKES, each sample
 * wakes the calling thread.
 */
#define RING_BYTES (32u << 20)
#define READ_MS	   1

struct kernel_blocks {
	struct sampler *sampler;
	struct old_objects *old;
	struct kernel_programs *programs;
	struct kernel_maps maps;
	struct kernel_ring *ring;
	bool wakes; /* each sample wakes the calling thread */
	struct sample sample;
};

struct error *kernel_blocks_create(const struct session *session, const struct sampler_options *options, double rate,
				   struct kernel_blocks **ret)
{
	struct kernel_blocks *blocks = calloc(1, sizeof(*blocks));
	struct kernel_facts facts = {0};
	struct error *error;

	if (!blocks)
		return error_no_memory();
	blocks->sampler = sampler_create(
	    session, &(struct sampler_options){.budget_us = options->budget_us, .on_torn = ON_TORN_DROP});
	blocks->old = old_objects_create(session->ruby.layout);
	error = blocks->sampler && blocks->old && sample_init(&blocks->sample, session) ? NULL : error_no_memory();
	if (!error)
		sampler_use_cache(blocks->sampler, NULL, blocks->old);
	if (!error)
		error = kernel_process_facts(&session->ruby, blocks->sample.copy, &facts);
	blocks->wakes = rate <= KERNEL_RATE_WAKES;
	facts.wakes = blocks->wakes ? KERNEL_WAKES_CLOCK : KERNEL_WAKES_NONE;
	if (!error)
		error = kernel_programs_load(KERNEL_FORM_BEST, false, &blocks->programs);
	if (!error)
		error = kernel_ring_create(RING_BYTES, &blocks->ring);
	if (!error)
		blocks->maps = kernel_programs_maps(blocks->programs);
	if (!error)
		error = kernel_maps_follow(&blocks->maps, session->target->pid, &facts, blocks->ring);
	if (error) {
		kernel_blocks_destroy(blocks);
		return error;
	}
	*ret = blocks;
	return NULL;
}

void kernel_blocks_destroy(struct kernel_blocks *blocks)
{
	if (!blocks)
		return;
	kernel_programs_destroy(blocks->programs);
	kernel_ring_destroy(blocks->ring);
	sampler_destroy(blocks->sampler);
	old_objects_destroy(blocks->old);
	sample_clear(&blocks->sample);
	free(blocks);
}

/* Whether a record is of the thread that has this tid now: another one may have had it before. */
static bool is_of_subject(const struct block *block, const struct kernel_record *record)
{
	for (size_t i = 0; i < block->nr_subjects; i++) {
		const struct subject *subject = &block->subjects[i];

		if (subject->tid == (pid_t)record->head.tid)
			return subject->extent.thread == record->thread &&
			       (subject->pthread == 0 || subject->pthread == record->fs_base);
	}
	return false;
}

/* Takes the samples that are there, but not more than are wanted. */
static void take_all(struct kernel_blocks *blocks, const struct block *block, kernel_blocks_take *take, void *context,
		     struct block_result *ret)
{
	const struct kernel_head *head;

	while ((head = kernel_ring_next(blocks->ring))) {
		/* Without waits, all others are of threads that are not known. */
		if (head->kind == KERNEL_CLOCK && ret->taken < block->samples) {
			const struct kernel_record *record = (const void *)head;

			kernel_sample_take(blocks->sampler, record, &blocks->sample);
			if (!is_of_subject(block, record))
				sample_reject(&blocks->sample, REASON_NOT_IDENTIFIED);
			ret->taken++;
			take(context, &blocks->sample);
		}
		kernel_ring_done(blocks->ring);
	}
}

static bool is_over(const struct block *block, const struct timespec *began, const _Atomic int *stop)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return *stop || (double)ns_between(began, &now) >= (double)block->samples / block->rate * 1e9 ||
	       (block->deadline.tv_sec != 0 && ns_between(&block->deadline, &now) >= 0);
}

struct error *kernel_blocks_run(struct kernel_blocks *blocks, const struct block *block, const _Atomic int *stop,
				kernel_blocks_take *take, void *context, struct block_result *ret)
{
	struct timespec began;
	struct error *error;

	*ret = (struct block_result){0};
	kernel_sample_begin(blocks->sampler);
	old_objects_forget(blocks->old);
	for (size_t i = 0; i < block->nr_subjects; i++)
		if (block->subjects[i].tid != 0)
			kernel_maps_set_thread(&blocks->maps, block->subjects[i].tid, block->subjects[i].extent.thread);
	/* A thread that takes all the time it can get must not have that priority. */
	if (blocks->wakes)
		ret->realtime = priority_raise(PRIORITY_SAMPLES);
	clock_gettime(CLOCK_MONOTONIC, &began);
	error = kernel_programs_begin(blocks->programs, block->rate);
	while (!error && !is_over(block, &began, stop)) {
		kernel_ring_wait(blocks->ring, true, -1, READ_MS);
		take_all(blocks, block, take, context, ret);
	}
	kernel_programs_end(blocks->programs);
	take_all(blocks, block, take, context, ret);
	if (ret->realtime)
		priority_lower();
	ret->wall_us = (double)elapsed_ns(&began) / 1e3;
	for (size_t i = 0; i < block->nr_subjects; i++)
		kernel_maps_forget_thread(&blocks->maps, block->subjects[i].tid);
	return error;
}
