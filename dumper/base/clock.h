/*
 * Arithmetic with clock times (struct timespec), in nanoseconds.
 */
#ifndef RBDUMP_CLOCK_H
#define RBDUMP_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns a time as nanoseconds since the origin of the clock. The time must not be before the origin. */
static inline uint64_t ns_of(const struct timespec *moment)
{
	return (uint64_t)moment->tv_sec * 1000000000U + (uint64_t)moment->tv_nsec;
}

/* Returns the nanoseconds between two times; the result is negative if `to` is before `from`. */
static inline long long ns_between(const struct timespec *from, const struct timespec *to)
{
	return (to->tv_sec - from->tv_sec) * 1000000000LL + (to->tv_nsec - from->tv_nsec);
}

/* Returns the time that is `ns` nanoseconds after `moment`. `ns` must not be negative. */
static inline struct timespec plus_ns(struct timespec moment, long long ns)
{
	ns += moment.tv_nsec;
	moment.tv_sec += (time_t)(ns / 1000000000);
	moment.tv_nsec = (long)(ns % 1000000000);
	return moment;
}

/* Returns the current time of CLOCK_MONOTONIC, in nanoseconds. */
static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ns_of(&now);
}

/* Returns the nanoseconds from `since` until now. `since` is a time of the clock `clock`. */
static inline long elapsed_by_ns(clockid_t clock, const struct timespec *since)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (long)ns_between(since, &now);
}

/* Returns the nanoseconds from `since` until now. `since` is a time of CLOCK_MONOTONIC. */
static inline long elapsed_ns(const struct timespec *since)
{
	return elapsed_by_ns(CLOCK_MONOTONIC, since);
}

#endif
