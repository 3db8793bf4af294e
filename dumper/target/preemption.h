/*
 * Takes the CPU from a running thread of a live process for a moment, but does not stop the thread with ptrace(2). For
 * this purpose, the calling thread moves to the CPU of the running thread. The calling thread should have a real-time
 * priority (base/priority.h). At the end, preemption_end() asks the kernel whether any thread of the process has run
 * since preemption_begin().
 */
#ifndef RBDUMP_PREEMPTION_H
#define RBDUMP_PREEMPTION_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/task.h"

/* Set all members to zero before the first use. */
struct preemption {
	/*
	 * Set by preemption_end(). `held` is true if no thread of the process has run since preemption_begin(). `held`
	 * is false if a thread has run, or may have run.
	 */
	bool held;
	pid_t tid;	  /* the thread that was chosen last; 0: no thread was chosen */
	struct task task; /* from preemption_choose() to preemption_end(): the chosen thread */
	/*
	 * How many times the chosen thread had been given a CPU when preemption_begin() returned. This number is 0 if
	 * it is not known, or if the chosen thread was not waiting for its CPU.
	 */
	uint64_t switches;
	uint64_t cpu_ns; /* the CPU time of the process at preemption_begin(); 0: not known */
	int cpu;	 /* the CPU to which the calling thread has moved; -1: it has not moved */
	cpu_set_t cpus;	 /* if the calling thread has moved: the CPUs that it was allowed to use before */
};

/*
 * Chooses a runnable thread of a process. If several threads are runnable, compares their tids with the tid of the
 * thread that was chosen last. Chooses the thread with the next higher tid, or with the lowest tid if no tid is higher.
 * This call takes some microseconds for each thread of the process. Chooses no thread if the process has more than
 * 4,096 threads. Each call must be followed by preemption_begin() and preemption_end().
 *   any  true: choose a thread; false: choose no thread
 */
void preemption_choose(struct preemption *preemption, pid_t pid, bool any);

/*
 * Moves the calling thread to the CPU of the chosen thread. The calling thread does not move in three cases: it is not
 * allowed to use that CPU (taskset(1)), the chosen thread has a real-time priority, or the kernel would prefer the
 * chosen thread to the calling thread (nice(1)).
 */
void preemption_begin(struct preemption *preemption);

/*
 * Sets `held`. If the calling thread has moved, and is allowed to use another CPU, it leaves the CPU of the chosen
 * thread. Afterwards, the calling thread may again use all CPUs that it was allowed to use before preemption_begin().
 * `held` is false if the process has more than 128 threads, because looking at each thread would take too long.
 */
void preemption_end(struct preemption *preemption);

#endif
