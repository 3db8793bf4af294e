#include "sampling/observation_queue.h"

#include <pthread.h>
#include <stdlib.h>

/* The most observations in the queue. Fewer of them can have a sample. */
#define ROOM 4096u

struct observation_queue {
	struct sample *samples;
	bool *taken; /* for each sample: whether it is in use */
	size_t nr_samples;
	struct observation of[ROOM];

	pthread_mutex_t mutex; /* guards the members above and below */
	pthread_cond_t more;   /* there are observations, or no more will come: wakes the thread that processes them */
	pthread_cond_t room;   /* there is room again: wakes the thread that makes observations */
	size_t made, given;    /* how many were ever added, and removed; the difference is in the queue */
	bool ended, keep_pace;
};

struct observation_queue *observation_queue_create(const struct session *session, size_t samples)
{
	struct observation_queue *queue = calloc(1, sizeof(*queue));
	pthread_condattr_t attributes;
	bool enough;

	if (!queue)
		return NULL;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->more, &attributes);
	pthread_cond_init(&queue->room, &attributes);
	pthread_condattr_destroy(&attributes);
	queue->samples = calloc(samples, sizeof(*queue->samples));
	queue->taken = calloc(samples, sizeof(*queue->taken));
	enough = queue->samples && queue->taken;
	for (; enough && queue->nr_samples < samples; queue->nr_samples += enough)
		enough = sample_init(&queue->samples[queue->nr_samples], session);
	if (!enough) {
		observation_queue_destroy(queue);
		return NULL;
	}
	return queue;
}

void observation_queue_destroy(struct observation_queue *queue)
{
	if (!queue)
		return;
	for (size_t i = 0; i < queue->nr_samples; i++)
		sample_clear(&queue->samples[i]);
	free(queue->samples);
	free(queue->taken);
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

/* The caller holds the mutex. */
static void wait_for_room(struct observation_queue *queue)
{
	/* Wakes the other thread: it may have been left asleep until there are more observations. */
	pthread_cond_broadcast(&queue->more);
	pthread_cond_wait(&queue->room, &queue->mutex);
}

struct sample *observation_queue_sample(struct observation_queue *queue, size_t *slot)
{
	size_t i;

	pthread_mutex_lock(&queue->mutex);
	for (;;) {
		for (i = 0; i < queue->nr_samples && queue->taken[i]; i++)
			;
		if (i < queue->nr_samples)
			break;
		wait_for_room(queue);
	}
	queue->taken[i] = true;
	pthread_mutex_unlock(&queue->mutex);
	*slot = i;
	return &queue->samples[i];
}

void observation_queue_give_back(struct observation_queue *queue, size_t slot)
{
	pthread_mutex_lock(&queue->mutex);
	queue->taken[slot] = false;
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->mutex);
}

void observation_queue_add(struct observation_queue *queue, const struct observation *observation)
{
	pthread_mutex_lock(&queue->mutex);
	while (queue->made - queue->given >= ROOM)
		wait_for_room(queue);
	queue->of[queue->made++ % ROOM] = *observation;
	/* To wake the other thread costs more than to make an observation. */
	if (observation->sample || observation->no_list || queue->made - queue->given >= ROOM / 2)
		pthread_cond_broadcast(&queue->more);
	pthread_mutex_unlock(&queue->mutex);
}

static bool any_taken(const struct observation_queue *queue)
{
	for (size_t i = 0; i < queue->nr_samples; i++)
		if (queue->taken[i])
			return true;
	return false;
}

void observation_queue_wait_for_pace(struct observation_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	while (queue->keep_pace && any_taken(queue))
		wait_for_room(queue);
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
	while (queue->made == queue->given && !queue->ended && !over) {
		if (until)
			over = pthread_cond_timedwait(&queue->more, &queue->mutex, until) != 0;
		else
			pthread_cond_wait(&queue->more, &queue->mutex);
	}
	if (queue->made != queue->given)
		next = &queue->of[queue->given % ROOM];
	if (timed_out)
		*timed_out = !next && !queue->ended;
	pthread_mutex_unlock(&queue->mutex);
	return next;
}

void observation_queue_done(struct observation_queue *queue)
{
	const struct observation *done = &queue->of[queue->given % ROOM];

	pthread_mutex_lock(&queue->mutex);
	if (done->sample)
		queue->taken[done->slot] = false;
	queue->given++;
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->mutex);
}

void observation_queue_keep_pace(struct observation_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->keep_pace = true;
	pthread_mutex_unlock(&queue->mutex);
}
