/*
 * What the threads of an image wait for (session/waits.h), and who waits for whom (trace/wait_graph.h): found in bytes that
 * may be anything. What is found must be consistent; the time is limited.
 */
#ifndef RBDUMP_FUZZ_WAITS_H
#define RBDUMP_FUZZ_WAITS_H

#include "ruby/ruby.h"

/* What was found: bits of enum wait_kind, and whether the first two threads are in a deadlock. */
struct waits_outcome {
	uint32_t kinds;
	bool deadlock;
};

/* Ends the program by abort(3) if the result is not consistent. */
struct waits_outcome waits_run(const struct ruby *ruby);

#endif
