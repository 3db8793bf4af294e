#include "sampling/observation_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* The most observations in the queue; and with how many a round should wait, so that there is room for all its threads. */
#define ROOM 16384u
#define FULL (ROOM / 2)

/* For how long rounds keep the pace of the other thread: what has made that necessary may be over then. */
#define PACE_NS UINT64_C(10000000000)

/* The most threads that are asked for at a time. */
#define ASKED 256u

/* One part in so many of the buffer is left to samples that have no stack: what went wrong is told even then. */
#define RESERVED 8u

struct entry {
	struct observation seen;
	size_t end; /* where its sample ends in the buffer, counted from the first byte that was ever used */
};

struct observation_queue {
	struct entry *of;
	uint8_t *buffer; /* of the samples: a ring */
	size_t size;
	bool again;	    /* whether stacks will be walked again */
	size_t used, freed; /* how many of its bytes were ever used, and freed; the difference is in use */

	/* Guards the members above, except what an entry in use has in the buffer, and those below up to the empty line. */
	pthread_mutex_t mutex;
	pthread_cond_t more; /* there are observations, or no more will come: wakes the thread that processes them */
	pthread_cond_t room; /* there is room again: wakes the thread that makes observations */
	size_t made, given;  /* how many were ever added, and removed; the difference is in the queue */
	bool ended;
	bool has_samples;	/* since the other thread was last woken */
	uint64_t pace_until_ns; /* until when, by CLOCK_MONOTONIC, a round begins only once no sample is in the queue */
	/* The thread that makes observations waits until at most so many are in the queue, with so many bytes. */
	bool waits;
	size_t awaited_count, awaited_bytes;

	_Atomic uint64_t asked[ASKED]; /* threads; 0: none */
	_Atomic bool asks_any;
};

struct observation_queue *observation_queue_create(size_t bytes, bool again)
{
	struct observation_queue *queue = calloc(1, sizeof(*queue));
	pthread_condattr_t attributes;

	if (!queue)
		return NULL;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->more, &attributes);
	pthread_cond_init(&queue->room, &attributes);
	pthread_condattr_destroy(&attributes);
	queue->size = bytes;
	queue->again = again;
	queue->of = calloc(ROOM, sizeof(*queue->of));
	queue->buffer = malloc(bytes);
	if (!queue->of || !queue->buffer) {
		observation_queue_destroy(queue);
		return NULL;
	}
	return queue;
}

void observation_queue_destroy(struct observation_queue *queue)
{
	if (!queue)
		return;
	free(queue->of);
	free(queue->buffer);
	pthread_mutex_destroy(&queue->mutex);
	pthread_cond_destroy(&queue->more);
	pthread_cond_destroy(&queue->room);
	free(queue);
}

void observation_queue_begin(struct observation_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->ended = false;
	pthread_mutex_unlock(&queue->mutex);
}

static size_t in_queue(const struct observation_queue *queue)
{
	return queue->made - queue->given;
}

static bool has_at_most(const struct observation_queue *queue, size_t count, size_t bytes)
{
	return in_queue(queue) <= count && queue->used - queue->freed <= bytes;
}

/* Waits until the queue has at most so many observations, with so many bytes. The caller holds the mutex. */
static void wait_for(struct observation_queue *queue, size_t count, size_t bytes)
{
	queue->awaited_count = count;
	queue->awaited_bytes = bytes;
	while (!has_at_most(queue, count, bytes)) {
		queue->waits = true;
		/* Wakes the other thread: it may have been left asleep until there are more observations. */
		pthread_cond_broadcast(&queue->more);
		pthread_cond_wait(&queue->room, &queue->mutex);
	}
	queue->waits = false;
}

/*
 * Reserves `length` bytes of the buffer, in one piece, such that `left` bytes stay free. NULL if there is no room. The
 * caller holds the mutex; only the thread that adds observations calls it, so the reserved bytes can be filled in without
 * the mutex.
 */
static uint8_t *reserve(struct observation_queue *queue, size_t length, size_t left)
{
	const size_t most = queue->size - left;
	size_t at, skipped;

	/* The same bytes again and again, as long as the other thread keeps up: they stay in the CPU's cache. */
	if (queue->used == queue->freed)
		queue->used = queue->freed = (queue->used + queue->size - 1) / queue->size * queue->size;
	at = queue->used % queue->size;
	/* Those up to the end of the buffer are left out if they are not enough. */
	skipped = length <= queue->size - at ? 0 : queue->size - at;
	if (length > most || queue->used + skipped + length - queue->freed > most)
		return NULL;
	queue->used += skipped + length;
	return queue->buffer + (at + skipped) % queue->size;
}

bool observation_queue_add(struct observation_queue *queue, const struct observation *observation)
{
	const size_t length = observation->sample ? sample_packed_length(observation->sample, queue->again) : 0;
	struct entry entry = {.seen = *observation};
	uint8_t *room = NULL;

	pthread_mutex_lock(&queue->mutex);
	wait_for(queue, ROOM - 1, SIZE_MAX);
	if (observation->sample)
		room = reserve(queue, length, observation->sample->copied ? queue->size / RESERVED : 0);
	entry.end = queue->used;
	pthread_mutex_unlock(&queue->mutex);
	if (observation->sample && !room && observation->optional)
		return false;
	entry.seen.sample = room ? sample_pack(observation->sample, queue->again, room) : NULL;
	/* Of a cache hit, only the native stack is lost. */
	entry.seen.lost = observation->sample && !room && observation->sample->cache.result != CACHE_HIT;
	pthread_mutex_lock(&queue->mutex);
	queue->of[queue->made++ % ROOM] = entry;
	queue->has_samples |= entry.seen.sample && entry.seen.sample->cache.result != CACHE_HIT;
	/* To wake the other thread costs more than to make an observation. */
	if ((observation->end_of_round && queue->has_samples) || observation->no_list || in_queue(queue) >= FULL ||
	    queue->used - queue->freed > queue->size / 2) {
		pthread_cond_broadcast(&queue->more);
		queue->has_samples = false;
	}
	pthread_mutex_unlock(&queue->mutex);
	return !observation->sample || room;
}

bool observation_queue_is_full(struct observation_queue *queue)
{
	bool full;

	pthread_mutex_lock(&queue->mutex);
	full = in_queue(queue) > FULL;
	pthread_mutex_unlock(&queue->mutex);
	return full;
}

void observation_queue_wait_for_room(struct observation_queue *queue, size_t count)
{
	pthread_mutex_lock(&queue->mutex);
	wait_for(queue, count, queue->size / 2);
	pthread_mutex_unlock(&queue->mutex);
}

void observation_queue_wait_for_pace(struct observation_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	if (queue->pace_until_ns != 0 && queue->pace_until_ns < monotonic_ns())
		queue->pace_until_ns = 0;
	if (queue->pace_until_ns != 0)
		wait_for(queue, SIZE_MAX, 0);
	pthread_mutex_unlock(&queue->mutex);
}

void observation_queue_end(struct observation_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->ended = true;
	pthread_cond_broadcast(&queue->more);
	pthread_mutex_unlock(&queue->mutex);
}

const struct observation *observation_queue_next(struct observation_queue *queue, const struct timespec *until,
						 bool *timed_out)
{
	const struct observation *next = NULL;
	bool over = false;

	pthread_mutex_lock(&queue->mutex);
	while (in_queue(queue) == 0 && !queue->ended && !over) {
		if (until)
			over = pthread_cond_timedwait(&queue->more, &queue->mutex, until) != 0;
		else
			pthread_cond_wait(&queue->more, &queue->mutex);
	}
	if (in_queue(queue) > 0)
		next = &queue->of[queue->given % ROOM].seen;
	if (timed_out)
		*timed_out = !next && !queue->ended;
	pthread_mutex_unlock(&queue->mutex);
	return next;
}

void observation_queue_done(struct observation_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	if (queue->of[queue->given % ROOM].end > queue->freed)
		queue->freed = queue->of[queue->given % ROOM].end;
	queue->given++;
	/* Once only, and not for each observation: a wake-up costs more than that. */
	if (queue->waits && has_at_most(queue, queue->awaited_count, queue->awaited_bytes))
		pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->mutex);
}

void observation_queue_keep_pace(struct observation_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->pace_until_ns = monotonic_ns() + PACE_NS;
	pthread_mutex_unlock(&queue->mutex);
}

static _Atomic uint64_t *place_of(struct observation_queue *queue, uint64_t thread)
{
	return &queue->asked[((thread * 0x9e3779b97f4a7c15ULL) >> 32) % ASKED];
}

void observation_queue_ask(struct observation_queue *queue, uint64_t thread)
{
	*place_of(queue, thread) = thread;
	queue->asks_any = true;
}

bool observation_queue_asks(struct observation_queue *queue, uint64_t thread)
{
	uint64_t asked = thread;

	return atomic_compare_exchange_strong(place_of(queue, thread), &asked, 0);
}

bool observation_queue_asks_any(struct observation_queue *queue)
{
	return queue->asks_any && atomic_exchange(&queue->asks_any, false);
}
