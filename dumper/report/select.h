/*
 * What of a profile is shown: a view, and filters.
 */
#ifndef RBDUMP_SELECT_H
#define RBDUMP_SELECT_H

#include "recording/profile.h"

/* Views: which states count. */
enum profile_view {
	VIEW_WALL, /* all time; without what is idle, unless that is wanted */
	VIEW_CPU,  /* cpu and gc */
	VIEW_GVL,  /* what could run, if it had the GVL */
	VIEW_GC,
	PROFILE_VIEWS
};

/* "wall", "cpu", "gvl", "gc". */
const char *profile_view_name(enum profile_view view);
bool profile_view_parse(const char *name, enum profile_view *ret);

struct selection {
	enum profile_view view;
	bool idle;		     /* VIEW_WALL: with what is idle */
	bool states[PROFILE_STATES]; /* if any is set: these alone, whatever the view */
	const char *thread;	     /* its name or its number; NULL: all */
	pid_t pid;		     /* 0: all */
	uint64_t from_ns, to_ns;     /* [from, to); to 0: to the end */
};

/*
 * Whether a run is idle: its thread sleeps, or waits for work as servers do: in a system call that is for that (accept,
 * epoll_wait, select, wait4 and their kin), or in a method that is (TCPServer#accept, IO.select), whatever system call
 * it makes. What else is read from, or polled, may be what the program waits for.
 */
bool run_is_idle(const struct profile *profile, const struct profile_run *run);

/* Drops the runs that are not selected; those that reach beyond [from, to) are cut. */
void profile_select(struct profile *profile, const struct selection *selection);

#endif
