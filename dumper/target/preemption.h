/*
 * Keeps one running thread of a live process from running for a moment, without stopping it: the calling thread moves to the
 * CPU of that thread, at a real-time priority (base/priority.h). The kernel then tells whether the thread has run meanwhile.
 */
#ifndef RBDUMP_PREEMPTION_H
#define RBDUMP_PREEMPTION_H

#include <sched.h>
#include <stdbool.h>

#include "target/task.h"

/* All members are zero at first. */
struct preemption {
	pid_t tid;	       /* the thread that was chosen last; 0: none */
	bool held;	       /* after preemption_end(): that thread has not run; or no thread was runnable */
	struct task task;      /* during a preemption: the thread */
	struct task_look then; /* what it was doing at the beginning */
	cpu_set_t cpus;	       /* during a preemption: where the calling thread may run otherwise */
	bool on_its_cpu;
};

/*
 * Chooses a thread of a process that is runnable, and moves the calling thread to its CPU: the thread that was chosen last if
 * it did not run then, otherwise the next one, so that each thread is chosen in its turn. If there is none, or if the calling
 * thread may not use that CPU (taskset(1)), it stays where it is. Each call must be followed by preemption_end().
 */
void preemption_begin(struct preemption *preemption, pid_t pid);

/*
 * Sets `held`: false if the chosen thread has run since preemption_begin(), or if that is not known. Then lets the calling
 * thread run where it could run before.
 */
void preemption_end(struct preemption *preemption);

#endif
