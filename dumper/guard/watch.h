/*
 * Finds out whether a sampled process has ended. If the process was a child of rbdump, also finds out its wait status.
 */
#ifndef RBDUMP_WATCH_H
#define RBDUMP_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct watch {
	pid_t pid;
	bool child; /* rbdump started the process, and must reap it */

	bool reaped;	 /* the process has been reaped, so it no longer exists */
	bool has_status; /* the process was a child of rbdump, and `status` is set */
	int status;	 /* wait status, as set by waitpid() */
};

/* Begins to watch a process. `child`: whether the process is a child of rbdump. */
void watch_begin(struct watch *watch, pid_t pid, bool child);

/*
 * Call this function after the tracer has reaped the process. Remembers that the process has ended. `status` is the
 * wait status that the tracer got from waitpid().
 */
void watch_note_end(struct watch *watch, int status);

/*
 * Whether the process has ended. If the process has ended and is a child of rbdump, reaps the process and sets
 * `status`.
 */
bool watch_has_ended(struct watch *watch);

#endif
