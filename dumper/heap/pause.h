/*
 * Reads a heap while its process is stopped, and limits the time for that.
 */
#ifndef RBDUMP_PAUSE_H
#define RBDUMP_PAUSE_H

#include "heap/options.h"
#include "session/session.h"

/* A reading. */
struct pause_work {
	/*
	 * Reads the heap.
	 *   runs         the process runs meanwhile
	 *   deadline_ns  nothing large is read after this time (CLOCK_MONOTONIC); 0: no limit but that of the reading itself
	 */
	struct error *(*read)(void *context, bool runs, uint64_t deadline_ns);
	/* Whether the time was over before the last reading had read all. */
	bool (*is_late)(const void *context);
	void *context;
};

/*
 * Reads a heap twice: first while the process runs, to find out how long it takes, and then while the process is stopped,
 * for at most options->max_pause_ms. Only the second reading counts.
 *   ms  receives for how long the process was stopped
 * Fails if a reading fails, if the process would be stopped, or was stopped, for too long, if it cannot be stopped, or if
 * the user has ended the reading (progress.h).
 */
struct error *pause_read(const struct heap_options *options, struct session *session, const struct pause_work *work,
			 double *ms);

#endif
