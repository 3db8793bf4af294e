#include "capture/capture.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

static double microseconds(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) * 1e6 + (double)(to->tv_nsec - from->tv_nsec) / 1e3;
}

/*
 * With a target that is stopped, rbdump must not wait for a CPU that others keep busy: for as long as that takes it
 * goes before them, if it may (root, or CAP_SYS_NICE).
 */
static int hurry(struct sched_param *before)
{
	int policy = sched_getscheduler(0);

	sched_getparam(0, before);
	if (policy == SCHED_OTHER)
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	return policy;
}

struct error *capture_paused(struct target *target, struct memory *memory, void (*chase)(void *context), void *context,
			     double *pause_us)
{
	struct timespec began, ended;
	struct sched_param priority;
	sigset_t all, before;
	struct error *error;
	int policy;

	if (!memory_forget(memory))
		return error_no_memory();
	/* If rbdump dies, the kernel lets the target go on; if it is stopped (^Z), it does not. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	policy = hurry(&priority);
	clock_gettime(CLOCK_MONOTONIC, &began);
	error = target_stop(target);
	if (!error) {
		memory_prefetch(memory);
		if (chase)
			chase(context);
		target_resume(target);
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	sched_setscheduler(0, policy, &priority);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (error)
		return error;
	memory_seal(memory);
	*pause_us = microseconds(&began, &ended);
	return NULL;
}

struct error *capture_unpaused(struct memory *memory)
{
	if (!memory_forget(memory))
		return error_no_memory();
	memory_prefetch(memory);
	return NULL;
}
