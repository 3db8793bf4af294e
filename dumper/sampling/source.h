/*
 * A source is one way to copy the stack of a thread. The source decides when the copy is checked, because the source
 * can replace a bad copy with a new one. If a source leaves the check to a later step, the decoder checks the copy when
 * the decoder finds the names of the frames (decoder.h). If the source is `unchecked`, even the decoder omits some
 * checks. All later steps, such as finding names and counting or recording samples, are the same for all sources.
 *
 * Each file that implements sources (source_paused.c, source_unpaused.c) defines one or more objects of type
 * `struct source`.
 */
#ifndef RBDUMP_SOURCE_H
#define RBDUMP_SOURCE_H

#include "sampling/sample.h"

struct sampler;

struct source {
	const char *name;
	bool pauses; /* the source stops the thread */
	/* the source reads a running thread's stack again until two copies agree, or until the time limit is over */
	bool retries;
	bool unchecked; /* the source does not check whether the copy is consistent */
	bool in_kernel; /* the kernel decides when a sample is taken (kernel_sample.h), so `take` is NULL */
	/*
	 * Fills in a sample. Before the call, the sample has its `source`, `time`, `tid`, `thread` and `ec`, but does
	 * not contain any result. If something goes wrong, the sample says what went wrong.
	 *   seen  whether the caller has just seen that the thread exists
	 */
	void (*take)(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample);
};

/*
 * Stops the thread, and copies its stack once. The option `on_torn` says what to do in a torn window
 * (sampler_options.h). If the sample is rejected, and `on_torn` is ON_TORN_STEP or ON_TORN_AGAIN, stops the thread and
 * copies the stack again. Before the first stop, reads the stack once and drops that copy, so that the read during the
 * stop is faster.
 */
extern const struct source source_paused;

/*
 * Reads the stack twice in one system call. Repeats this call until both copies are the same, or until the time limit is
 * over.
 */
extern const struct source source_double;

/*
 * The same as source_double, but reads on the CPU of the thread, so that the thread cannot run during the read. While
 * nearly all stacks are in the cache already, first tries to read the stack from another CPU (remote_reads.h).
 */
extern const struct source source_unpaused;

/*
 * Reads the stack of a sleeping thread, without stopping the thread. After the read, the caller must check whether the
 * thread ran during the read. If the thread ran, the caller must drop the sample.
 */
extern const struct source source_asleep;

/*
 * A program in the kernel copies the stack of a running thread at a clock interrupt of the thread's CPU
 * (kernel_sample.h).
 */
extern const struct source source_kernel;

/* The sources that `rbdump record --mode` offers; NULL ends the list. */
extern const struct source *const source_modes[];

#endif
