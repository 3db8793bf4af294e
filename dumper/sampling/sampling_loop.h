/*
 * The sampling loop of a recording: a separate thread that takes a given number of rounds per second (rounds.h).
 * Another thread finds the names at the same time (record/spans.h).
 */
#ifndef RBDUMP_SAMPLING_LOOP_H
#define RBDUMP_SAMPLING_LOOP_H

#include "sampling/rounds.h"
#include "sampling/stream.h"

struct sampling_loop_options {
	struct rounds_options rounds;
	const _Atomic int *stop; /* the loop ends when `*stop` is not 0 */
	/* the CPU time limit for all sampling processes together, as a share of one CPU */
	double max_cpu;
	const _Atomic uint32_t *samplers; /* how many processes take samples, including this process */
};

/*
 * Creates a sampling loop. The session must outlive the loop. Returns NULL if out of memory. If a thread of the target
 * does not stop in time, the loop ends. If this was the only reason to end the loop, the stream's end() returns true.
 * The thread of the target stays traced until the sampling thread has ended (target/tracee.h). So after end() has
 * returned true, call begin() again, which runs the loop in a new thread.
 */
struct stream *sampling_loop_create(const struct session *session, const struct sampling_loop_options *options);

#endif
