/*
 * Chooses the CPU and the priority of the thread that takes samples.
 *
 * This thread has real-time priority (SCHED_FIFO) if permitted. So if the sampling thread wakes up on a CPU on which a
 * thread of the target runs, the sampling thread preempts the target's thread.
 */
#ifndef RBDUMP_PLACEMENT_H
#define RBDUMP_PLACEMENT_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "target/task.h"

struct placement {
	cpu_set_t cpus;	       /* the CPUs of rbdump: see placement_init() */
	int cpu;	       /* the CPU that the sampling thread is bound to; -1: none */
	struct timespec off;   /* when the sampling thread last left the target's CPU; 0: it might be on that CPU */
	pid_t off_tid;	       /* the target's thread whose CPU was left at the time `off`; 0: none */
	pid_t processing;      /* the thread of rbdump that processes the samples; 0: none */
	int processing_off;    /* the CPU that `processing` must not use, because the target uses it; -1: none */
	struct timespec moved; /* when `processing_off` changed */
};

/*
 * Initializes `placement`. Stores the set of CPUs on which the calling thread is allowed to run at the moment. The
 * comments in this file call these CPUs "the CPUs of rbdump".
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
 * Moves the calling thread to the CPU of a task (task_follow() in target/task.h). Returns false if that CPU is not
 * known, or is not one of the CPUs of rbdump, for example because of taskset(1). Also returns false if the move fails.
 */
bool placement_follow(struct placement *placement, const struct task *task);

/* Moves the calling thread off the CPU of a task, if there is another CPU of rbdump. */
void placement_avoid(struct placement *placement, pid_t tid, const struct task *task);

/*
 * Does nothing if placement_avoid() was called less than 50 ms ago and placement_follow() was not called after that.
 * Otherwise does the same as placement_avoid().
 */
void placement_stay_off(struct placement *placement, pid_t tid, const struct task *task);

#endif
