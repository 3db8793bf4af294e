/*
 * Options of a sampler: how long a sample may take, and what to do with a thread that was stopped in a torn window.
 */
#ifndef RBDUMP_SAMPLER_OPTIONS_H
#define RBDUMP_SAMPLER_OPTIONS_H

#include <stdbool.h>

/* What source_paused does with a thread that was stopped in a torn window. */
enum on_torn {
	ON_TORN_STEP,	/* steps the thread out of the window, then copies the stack */
	ON_TORN_AGAIN,	/* lets the thread go on, and stops it again a moment later */
	ON_TORN_REPORT, /* copies the stack, and reports it as torn */
	ON_TORN_DROP,	/* rejects the sample */
	ON_TORN_WAYS
};

enum native_copies {
	NATIVE_NONE,
	NATIVE_INNERMOST, /* at most NATIVE_COPY_MAX bytes of the innermost part */
	NATIVE_WHOLE,	  /* all, but not the VM stack that may be in it, and at most NATIVE_WHOLE_MAX bytes */
};

/* The name of an `on_torn` value on the command line, for example "step". */
const char *on_torn_name(enum on_torn on_torn);

struct sampler_options {
	/*
	 * If this many microseconds have passed since the first try began, a rejected sample is not tried again. For
	 * source_paused, this time limit is ten times as long, and counts from the end of the first try.
	 */
	long budget_us;
	enum on_torn on_torn;
	/* What source_paused and source_asleep also copy of the native stack (sample.h). */
	enum native_copies native;
};

#endif
