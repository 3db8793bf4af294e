/*
 * Moments, as a clock tells them: how far apart they are, and how long ago.
 */
#ifndef RBDUMP_MOMENTS_H
#define RBDUMP_MOMENTS_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since the clock's origin, which it is not before. */
static inline uint64_t ns_of(const struct timespec *moment)
{
	return (uint64_t)moment->tv_sec * 1000000000U + (uint64_t)moment->tv_nsec;
}

/* Nanoseconds; negative if the second moment is before the first. */
static inline long long ns_between(const struct timespec *from, const struct timespec *to)
{
	return (to->tv_sec - from->tv_sec) * 1000000000LL + (to->tv_nsec - from->tv_nsec);
}

/* The moment so many nanoseconds later; they are not negative. */
static inline struct timespec plus_ns(struct timespec moment, long long ns)
{
	ns += moment.tv_nsec;
	moment.tv_sec += (time_t)(ns / 1000000000);
	moment.tv_nsec = (long)(ns % 1000000000);
	return moment;
}

/* Nanoseconds since `since`, which that clock has told. */
static inline long elapsed_by_ns(clockid_t clock, const struct timespec *since)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (long)ns_between(since, &now);
}

/* The same by CLOCK_MONOTONIC. */
static inline long elapsed_ns(const struct timespec *since)
{
	return elapsed_by_ns(CLOCK_MONOTONIC, since);
}

#endif
