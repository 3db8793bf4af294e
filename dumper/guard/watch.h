/*
 * Tells whether a sampled process is still there, and how it ended.
 */
#ifndef RBDUMP_WATCH_H
#define RBDUMP_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct watch {
	pid_t pid;
	bool child; /* rbdump started the process, and reaps it */

	bool reaped;	 /* the process has been reaped, so it does not exist any more */
	bool has_status; /* the process was a child of rbdump, and `status` is set */
	int status;	 /* exit status, as waitpid() gives it */
};

/* Begins to watch a process. `child`: whether the process is a child of rbdump. */
void watch_begin(struct watch *watch, pid_t pid, bool child);

/* Notes that the process has been reaped by the rbdump thread that traced it. `status`: as waitpid() gave it. */
void watch_note_end(struct watch *watch, int status);

/* Whether the process has ended. Reaps a child of rbdump that has ended, and notes the exit status. */
bool watch_has_ended(struct watch *watch);

#endif
