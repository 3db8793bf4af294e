/*
 * A waker is a thread that has woken a thread of a recorded process. A waker can belong to any process.
 */
#ifndef RBDUMP_WAKERS_H
#define RBDUMP_WAKERS_H

#include <stdint.h>
#include <sys/types.h>

#include "recording/profile.h"

/* A cache of the names of processes. A zeroed struct is an empty cache. */
#define WAKERS 64u
struct wakers {
	struct {
		pid_t pid;
		uint64_t read_ns;
		char name[64]; /* "": not known */
	} of[WAKERS];
};

/*
 * Finds a waker in the tables of a recording, and returns its index + 1. Adds the waker if it is new. Returns 0 if out
 * of memory. Takes the name of the waker's process from the cache if the name was read in the last second. Otherwise,
 * reads the name from /proc.
 */
uint32_t wakers_find(struct wakers *wakers, struct profile *tables, pid_t pid, pid_t tid);

#endif
