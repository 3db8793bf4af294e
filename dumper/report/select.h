/*
 * The view and the filters determine which spans of a profile are shown.
 */
#ifndef RBDUMP_SELECT_H
#define RBDUMP_SELECT_H

#include "recording/profile.h"

/* A view determines which states are shown. */
enum profile_view {
	VIEW_WALL, /* all states; idle spans are shown only if `idle` of struct selection is set */
	VIEW_CPU,  /* cpu and gc */
	VIEW_GVL,  /* threads that are ready to run, but wait for the GVL */
	VIEW_GC,
	PROFILE_VIEWS
};

/* The views are named "wall", "cpu", "gvl" and "gc". For any other name, profile_view_parse() returns false. */
const char *profile_view_name(enum profile_view view);
bool profile_view_parse(const char *name, enum profile_view *ret);

struct selection {
	enum profile_view view;
	bool idle;		    /* for VIEW_WALL: show idle spans, too */
	bool states[SAMPLE_STATES]; /* if any state is set: only these states are shown, and `view` is ignored */
	const char *thread;	    /* the name or tid of a thread, or "main"; NULL: all threads */
	pid_t pid;		    /* 0: all processes */
	uint64_t from_ns, to_ns;    /* only the time [from_ns, to_ns) is shown; if to_ns is 0: until the end */
};

/* Returns whether any of `states` is set. If any state is set, `view` is ignored. */
bool selects_states(const struct selection *selection);

/*
 * Returns whether a span is idle. A span is idle if its thread sleeps, or waits for work as servers do. A thread waits
 * for work if it is in a system call for waiting (accept, epoll_wait, select, wait4 and the like). A thread also counts
 * as waiting for work if it is blocked in a method that waits (TCPServer#accept, IO.select). In such a method, every
 * system call counts as waiting. In other methods, a read or a poll can be part of the program's work, so a span with
 * such a system call does not count as idle.
 */
bool span_is_idle(const struct profile *profile, const struct profile_span *span);

/*
 * Drops the spans that are not selected. If a span begins before from_ns or ends after to_ns, only the part between
 * these times remains.
 */
void profile_select(struct profile *profile, const struct selection *selection);

#endif
