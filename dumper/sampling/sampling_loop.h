/*
 * The sampling loop of a recording: a separate thread that takes a given number of rounds per second (rounds.h). At the
 * same time, another thread finds the names of the sampled frames (record/spans.h).
 */
#ifndef RBDUMP_SAMPLING_LOOP_H
#define RBDUMP_SAMPLING_LOOP_H

#include "sampling/rounds.h"
#include "sampling/stream.h"

struct sampling_loop_options {
	struct rounds_options rounds; /* if `rounds.native` is not NATIVE_NONE, observations have native frames */
	const _Atomic int *stop;      /* the loop ends when `*stop` is not 0 */
	/* the CPU time limit for all sampling processes together, as a share of one CPU */
	double max_cpu;
	const _Atomic uint32_t *samplers; /* how many rbdump processes take samples, including this process */
};

/*
 * Creates a sampling loop. The session must outlive the loop. Fails if there is not enough memory, or if native frames
 * are wanted but native_frames_create() or mixed_stacks_create() fails. The stream's end() returns true if a thread of
 * the target did not stop in time and the loop had no other reason to end. Such a thread stays traced until the
 * sampling thread has ended (target/tracee.h). So if end() returns true, call begin() again to run the loop in a new
 * thread.
 */
struct error *sampling_loop_create(const struct session *session, const struct sampling_loop_options *options,
				   struct stream **ret);

#endif
