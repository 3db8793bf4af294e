/*
 * Limits the CPU time that a process takes which samples in the kernel. The kernel goes on to copy stacks, but rbdump
 * drops the stacks that it has no CPU time for. It drops no other records, so it still knows what each thread does.
 */
#ifndef RBDUMP_KERNEL_LIMIT_H
#define RBDUMP_KERNEL_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sampling/cpu_limit.h"
#include "sampling/names_priority.h"

struct kernel_limit {
	double share; /* as `all` in cpu_limit_share() */
	const _Atomic uint32_t *samplers;
	struct names_priority priority;
	struct cpu_limit limit;
	uint64_t checked_ns;	/* when the CPU time was checked last, by CLOCK_MONOTONIC */
	uint64_t rest_until_ns; /* stacks that were copied before this time are dropped */
};

/*
 * Begins to count CPU time. Call this function when the sampling begins, in the thread that takes the records.
 *   share     how much of one CPU all samplers may take together
 *   samplers  how many samplers there are; must outlive the limit
 */
void kernel_limit_begin(struct kernel_limit *limit, double share, const _Atomic uint32_t *samplers);

/* Checks the CPU time that was taken, unless it was checked a moment ago. */
void kernel_limit_keep(struct kernel_limit *limit, uint64_t now_ns);

/* Whether there is no CPU time for a stack that was copied at a time. */
bool kernel_limit_drops(const struct kernel_limit *limit, uint64_t time_ns);

/* Gives up the real-time priority of the calling thread. */
void kernel_limit_end(struct kernel_limit *limit);

#endif
