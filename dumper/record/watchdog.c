#include "record/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How often it looks. */
#define LOOK_NS 500000000L

/* How often anybody has begun to read, and ended: odd while one reads. */
static _Atomic uint64_t turns[READINGS];

static char message[128]; /* made before: memory may be short then */

void watchdog_reads(enum reading who)
{
	turns[who]++;
}

void watchdog_has_read(enum reading who)
{
	turns[who]++;
}

/* Looks counted, rather than time: a capture that was stopped itself (SIGSTOP) has not waited for its target. */
static void *watch(void *unused)
{
	uint64_t seen[READINGS] = {0};
	int looks[READINGS] = {0};
	ssize_t written;

	for (;;) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		for (int who = 0; who < READINGS; who++) {
			uint64_t now = turns[who];

			looks[who] = now == seen[who] && now % 2 == 1 ? looks[who] + 1 : 0;
			seen[who] = now;
			if (looks[who] * LOOK_NS / 1000000000L < WATCHDOG_S)
				continue;
			written = write(STDERR_FILENO, message, strlen(message));
			(void)written;
			_exit(EXIT_FAILED);
		}
	}
	return unused;
}

struct error *watchdog_begin(pid_t target)
{
	sigset_t all, before;
	pthread_t thread;
	int errnum;

	snprintf(message, sizeof(message),
		 "rbdump: process %d is not recorded any more: its memory does not answer for %d s\n", target,
		 WATCHDOG_S);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum != 0)
		return error_create(EXIT_FAILED, "no thread can be started: %s", strerror(errnum));
	pthread_detach(thread);
	return NULL;
}
