/*
 * Synthetic looks at one process, to be compared and merged. Each failure here is a failure of the test that runs.
 */
#ifndef RBDUMP_SYNTHETIC_LOOKS_H
#define RBDUMP_SYNTHETIC_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/merged.h"

/* A thread in a look: `stack` are the lines of its frames, innermost first. */
struct said {
	uint64_t id;
	enum trace_state state;
	const char *stack;
	uint64_t cpu_ms;
	bool slept, fresh;
	enum verdict verdict;
};

/*
 * The trace of a look, compared with the look before.
 *   before  NULL for the first look
 */
struct trace *look_of(const struct trace *before, const struct said *said, size_t count);

#define LOOK(before, ...)                                                                                              \
	({                                                                                                             \
		const struct said said_[] = {__VA_ARGS__};                                                             \
                                                                                                                       \
		look_of((before), said_, sizeof(said_) / sizeof(said_[0]));                                            \
	})

#define ADD(merged, ...) assert_true(merged_add((merged), LOOK((merged)->last, __VA_ARGS__)))

/* Finishes the looks. Their text must be `expected`. */
void assert_merged(struct merged *merged, unsigned int wanted, const char *expected);

#endif
