/*
 * A stream of observations (stream.h). A program in the kernel writes records, and the observations are made from these
 * records. The observations contain the time lines of all threads (time_line.h), and stacks that were copied at clock
 * interrupts or at the beginning of waits. If no stack was copied at the beginning of a long wait, rbdump copies
 * the stack during the wait. No thread is stopped. Records of context switches do not wake rbdump.
 */
#ifndef RBDUMP_KERNEL_STREAM_H
#define RBDUMP_KERNEL_STREAM_H

#include <time.h>

#include "kernel/maps.h"
#include "sampling/sampler_options.h"
#include "sampling/stream.h"
#include "session/session.h"

struct kernel_stream_options {
	struct kernel_maps maps; /* the maps of a program that runs, and was loaded with `waits` (kernel/programs.h) */
	double rate;		 /* how many times per second the clock interrupts each CPU */
	struct timespec origin;	 /* the moment that is time 0 of all observations, by CLOCK_MONOTONIC */
	const _Atomic int *stop; /* the stream ends when `*stop` is not 0 */
	int end_fd;		 /* poll(2) reports this descriptor when `*stop` is not 0; -1: no descriptor */
	double max_cpu;		 /* the CPU time limit, as in struct sampling_loop_options */
	const _Atomic uint32_t *samplers;
	enum native_copies native; /* whether observations have native frames (native_frames.h) */
	bool kernel_frames; /* whether native frames include the kernel's own functions; used only if `native` is set */
};

/*
 * Creates a stream. The session must outlive the stream. Fails if the process cannot be sampled in the kernel
 * (kernel_process_facts()), if native frames cannot be found (native_frames_create()), if the ring for the records
 * cannot be created, or if there is not enough memory. For ten seconds after a call of keep_pace() (stream.h), each
 * copied stack wakes rbdump, even at a high sampling rate. These wake-ups are necessary because the kernel cannot wait
 * for rbdump.
 */
struct error *kernel_stream_create(const struct session *session, const struct kernel_stream_options *options,
				   struct stream **ret);

#endif
