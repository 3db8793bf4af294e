/*
 * Keeps a running thread of a live process from running for a moment, without stopping it: the calling thread moves to the CPU
 * of that thread, at a real-time priority (base/priority.h). The kernel then tells whether any thread of the process has run
 * meanwhile.
 */
#ifndef RBDUMP_PREEMPTION_H
#define RBDUMP_PREEMPTION_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/task.h"

/* All members are zero at first. */
struct preemption {
	/* After preemption_end(): no thread of the process has run since preemption_begin(). False: one has, or may have. */
	bool held;
	pid_t tid;	  /* the thread that was chosen last; 0: none was runnable */
	struct task task; /* from preemption_choose() to preemption_end(): that thread */
	uint64_t
	    switches; /* how many times it had been given a CPU, before it was seen waiting for its CPU; 0: not known */
	uint64_t cpu_ns; /* the CPU time of the process in preemption_begin(); 0: not known */
	int cpu;	 /* where the calling thread has moved to; -1: it has not moved */
	cpu_set_t cpus;	 /* if it has: where it may run otherwise */
};

/*
 * Looks for a runnable thread of a process, and chooses it: if there are several, the one behind the thread that was chosen
 * last. It takes some microseconds for each thread of the process. None is chosen if there are more than 4,096. Each call must
 * be followed by preemption_begin() and preemption_end().
 *   any  false: none is to be chosen
 */
void preemption_choose(struct preemption *preemption, pid_t pid, bool any);

/*
 * Moves the calling thread to the CPU of the chosen thread. It does not move if it may not use that CPU (taskset(1)), if the
 * chosen thread has a real-time priority of its own, or if the kernel would prefer the chosen thread (nice(1)).
 */
void preemption_begin(struct preemption *preemption);

/*
 * Sets `held`. It is false if there are more than 128 threads: to look at each takes long. Then the calling thread leaves that
 * CPU, if there is another one, and may run again where it could run before.
 */
void preemption_end(struct preemption *preemption);

#endif
