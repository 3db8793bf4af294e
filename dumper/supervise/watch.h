/*
 * Whether the process that an experiment samples is still there, and still the same program.
 */
#ifndef RBDUMP_WATCH_H
#define RBDUMP_WATCH_H

#include <sys/stat.h>

#include "session/session.h"

struct watch {
	pid_t pid;
	bool child; /* we started it, and reap it */
	struct stat executable;

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

/* Whether it has become another program: another file, or the VM is no longer where it was. */
bool watch_has_execed(const struct watch *watch, const struct ruby *ruby);

#endif
