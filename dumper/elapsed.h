/*
 * How long something has taken.
 */
#ifndef RBDUMP_ELAPSED_H
#define RBDUMP_ELAPSED_H

#include <time.h>

/* Nanoseconds since `since`, which CLOCK_MONOTONIC has told. */
static inline long elapsed_ns(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - since->tv_sec) * 1000000000L + (now.tv_nsec - since->tv_nsec);
}

#endif
