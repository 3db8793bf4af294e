/*
 * A queue of observations. The sampling thread adds observations; the processing thread removes them, and finds the
 * names for their stacks.
 *
 * The queue has room for many observations, but for only a few samples, because the stacks of samples take much memory.
 * When the queue is full, the sampling thread waits.
 */
#ifndef RBDUMP_OBSERVATION_QUEUE_H
#define RBDUMP_OBSERVATION_QUEUE_H

#include "sampling/observation.h"

struct observation_queue;

/*
 * Creates a queue. The session must outlive the queue. NULL if out of memory.
 *   samples  how many samples the queue has room for
 */
struct observation_queue *observation_queue_create(const struct session *session, size_t samples);
void observation_queue_destroy(struct observation_queue *queue); /* NULL is fine */

/* ---- Functions for the sampling thread */

/* Opens the queue, or opens it again after observation_queue_end(). The observations in the queue are kept. */
void observation_queue_begin(struct observation_queue *queue);

/*
 * Waits for a free sample, and returns it. `*slot` receives the number of the sample. The caller puts this number into
 * the observation, or passes it to observation_queue_give_back(), which gives the sample back unused.
 */
struct sample *observation_queue_sample(struct observation_queue *queue, size_t *slot);
void observation_queue_give_back(struct observation_queue *queue, size_t slot);

/*
 * Waits for room, and adds an observation. Wakes the processing thread at once only if the observation has a sample, if
 * `no_list` is set, or if the queue is at least half full.
 */
void observation_queue_add(struct observation_queue *queue, const struct observation *observation);

/* If observation_queue_keep_pace() was called, waits until all samples have been given back. */
void observation_queue_wait_for_pace(struct observation_queue *queue);

/* Tells the processing thread that there will be no more observations until the next observation_queue_begin(). */
void observation_queue_end(struct observation_queue *queue);

/* ---- Functions for the processing thread */

/*
 * Waits for the next observation, and returns it. The observation is valid until observation_queue_done(). Returns NULL
 * if there will be no more observations (`*timed_out` is false), or if no observation came in time (`*timed_out` is
 * true).
 *   until  when to stop waiting, by CLOCK_MONOTONIC. If `until` is NULL, there is no time limit, and `timed_out` can be
 *          NULL, too
 */
const struct observation *observation_queue_next(struct observation_queue *queue, const struct timespec *until,
						 bool *timed_out);
/* Removes the observation that observation_queue_next() returned, and gives its sample back. */
void observation_queue_done(struct observation_queue *queue);

/*
 * After this call, the sampling thread begins a round only when all samples of earlier rounds have been given back (see
 * observation_queue_wait_for_pace()). Call this function if the target moves or frees objects so often that the names
 * for the stacks cannot be read in time.
 */
void observation_queue_keep_pace(struct observation_queue *queue);

#endif
