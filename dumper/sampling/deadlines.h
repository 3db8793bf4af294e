/*
 * Deadlines for samples. Each sampling period contains one deadline, which is a time by CLOCK_MONOTONIC. If a deadline
 * is missed, the sample for this deadline is never taken.
 *
 * If samples were taken at regular intervals, they could become synchronized with other regular events, such as a loop
 * of the target or the tick of the kernel's scheduler. For example, if a thread runs only for a short time after each
 * tick, the samples might never find this thread running. So the position of the deadline varies from period to period
 * (see deadline_vary()).
 */
#ifndef RBDUMP_DEADLINES_H
#define RBDUMP_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * The maximum duration of a single sleep in deadline_wait(). After each sleep, deadline_wait() checks whether to stop
 * waiting.
 */
#define DEADLINE_SLICE_NS 50000000LL

/*
 * Returns the time at which to begin the sample for `deadline`: the deadline, or 0.03 ms after `now`, whichever is
 * later. The wait of 0.03 ms lets the target run even at a very high sampling rate.
 */
struct timespec deadline_next(const struct timespec *deadline, const struct timespec *now);

/* Returns true if sampling must end. In this case, deadline_wait() stops waiting. `now` is the current time. */
typedef bool deadline_ends(void *context, const struct timespec *now);

/*
 * Sleeps until `due`. Calls `ends` before each sleep and after the last sleep. If `ends` returns true, stops waiting
 * and returns false.
 */
bool deadline_wait(const struct timespec *due, deadline_ends *ends, void *context);

/*
 * Whether a sample is late if it begins `behind_ns` nanoseconds after its deadline. The sample is late if `behind_ns`
 * is more than a tenth of a period and more than 0.1 ms. A delay of up to 0.1 ms is tolerated, because a sleep usually
 * ends less than 0.1 ms late.
 */
bool deadline_is_late(long long behind_ns, long long period_ns);

/*
 * Returns how many deadlines have been missed if a sample begins at `now`. This sample belongs to the latest deadline
 * that is not after `now`. All earlier deadlines that have no sample were missed.
 *   deadline  Before the call: the first deadline that has no sample. This deadline must not be later than `now`. After
 *             the call: the deadline of the sample that begins at `now`.
 */
uint32_t deadlines_missed(struct timespec *deadline, const struct timespec *now, long long period_ns);

/*
 * Returns the offset of the next deadline from the beginning of its period. The offset is at least 0 and less than
 * `period_ns`. The difference from the previous offset is random, but at most a quarter of a period. So two consecutive
 * deadlines are at least three quarters of a period apart. In the long run, the deadlines are spread evenly over all
 * parts of the period.
 *   offset_ns  the previous offset, or 0
 *   random     the state of the random number generator (base/random.h)
 */
long long deadline_vary(long long offset_ns, long long period_ns, uint64_t *random);

#endif
