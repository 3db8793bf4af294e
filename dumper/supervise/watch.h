/*
 * Whether a process that is sampled is still there, and how it has ended.
 */
#ifndef RBDUMP_WATCH_H
#define RBDUMP_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct watch {
	pid_t pid;
	bool child; /* we started it, and reap it */

	bool reaped;	 /* there is no such process any more */
	bool has_status; /* it was our child, and we know how it ended */
	int status;	 /* as waitpid() gives it */
};

/* Begins to watch a process; `child`: it is one of our own. */
void watch_begin(struct watch *watch, pid_t pid, bool child);

/* It was reaped by a thread of ours that traced it, and was told its status. */
void watch_note_end(struct watch *watch, int status);

/* Whether it has ended. Reaps a child, and notes its status. */
bool watch_has_ended(struct watch *watch);

#endif
