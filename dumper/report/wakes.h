/*
 * Finds which threads have woken which other threads, how often, and how long the woken threads had waited.
 */
#ifndef RBDUMP_WAKES_H
#define RBDUMP_WAKES_H

#include "recording/profile.h"

/* For a pair of a thread and a waker: the waits of this thread that this waker ended. */
struct wake {
	uint32_t thread; /* index in `threads` of the profile */
	uint32_t waker;	 /* index in `wakers` of the profile */
	uint64_t count;
	uint64_t waited_ns; /* the total duration of the waits */
};

struct wakes {
	struct wake *of; /* sorted by `waited_ns`, the highest first */
	size_t count;
};

/*
 * Collects all waits with a known waker. If there is not enough memory, returns false; in this case, `ret` need not be
 * cleared.
 */
bool wakes_collect(const struct profile *profile, struct wakes *ret);
void wakes_clear(struct wakes *wakes);

/*
 * If a waker is a recorded thread, returns the index of this thread. Returns UINT32_MAX if the waker is not a recorded
 * thread, or if several recorded threads had the tid of the waker, one after the other.
 */
uint32_t wakes_thread_of(const struct profile *profile, const struct profile_waker *waker);

#endif
