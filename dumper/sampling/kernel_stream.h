/*
 * A stream of observations (stream.h) that is made by the kernel: the stacks of threads at the interrupts of their
 * CPU's clock, and the time lines of all threads (time_line.h). No thread is stopped, and rbdump is woken only for the
 * stacks.
 */
#ifndef RBDUMP_KERNEL_STREAM_H
#define RBDUMP_KERNEL_STREAM_H

#include <time.h>

#include "sampling/stream.h"
#include "session/session.h"

struct kernel_stream_options {
	double rate;		 /* interrupts of each CPU per second */
	struct timespec origin;	 /* the time 0 of all observations, by CLOCK_MONOTONIC */
	const _Atomic int *stop; /* the stream ends when this is set */
	double max_cpu;		 /* as in struct sampling_loop_options */
	const _Atomic uint32_t *samplers;
};

/*
 * Creates a stream. The session must outlive it. Fails if the kernel does not allow rbdump to sample, or cannot do so.
 * For the ten seconds after keep_pace(), each stack of the clock wakes rbdump, however high the rate is, because
 * nothing in the kernel can wait for rbdump.
 */
struct error *kernel_stream_create(const struct session *session, const struct kernel_stream_options *options,
				   struct stream **ret);

#endif
