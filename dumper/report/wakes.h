/*
 * Who has ended whose waits: which thread was woken by which other thread, how often, and how long it had waited then.
 */
#ifndef RBDUMP_WAKES_H
#define RBDUMP_WAKES_H

#include "recording/profile.h"

/* The waits of one thread that were ended by one waker. */
struct wake {
	uint32_t thread; /* index */
	uint32_t waker;	 /* index */
	uint64_t count;
	uint64_t waited_ns; /* the length of all these waits */
};

struct wakes {
	struct wake *of; /* the longest waits first */
	size_t count;
};

/* Collects all waits with a known waker. If out of memory, returns false; in this case, `ret` need not be cleared. */
bool wakes_collect(const struct profile *profile, struct wakes *ret);
void wakes_clear(struct wakes *wakes);

/* The index of the thread of a waker, if it is a thread of a recorded process; otherwise UINT32_MAX. */
uint32_t wakes_thread_of(const struct profile *profile, const struct profile_waker *waker);

#endif
