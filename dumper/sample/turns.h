/*
 * When it is time for a sample: turns, a period apart, by CLOCK_MONOTONIC. What was missed is not made up for in haste.
 */
#ifndef RBDUMP_TURNS_H
#define RBDUMP_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* How long to wait at a time, so that an end is not slept through. */
#define TURN_SLICE_NS 50000000LL

/*
 * When a sample begins whose turn it is at `turn`: not before a moment after now, in which the target is left alone,
 * whatever the rate.
 */
struct timespec turn_due(const struct timespec *turn, const struct timespec *now);

/* Whether it is to end; `now` is the time. */
typedef bool turn_ends(void *context, const struct timespec *now);

/* Sleeps until a moment; false if it is to end before that. */
bool turn_wait(const struct timespec *due, turn_ends *ends, void *context);

/*
 * Whether a sample that begins so long after its turn is late: by more than a tenth of a period, and more than a sleep
 * may well last too long.
 */
bool turn_is_late(long long behind_ns, long long period_ns);

/*
 * How many turns were missed, if a sample begins now: it is the one whose turn was last, those before it were missed.
 *   turn  whose turn is next, which is not after now; in the end, that of the sample that begins
 */
uint32_t turns_missed(struct timespec *turn, const struct timespec *now, long long period_ns);

#endif
