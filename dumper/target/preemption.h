/*
 * Keeps the one running thread of a live process from running for a moment, without stopping it: the calling thread moves to
 * the CPU of that thread, at a real-time priority (base/priority.h). The kernel then tells whether the thread has run
 * meanwhile.
 */
#ifndef RBDUMP_PREEMPTION_H
#define RBDUMP_PREEMPTION_H

#include <sched.h>
#include <stdbool.h>

#include "target/task.h"

/* All members are zero at first. */
struct preemption {
	/* After preemption_end(): no thread of the process has run since preemption_begin(). False: one has, or may have. */
	bool held;
	/* How many threads were runnable when they were looked at: 0, 1, or 2 if there are more; -1: not known. */
	int runnable;
	pid_t tid;	  /* the thread that was chosen last; 0: none */
	struct task task; /* during a preemption: that thread */
	uint64_t
	    switches; /* how many times it had been given a CPU when the calling thread had moved to its CPU; 0: not known */
	cpu_set_t cpus; /* during a preemption: where the calling thread may run otherwise */
	bool moved;
};

/*
 * Looks for the runnable threads of a process, and chooses one: if there are several, the one behind the thread that was
 * chosen last. It takes some microseconds for each thread of the process, and is not known if there are more than 4,096.
 */
void preemption_choose(struct preemption *preemption, pid_t pid);

/*
 * Moves the calling thread to the CPU of the chosen thread, if the calling thread may use that CPU (taskset(1)) and the
 * chosen one has no real-time priority of its own. Each call must be followed by preemption_end().
 */
void preemption_begin(struct preemption *preemption);

/* Sets `held`. Then lets the calling thread run where it could run before. */
void preemption_end(struct preemption *preemption);

#endif
