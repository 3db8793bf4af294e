/*
 * A queue of observations. The sampling thread adds observations to the queue. The processing thread removes the
 * observations, and finds the names for their stacks.
 *
 * Usually, the sampling thread does not wait for the processing thread. The sampling thread waits only in three
 * functions: in observation_queue_add() if the queue is full of observations, in observation_queue_wait_for_room(), and
 * in observation_queue_wait_for_pace(). The queue keeps copies of the samples, in a buffer of a fixed size. If the
 * buffer has no room for a sample, the sample is lost, and observation_queue_add() returns false.
 */
#ifndef RBDUMP_OBSERVATION_QUEUE_H
#define RBDUMP_OBSERVATION_QUEUE_H

#include "sampling/observation.h"

struct observation_queue;

/*
 * Creates a queue with room for `bytes` bytes of samples. Returns NULL if there is not enough memory.
 *   again  whether the processing thread will walk the stacks again, although the sampling thread has already walked
 *          them to check them
 */
struct observation_queue *observation_queue_create(size_t bytes, bool again);
void observation_queue_destroy(struct observation_queue *queue); /* NULL is fine */

/* ---- Functions for the sampling thread */

/* Opens the queue, or opens it again after observation_queue_end(). The observations in the queue are kept. */
void observation_queue_begin(struct observation_queue *queue);

/*
 * Adds an observation, with a copy of its sample. The caller can reuse its own sample immediately. If the buffer has no
 * room for the sample, returns false. In this case, an `optional` observation is not added. Any other observation is
 * added without its sample. If this sample is a cache hit, only its native stack is lost. Otherwise, `lost` is set in
 * the observation. A part of the buffer is reserved for samples without a stack. Waits only if the queue has no room
 * for another observation. Wakes the processing thread only in three cases: the observation ends a round in which
 * samples with new stacks were taken, `no_list` is set in the observation, or the queue or its buffer is at least half
 * full.
 */
bool observation_queue_add(struct observation_queue *queue, const struct observation *observation);

/* Whether the queue is more than half full of observations. If so, the sampling thread should omit a round. */
bool observation_queue_is_full(struct observation_queue *queue);

/* Waits until at most `count` observations are in the queue, and at least half of the buffer is free. */
void observation_queue_wait_for_room(struct observation_queue *queue, size_t count);

/* If observation_queue_keep_pace() was called in the last ten seconds, waits until no sample is in the queue. */
void observation_queue_wait_for_pace(struct observation_queue *queue);

/*
 * Whether the processing thread has asked for the stack of `thread` (observation_queue_ask()) since this function last
 * returned true for `thread`.
 */
bool observation_queue_asks(struct observation_queue *queue, uint64_t thread);
/* Whether the processing thread has asked for the stack of any thread since this function last returned true. */
bool observation_queue_asks_any(struct observation_queue *queue);

/* Tells the processing thread that there will be no more observations until the next observation_queue_begin(). */
void observation_queue_end(struct observation_queue *queue);

/* ---- Functions for the processing thread */

/*
 * Waits for the next observation, and returns it. The observation is valid until observation_queue_done() is called. If
 * there will be no more observations, returns NULL and sets `*timed_out` to false. If no observation arrives before
 * `until`, returns NULL and sets `*timed_out` to true.
 *   until  when to stop waiting, by CLOCK_MONOTONIC. If `until` is NULL, there is no time limit, and `timed_out` can
 *          also be NULL
 */
const struct observation *observation_queue_next(struct observation_queue *queue, const struct timespec *until,
						 bool *timed_out);
/* Removes the observation that observation_queue_next() returned. */
void observation_queue_done(struct observation_queue *queue);

/*
 * For ten seconds after this call, the sampling thread begins a round only when no sample is in the queue (see
 * observation_queue_wait_for_pace()). Call this function if the target moves or frees objects so often that the names
 * for the stacks cannot be read in time.
 */
void observation_queue_keep_pace(struct observation_queue *queue);

/*
 * Asks the sampling thread to copy the stack of `thread` again, even if the thread has slept since the last copy. Call
 * this function if the names for the last copy are not known. A later request for another thread may replace this
 * request. So repeat the request as long as the names are not known.
 */
void observation_queue_ask(struct observation_queue *queue, uint64_t thread);

#endif
