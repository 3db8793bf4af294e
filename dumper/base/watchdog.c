#include "base/watchdog.h"

#include <stdio.h>
#include <unistd.h>

#include "base/give_up.h"
#include "base/thread.h"

/* The time between two checks, in seconds. */
#define LOOK_S 1

/* How often each reader has begun or ended a read: odd while it reads. */
static _Atomic uint64_t changes[READINGS];

static char message[128]; /* made in advance: memory may be short when it is needed */

void watchdog_reads(enum reading who)
{
	changes[who]++;
}

void watchdog_has_read(enum reading who)
{
	changes[who]++;
}

/* Counts checks, not time: while a capture is stopped itself (SIGSTOP), it does not wait for its target. */
static void *watch(void *unused)
{
	uint64_t seen[READINGS] = {0};
	int looks[READINGS] = {0};

	for (;;) {
		sleep(LOOK_S);
		for (int who = 0; who < READINGS; who++) {
			uint64_t now = changes[who];

			looks[who] = now == seen[who] && now % 2 == 1 ? looks[who] + 1 : 0;
			seen[who] = now;
			if (looks[who] * LOOK_S >= WATCHDOG_S)
				give_up(message);
		}
	}
	return unused;
}

struct error *watchdog_begin(pid_t target)
{
	pthread_t thread;
	struct error *error;

	snprintf(message, sizeof(message),
		 "rbdump: process %d is no longer recorded: a read of its memory has not returned for %d s\n", target,
		 WATCHDOG_S);
	error = thread_start(&thread, watch, NULL);
	if (!error)
		pthread_detach(thread);
	return error;
}
