/*
 * Chooses the CPU and the priority of the thread that takes samples (the sampling thread).
 *
 * The sampling thread has real-time priority (SCHED_FIFO) if permitted. If the sampling thread wakes up on a CPU that
 * is running a thread of the target, the sampling thread preempts that thread.
 */
#ifndef RBDUMP_PLACEMENT_H
#define RBDUMP_PLACEMENT_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "target/task.h"

struct placement {
	cpu_set_t cpus; /* the CPUs of rbdump: see placement_init() */
	int cpu;	/* the CPU that the sampling thread is bound to; -1: none */
	/* when placement_avoid() was last called; 0: never, or placement_follow() has succeeded since that call */
	struct timespec off;
	pid_t off_tid; /* the tid that was passed to placement_avoid() at the time `off`; 0: none, or the move failed */
	pid_t processing;      /* the thread of rbdump that processes the samples; 0: none */
	int processing_off;    /* the CPU that `processing` must not use, because the target uses this CPU; -1: none */
	struct timespec moved; /* when `processing_off` last changed */
};

/*
 * Initializes `placement`. Stores the set of CPUs that the calling thread is allowed to use at the moment. The comments
 * in this file call these CPUs "the CPUs of rbdump".
 */
void placement_init(struct placement *placement);

/* Lets the thread `processing` run on all CPUs of rbdump again. */
void placement_end(struct placement *placement);

/*
 * Call this function in the thread that will take the samples. Lets the calling thread run on all CPUs of rbdump, and
 * at real-time priority if permitted. Returns whether the thread has real-time priority.
 */
bool placement_enter(struct placement *placement);

/*
 * Moves the calling thread to the CPU of a task (task_follow() in target/task.h). Returns false if the move fails. Also
 * returns false if the CPU of the task is unknown, or is not one of the CPUs of rbdump (for example because of
 * taskset(1)).
 */
bool placement_follow(struct placement *placement, const struct task *task);

/* Moves the calling thread off the CPU of a task, if rbdump may use another CPU. */
void placement_avoid(struct placement *placement, pid_t tid, const struct task *task);

/*
 * Like placement_avoid(), but does nothing if the last call of placement_avoid() was less than 50 ms ago and
 * placement_follow() has not succeeded since that call.
 */
void placement_stay_off(struct placement *placement, pid_t tid, const struct task *task);

#endif
