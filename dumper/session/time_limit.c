#include "session/time_limit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the three below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool over;
static enum time_limit_of doing;

static pthread_t watcher;
static bool watched;
static struct timespec end;
static char messages[2][256]; /* made before the time runs: memory may be short when it is over */

/*
 * A thread of its own: whoever waits in the kernel for a page that a dead file system, or userfaultfd(2), is to provide
 * cannot be interrupted by a signal that is handled, but ended.
 */
static void *watch(void *unused)
{
	const char *message;
	ssize_t written;
	int errnum = 0;

	pthread_mutex_lock(&mutex);
	while (!over && errnum != ETIMEDOUT)
		errnum = pthread_cond_clockwait(&changed, &mutex, CLOCK_MONOTONIC, &end);
	if (over) {
		pthread_mutex_unlock(&mutex);
		return unused;
	}
	message = messages[doing];
	written = write(STDERR_FILENO, message, strlen(message));
	(void)written;
	_exit(EXIT_FAILED);
}

struct error *time_limit_begin(enum target_kind kind, pid_t pid, unsigned int seconds)
{
	static const char *const causes[] = {
	    [TIME_LIMIT_LOOK] = "it was still being read; allow it more: --time-limit",
	    [TIME_LIMIT_DEBUG_INFO] =
		"debug info was being looked for, to make a layout of it; give the layout (--offsets), "
		"do without a server (unset DEBUGINFOD_URLS), or allow it more: --time-limit",
	};
	sigset_t all, before;
	int errnum;

	if (seconds == 0)
		seconds = TIME_LIMIT_S;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		snprintf(messages[i], sizeof(messages[i]), "rbdump: %s %d: nothing to show after %u s: %s\n",
			 kind == TARGET_CORE ? "the core of process" : "process", pid, seconds, causes[i]);
	over = false;
	doing = TIME_LIMIT_LOOK;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	/* Signals are for the thread that works. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&watcher, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	watched = errnum == 0;
	if (!watched)
		return error_create(EXIT_FAILED, "no thread can be started: %s", strerror(errnum));
	return NULL;
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
