/*
 * Reads a heap while its process is stopped, and limits how long the process is stopped.
 */
#ifndef RBDUMP_PAUSE_H
#define RBDUMP_PAUSE_H

#include "heap/options.h"
#include "session/session.h"

/*
 * An estimate of how long a reading would stop a process. For the estimate, the same reading is made while the process
 * runs.
 */
struct pause_estimate {
	uint64_t began_ns, began_cpu_ns;
};

/* Call this function just before the reading that is made for the estimate. */
void pause_estimate_begin(struct pause_estimate *ret);

/*
 * Call this function just after the reading that is made for the estimate. Returns how long the process would be
 * stopped, in milliseconds.
 *
 * While the process is stopped, rbdump runs at a real-time priority, if this is permitted. With this priority, rbdump
 * does not wait for a CPU. If the priority is not permitted, the estimate is the elapsed time of the reading. If the
 * priority is permitted, the time for which the reading has waited for a CPU does not count, so the estimate is the CPU
 * time of all threads of rbdump. But if several threads of rbdump ran at the same time, the elapsed time can be shorter
 * than the CPU time. If it is shorter, the estimate is the elapsed time. The estimate is longer than the stop will be. An
 * example from a machine that also did other work: the reading took 165 ms of CPU time and 260 to 460 ms of elapsed time,
 * and the stop took 75 ms.
 */
double pause_estimate_end(const struct pause_estimate *estimate);

/* A reading. */
struct pause_work {
	/*
	 * Reads the heap.
	 *   runs         the process runs during the reading
	 *   deadline_ns  after this time (CLOCK_MONOTONIC), no page of the heap and no large range of memory is read;
	 *                0: only the reading's own limit applies
	 */
	struct error *(*read)(void *context, bool runs, uint64_t deadline_ns);
	/* Whether the deadline ended the last reading before it had read everything. */
	bool (*is_late)(const void *context);
	void *context;
};

/*
 * Reads a heap twice: first while the process runs, to find out how long a reading takes, and then while the process is
 * stopped, for at most options->max_pause_ms. Only the result of the second reading is used.
 *   ms  receives how long the process was stopped
 * Fails if a reading fails, if the process cannot be stopped, if the stop would take or has taken longer than
 * options->max_pause_ms, or if the user has ended a reading (progress.h).
 */
struct error *pause_read(const struct heap_options *options, struct session *session, const struct pause_work *work,
			 double *ms);

#endif
