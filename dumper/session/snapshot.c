#include "session/snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/give_up.h"
#include "base/priority.h"
#include "base/thread.h"
#include "target/stopping.h"

/* How many copies are tried with sleeping threads left asleep. */
#define SLEEPING_TRIES 2

/* The stage of a pause. */
enum stage { STOPPING, READING, RESUMING };

/* What the tracing thread is to do, and the result. */
struct pause {
	struct target *target;
	bool changing_only;  /* only what changes is copied */
	bool leave_sleepers; /* as for live_stop() */
	bool woke;	     /* a thread that was left asleep has woken up */
	_Atomic enum stage stage;
	struct memory *memory; /* NULL: no pages are copied, only `chase` is called */
	void (*chase)(void *context);
	void *context;
	struct error *error;
};

/*
 * Copies the wanted pages while the target is stopped.
 *
 * The tracer is a thread of its own, which ends with the pause. The kernel then detaches all threads that it has still
 * seized, also a thread that did not stop in time (for example in vfork(2)). So no such thread can stop later on, and the
 * next pause can seize it.
 */
static void *trace(void *argument)
{
	struct pause *pause = argument;

	/* While the target is stopped, rbdump must not wait for a busy CPU: it runs at real-time priority if permitted
	   (root, or CAP_SYS_NICE). */
	priority_raise(PRIORITY_SAMPLES);
	pause->error = live_stop(pause->target, pause->leave_sleepers);
	if (pause->error)
		return NULL;
	pause->stage = READING;
	if (pause->memory)
		memory_prefetch(pause->memory);
	if (pause->chase)
		pause->chase(pause->context);
	pause->woke = live_woke(pause->target);
	pause->stage = RESUMING;
	live_resume(pause->target);
	return NULL;
}

/*
 * Waits for the tracer to end. A tracer that waits in the kernel for a page that another process must provide can neither
 * be told to end nor be interrupted. In that case rbdump ends, which ends the wait and lets the target go on.
 */
static void join_tracer(pthread_t tracer, const struct pause *pause)
{
	static const char *const why[] = {
	    [STOPPING] = "some threads of the process did not stop in time",
	    [READING] = ("the memory of the process could not be read in time: the memory is too large, or a "
			 "part of it comes from a file system or a userfaultfd(2) that does not answer"),
	    [RESUMING] = "some threads of the process were not resumed in time",
	};
	struct timespec end;
	char message[256];

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += SNAPSHOT_LIMIT_S;
	if (pthread_clockjoin_np(tracer, NULL, CLOCK_MONOTONIC, &end) != ETIMEDOUT)
		return;
	snprintf(message, sizeof(message),
		 "rbdump: giving up on process %d after %d s, and letting the process go on: %s\n", pause->target->pid,
		 SNAPSHOT_LIMIT_S, why[pause->stage]);
	give_up(message);
}

/* Stops the target once. */
static struct error *pause_once(struct pause *pause)
{
	struct error *error;
	pthread_t tracer;

	if (pause->memory &&
	    (pause->changing_only ? !memory_forget_changing(pause->memory) : !memory_forget(pause->memory)))
		return error_no_memory();
	pause->stage = STOPPING;
	error = thread_start(&tracer, trace, pause);
	if (error)
		return error;
	join_tracer(tracer, pause);
	return pause->error;
}

/* Stops the target until it was copied while no thread ran. */
static struct error *pause_until_copied(struct pause *pause, struct pauses *pauses)
{
	struct error *error = NULL;
	sigset_t all, before;

	/* If rbdump dies, the kernel lets the target go on; if it is stopped (^Z), it does not. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	for (int tries = 0; !error && (tries == 0 || pause->woke); tries++) {
		pause->leave_sleepers = pause->memory && tries < SLEEPING_TRIES;
		error = pause_once(pause);
		if (!error) {
			pauses->count++;
			pauses->us += (double)pause->target->pause_ns / 1e3;
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}

struct error *snapshot_paused(struct target *target, struct memory *memory, void (*chase)(void *context), void *context,
			      struct pauses *pauses)
{
	struct pause pause = {.target = target, .memory = memory, .chase = chase, .context = context};
	struct error *error = pause_until_copied(&pause, pauses);

	if (!error)
		memory_seal(memory);
	return error;
}

struct error *snapshot_changing(struct target *target, struct memory *memory, void (*chase)(void *context),
				void *context, struct pauses *pauses)
{
	struct pause pause = {
	    .target = target, .changing_only = true, .memory = memory, .chase = chase, .context = context};
	struct error *error = pause_until_copied(&pause, pauses);

	if (!error)
		memory_seal_changing(memory);
	return error;
}

struct error *snapshot_held(struct target *target, void (*work)(void *context), void *context, struct pauses *pauses)
{
	struct pause pause = {.target = target, .chase = work, .context = context};

	return pause_until_copied(&pause, pauses);
}

struct error *snapshot_unpaused(struct memory *memory)
{
	if (!memory_forget(memory))
		return error_no_memory();
	memory_prefetch(memory);
	return NULL;
}
