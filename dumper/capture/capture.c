#include "capture/capture.h"

#include <signal.h>
#include <time.h>

static double microseconds(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) * 1e6 + (double)(to->tv_nsec - from->tv_nsec) / 1e3;
}

struct error *capture_paused(struct target *target, struct memory *memory, void (*chase)(void *context), void *context,
			     double *pause_us)
{
	struct timespec began, ended;
	sigset_t all, before;
	struct error *error;

	if (!memory_forget(memory))
		return error_no_memory();
	/* If rbdump dies, the kernel lets the target go on; if it is stopped (^Z), it does not. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	clock_gettime(CLOCK_MONOTONIC, &began);
	error = target_stop(target);
	if (!error) {
		memory_prefetch(memory);
		if (chase)
			chase(context);
		target_resume(target);
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
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
