/*
 * Deadlines of samples: one in each period, by CLOCK_MONOTONIC. If a deadline is missed, its sample is never taken.
 *
 * Samples at regular intervals could keep step with something else that happens at regular intervals: a loop of the
 * target, or the tick of the kernel's scheduler. For example, the samples might never see a thread that runs only for a
 * moment after each tick. So a deadline is not always at the same place in its period (see deadline_vary()).
 */
#ifndef RBDUMP_DEADLINES_H
#define RBDUMP_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The longest single sleep of deadline_wait(). After each sleep, deadline_wait() checks whether to stop waiting. */
#define DEADLINE_SLICE_NS 50000000LL

/*
 * When to begin the sample of a deadline: at the deadline, or a short time after `now`, whichever is later. This short
 * time lets the target run even at a very high sampling rate.
 */
struct timespec deadline_next(const struct timespec *deadline, const struct timespec *now);

/* Returns true if sampling must end; deadline_wait() then stops waiting. `now` is the current time. */
typedef bool deadline_ends(void *context, const struct timespec *now);

/*
 * Sleeps until `due`. Calls `ends` before each sleep and after the last sleep. Returns false if `ends` returned true.
 */
bool deadline_wait(const struct timespec *due, deadline_ends *ends, void *context);

/*
 * Whether a sample is late if it begins `behind_ns` nanoseconds after its deadline. The sample is late if `behind_ns`
 * is more than a tenth of a period and more than 0.1 ms. Up to 0.1 ms is tolerated, because sleeps usually end less
 * than 0.1 ms late.
 */
bool deadline_is_late(long long behind_ns, long long period_ns);

/*
 * How many deadlines were missed if a sample begins now. That sample belongs to the latest deadline that is at or
 * before `now`. All earlier deadlines that have no sample were missed.
 *   deadline  before the call, the first deadline that has no sample; it must not be later than `now`. After the call,
 *             the deadline of the sample that begins now
 */
uint32_t deadlines_missed(struct timespec *deadline, const struct timespec *now, long long period_ns);

/*
 * Returns the offset of the next deadline from the beginning of its period. The offset is at least 0 and less than
 * `period_ns`. The offset differs at random from the previous offset, by at most a quarter of a period. So two
 * deadlines in a row are at least three quarters of a period apart. In the long run, the deadlines are spread evenly
 * over their periods.
 *   offset_ns  the previous offset, or 0
 *   random     the state of the random numbers (base/random.h)
 */
long long deadline_vary(long long offset_ns, long long period_ns, uint64_t *random);

#endif
