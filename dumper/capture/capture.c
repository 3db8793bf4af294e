#include "capture/capture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/stopping.h"

/* How many copies are tried with sleeping threads left asleep. */
#define SLEEPING_TRIES 2

/* What a pause is at. */
enum stage { STOPPING, READING, RESUMING };

/* What the tracing thread is to do, and what came of it. */
struct pause {
	struct target *target;
	bool leave_sleepers; /* as live_stop() has it */
	bool woke;	     /* a thread that was left asleep has woken up */
	_Atomic enum stage stage;
	struct memory *memory;
	void (*chase)(void *context);
	void *context;
	struct error *error;
};

/*
 * Copies what is wanted while the target stands still.
 *
 * A thread of its own is the tracer, and ends with the pause: the kernel then detaches whatever it has still seized,
 * also a thread that did not stop in time (in vfork(2), say), so that none can be caught in a stop later on, and the
 * next pause can seize it.
 */
static void *trace(void *argument)
{
	struct pause *pause = argument;

	/* With a target that is stopped, rbdump must not wait for a CPU that others keep busy: it goes before them, if
	   it may (root, or CAP_SYS_NICE). */
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	pause->error = live_stop(pause->target, pause->leave_sleepers);
	if (pause->error)
		return NULL;
	pause->stage = READING;
	memory_prefetch(pause->memory);
	if (pause->chase)
		pause->chase(pause->context);
	pause->woke = live_woke(pause->target);
	pause->stage = RESUMING;
	live_resume(pause->target);
	return NULL;
}

/*
 * Waits for the tracer to end. One that waits in the kernel, for a page that somebody else is to provide, can neither
 * be told to end nor interrupted: then rbdump ends, which ends the wait, and lets the target go on.
 */
static void join_tracer(pthread_t tracer, const struct pause *pause)
{
	static const char *const why[] = {
	    [STOPPING] = "not all of its threads had been stopped by then",
	    [READING] = ("its memory could not be read by then: it is much, or some of it is of a file system, or a "
			 "userfaultfd(2), that does not answer"),
	    [RESUMING] = "not all of its threads had been let go by then",
	};
	struct timespec end;
	char message[256];
	ssize_t written;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += CAPTURE_LIMIT_S;
	if (pthread_clockjoin_np(tracer, NULL, CLOCK_MONOTONIC, &end) != ETIMEDOUT)
		return;
	snprintf(message, sizeof(message), "rbdump: process %d was stopped for %d s, and is let go: %s\n",
		 pause->target->pid, CAPTURE_LIMIT_S, why[pause->stage]);
	written = write(STDERR_FILENO, message, strlen(message));
	(void)written;
	_exit(EXIT_FAILED);
}

/* Stops the target once. */
static struct error *pause_once(struct pause *pause)
{
	pthread_t tracer;
	int errnum;

	if (!memory_forget(pause->memory))
		return error_no_memory();
	pause->stage = STOPPING;
	errnum = pthread_create(&tracer, NULL, trace, pause);
	if (errnum != 0)
		return error_create(EXIT_FAILED, "no thread can be started: %s", strerror(errnum));
	join_tracer(tracer, pause);
	return pause->error;
}

struct error *capture_paused(struct target *target, struct memory *memory, void (*chase)(void *context), void *context,
			     struct pauses *pauses)
{
	struct pause pause = {.target = target, .memory = memory, .chase = chase, .context = context};
	struct error *error = NULL;
	sigset_t all, before;

	/* If rbdump dies, the kernel lets the target go on; if it is stopped (^Z), it does not. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	for (int tries = 0; !error && (tries == 0 || pause.woke); tries++) {
		pause.leave_sleepers = tries < SLEEPING_TRIES;
		error = pause_once(&pause);
		if (!error) {
			pauses->count++;
			pauses->us += (double)target->pause_ns / 1e3;
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (!error)
		memory_seal(memory);
	return error;
}

struct error *capture_unpaused(struct memory *memory)
{
	if (!memory_forget(memory))
		return error_no_memory();
	memory_prefetch(memory);
	return NULL;
}
