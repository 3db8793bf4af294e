#include "experiment/taker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "moments.h"
#include "sample/turns.h"
#include "target/hold.h"

/* Samples that are taken and not yet decoded. */
#define SLOTS 32

struct taker {
	struct sampler *sampler;
	struct sample slots[SLOTS];

	pthread_mutex_t mutex; /* guards the five below */
	pthread_cond_t changed;
	size_t taken, given; /* ever; the difference is what waits, */
	size_t waiting_max;  /* at most so many */
	bool ended;

	pthread_t thread;
	struct block block;
	const _Atomic int *stop;
	struct block_result result;
};

struct taker *taker_create(const struct session *session, struct sampler *sampler)
{
	struct taker *taker = calloc(1, sizeof(*taker));
	bool room = taker;

	for (size_t i = 0; room && i < SLOTS; i++)
		room = sample_init(&taker->slots[i], session);
	if (!room) {
		taker_destroy(taker);
		return NULL;
	}
	taker->sampler = sampler;
	taker->waiting_max = SLOTS;
	pthread_mutex_init(&taker->mutex, NULL);
	pthread_cond_init(&taker->changed, NULL);
	return taker;
}

void taker_destroy(struct taker *taker)
{
	if (!taker)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		sample_clear(&taker->slots[i]);
	if (taker->sampler) {
		pthread_mutex_destroy(&taker->mutex);
		pthread_cond_destroy(&taker->changed);
	}
	free(taker);
}

/* A slot to take the next sample into: waits while no more may hold samples that have not been decoded. */
static struct sample *free_slot(struct taker *taker)
{
	struct sample *slot;

	pthread_mutex_lock(&taker->mutex);
	while (taker->taken - taker->given >= taker->waiting_max)
		pthread_cond_wait(&taker->changed, &taker->mutex);
	slot = &taker->slots[taker->taken % SLOTS];
	pthread_mutex_unlock(&taker->mutex);
	return slot;
}

static void publish(struct taker *taker, bool ended)
{
	pthread_mutex_lock(&taker->mutex);
	if (ended)
		taker->ended = true;
	else
		taker->taken++;
	pthread_cond_signal(&taker->changed);
	pthread_mutex_unlock(&taker->mutex);
}

/* Whether the block is to end. */
static bool is_over(void *context, const struct timespec *now)
{
	const struct taker *taker = context;
	const struct timespec *deadline = &taker->block.deadline;

	return *taker->stop || (deadline->tv_sec != 0 && ns_between(deadline, now) >= 0);
}

static void *take_block(void *argument)
{
	struct taker *taker = argument;
	const struct block *block = &taker->block;
	long long period = (long long)(1e9 / block->rate);
	struct timespec began, due, now, cpu;
	bool stuck = false;

	taker->result.realtime = sampler_enter(taker->sampler);
	clock_gettime(CLOCK_MONOTONIC, &began);
	due = began;
	for (uint64_t i = 0; i < block->samples && !stuck; i++) {
		struct subject *subject = &block->subjects[(block->first + i) % block->nr_subjects];
		struct sample *slot = free_slot(taker);
		struct timespec turn = plus_ns(due, period);
		bool behind;

		clock_gettime(CLOCK_MONOTONIC, &now);
		behind = ns_between(&turn, &now) > 0;
		/* Behind, or nearly: the next turns are counted from here. */
		due = turn_due(&turn, &now);
		if (!turn_wait(&due, is_over, taker))
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
		taker->result.late += behind || turn_is_late(ns_between(&turn, &now), period);
		sampler_take(taker->sampler, block->mode, subject, false, slot);
		stuck = slot->stuck;
		taker->result.taken++;
		publish(taker, false);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	taker->result.wall_us = (double)ns_between(&began, &now) / 1e3;
	taker->result.cpu_us = (double)ns_of(&cpu) / 1e3;
	publish(taker, true);
	return NULL;
}

struct error *taker_begin(struct taker *taker, const struct block *block, const _Atomic int *stop)
{
	sigset_t all, before;
	int errnum;

	taker->block = *block;
	taker->stop = stop;
	taker->taken = taker->given = 0;
	taker->ended = false;
	taker->result = (struct block_result){0};
	/* Signals go to the other thread; SIGCHLD is waited for (target/tracee.h). */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&taker->thread, NULL, take_block, taker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum != 0)
		return error_create(EXIT_FAILED, "no thread can be started: %s", strerror(errnum));
	return NULL;
}

struct sample *taker_next(struct taker *taker)
{
	struct sample *slot = NULL;

	pthread_mutex_lock(&taker->mutex);
	while (taker->taken == taker->given && !taker->ended)
		pthread_cond_wait(&taker->changed, &taker->mutex);
	if (taker->taken != taker->given)
		slot = &taker->slots[taker->given % SLOTS];
	pthread_mutex_unlock(&taker->mutex);
	return slot;
}

void taker_done(struct taker *taker)
{
	pthread_mutex_lock(&taker->mutex);
	taker->given++;
	pthread_cond_signal(&taker->changed);
	pthread_mutex_unlock(&taker->mutex);
}

void taker_keep_pace(struct taker *taker)
{
	pthread_mutex_lock(&taker->mutex);
	taker->waiting_max = 1;
	pthread_mutex_unlock(&taker->mutex);
}

void taker_end(struct taker *taker, struct block_result *ret)
{
	pthread_join(taker->thread, NULL);
	/* What did not stop in time was let go with it. */
	hold_end();
	*ret = taker->result;
}
