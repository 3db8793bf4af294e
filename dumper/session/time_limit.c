#include "session/time_limit.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/give_up.h"
#include "base/thread.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the three below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool over;
static enum time_limit_of doing;

static pthread_t watcher;
static bool watched;
static struct timespec end;
static char messages[TIME_LIMIT_ARGUMENTS + 1]
		    [256]; /* made before the time runs: memory may be short when it is over */

/*
 * The clock is a thread of its own: a thread that waits in the kernel for a page that a dead file system or userfaultfd(2)
 * must provide cannot be interrupted by a signal handler. But its process can be ended.
 */
static void *watch(void *unused)
{
	int errnum = 0;

	pthread_mutex_lock(&mutex);
	while (!over && errnum != ETIMEDOUT)
		errnum = pthread_cond_clockwait(&changed, &mutex, CLOCK_MONOTONIC, &end);
	if (over) {
		pthread_mutex_unlock(&mutex);
		return unused;
	}
	give_up(messages[doing]);
}

struct error *time_limit_begin(const char *name, pid_t pid, unsigned int seconds)
{
	static const char *const causes[] = {
	    [TIME_LIMIT_LOOK] = "rbdump was still reading the target; allow more time (--time-limit SECONDS)",
	    [TIME_LIMIT_DEBUG_INFO] =
		"rbdump was searching for debug info to make a layout; give a layout (--offsets), "
		"use no debuginfod server (unset DEBUGINFOD_URLS), or allow more time (--time-limit)",
	    [TIME_LIMIT_ARGUMENTS] = "rbdump was still reading the command line and the environment; omit --args, or "
				     "allow more time (--time-limit SECONDS)",
	};
	struct error *error;

	if (seconds == 0)
		seconds = TIME_LIMIT_S;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		snprintf(messages[i], sizeof(messages[i]), "rbdump: %s %d: nothing to show after %u s: %s\n", name, pid,
			 seconds, causes[i]);
	over = false;
	doing = TIME_LIMIT_LOOK;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	error = thread_start(&watcher, watch, NULL);
	watched = !error;
	return error;
}

void time_limit_is_of(enum time_limit_of of)
{
	pthread_mutex_lock(&mutex);
	doing = of;
	pthread_mutex_unlock(&mutex);
}

void time_limit_end(void)
{
	if (!watched)
		return;
	pthread_mutex_lock(&mutex);
	over = true;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
	pthread_join(watcher, NULL);
	watched = false;
}
