/*
 * Limits the CPU time of an rbdump process that takes samples in the kernel. If the limit is exceeded, the kernel
 * continues to copy stacks, but rbdump drops these stacks until its CPU time is within the limit again. rbdump still
 * takes the records that do not contain a stack, so it knows what each thread does.
 */
#ifndef RBDUMP_KERNEL_LIMIT_H
#define RBDUMP_KERNEL_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sampling/cpu_limit.h"
#include "sampling/names_priority.h"

struct kernel_limit {
	double share; /* the share of one CPU that all sampling processes may use together */
	const _Atomic uint32_t *samplers;
	struct names_priority priority;
	struct cpu_limit limit;
	uint64_t checked_ns;	/* when the CPU time was last checked, by CLOCK_MONOTONIC */
	uint64_t rest_until_ns; /* stacks that were copied before this time are dropped */
};

/*
 * Begins to count CPU time. Call this function when the sampling begins, in the thread that takes the records.
 *   share     the share of one CPU that all sampling processes may use together
 *   samplers  the number of sampling processes; `*samplers` must outlive `limit`
 */
void kernel_limit_begin(struct kernel_limit *limit, double share, const _Atomic uint32_t *samplers);

/*
 * Checks whether the CPU time is within the limit, unless the last check was less than 10 ms ago. Also adjusts the
 * priority of the calling thread (names_priority_keep()).
 */
void kernel_limit_keep(struct kernel_limit *limit, uint64_t now_ns);

/* Whether a stack that was copied at `time_ns` must be dropped because of the CPU time limit. */
bool kernel_limit_drops(const struct kernel_limit *limit, uint64_t time_ns);

/* Gives up the real-time priority of the calling thread. */
void kernel_limit_end(struct kernel_limit *limit);

#endif
