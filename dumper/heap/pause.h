/*
 * The limit for the time during which a process is stopped while its heap is read.
 */
#ifndef RBDUMP_PAUSE_H
#define RBDUMP_PAUSE_H

#include "heap/options.h"
#include "session/session.h"

/* An estimate of how long the process would be stopped: the same reading is made while it runs. */
struct pause_estimate {
	uint64_t began_ns, began_cpu_ns;
};

/* Call this function before that reading. */
void pause_estimate_begin(struct pause_estimate *ret);

/*
 * Call this function after that reading. Returns how long the process would be stopped, in milliseconds.
 *
 * While the process is stopped, rbdump runs at real-time priority if permitted, so it does not wait for a CPU. So the
 * time during which it has waited for one does not count then: the estimate is the CPU time of all threads of rbdump, or
 * the elapsed time if that is shorter, because several threads have run at the same time. This is more than a stop takes.
 * Measured: 165 ms of CPU time and 260 to 460 ms of elapsed time beside other work, for a stop of 75 ms.
 */
double pause_estimate_end(const struct pause_estimate *estimate);

/*
 * The error that the process would be stopped, or was stopped, for too long.
 *   how  "would be stopped for about" or "was stopped for"
 */
struct error *pause_too_long(const struct heap_options *options, const struct session *session, const char *how,
			     double ms);

/* The error that the user has ended the reading (progress.h) before the process could be looked at while it was stopped. */
struct error *pause_interrupted(const struct session *session);

#endif
