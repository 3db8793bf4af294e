/*
 * How long something has taken.
 */
#ifndef RBDUMP_ELAPSED_H
#define RBDUMP_ELAPSED_H

#include <time.h>

/* Nanoseconds since `since`, which that clock has told. */
static inline long elapsed_by_ns(clockid_t clock, const struct timespec *since)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (now.tv_sec - since->tv_sec) * 1000000000L + (now.tv_nsec - since->tv_nsec);
}

/* The same by CLOCK_MONOTONIC. */
static inline long elapsed_ns(const struct timespec *since)
{
	return elapsed_by_ns(CLOCK_MONOTONIC, since);
}

#endif
