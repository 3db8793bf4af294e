/*
 * A stream of observations (stream.h) that are made from records. A program in the kernel writes these records. The
 * observations contain stacks that were copied at clock interrupts, and the time lines of all threads
 * (time_line.h). No thread is stopped. Records of context switches do not wake rbdump.
 */
#ifndef RBDUMP_KERNEL_STREAM_H
#define RBDUMP_KERNEL_STREAM_H

#include <time.h>

#include "kernel/maps.h"
#include "sampling/stream.h"
#include "session/session.h"

struct kernel_stream_options {
	struct kernel_maps maps; /* the maps of a running program that also reports waits (kernel/programs.h) */
	double rate;		 /* how many times per second the clock interrupts each CPU */
	struct timespec origin;	 /* the moment that is time 0 of all observations, by CLOCK_MONOTONIC */
	const _Atomic int *stop; /* the stream ends when `*stop` is not 0 */
	int end_fd;		 /* becomes readable, or its other end is closed, when `*stop` is not 0; -1: none */
	double max_cpu;		 /* as in struct sampling_loop_options */
	const _Atomic uint32_t *samplers;
	bool native;	    /* whether observations have native frames (native_frames.h) */
	bool kernel_frames; /* whether native frames include the kernel's own functions; used only if `native` is set */
};

/*
 * Creates a stream. The session must outlive the stream. Fails if the kernel does not allow rbdump to take samples,
 * or cannot take samples. For ten seconds after a call of keep_pace(), each stack that is copied at a clock
 * interrupt wakes rbdump, however high the rate is. This is necessary because the kernel cannot wait for rbdump.
 */
struct error *kernel_stream_create(const struct session *session, const struct kernel_stream_options *options,
				   struct stream **ret);

#endif
