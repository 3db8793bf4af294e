/*
 * Rivals are layouts that pass the self-test on the target, but are not the session's layout. If it is not known
 * which layout is right, the rivals must give the same result as the session's layout for the same bytes. This header
 * is used only inside session/.
 */
#ifndef RBDUMP_RIVALS_H
#define RBDUMP_RIVALS_H

#include "session/look.h"

/* At most this many layouts are compared with each other: the session's layout and its rivals. */
#define RIVALS_MAX 32u

struct rival {
	struct layout_found layout;
	struct ruby ruby;     /* the target's Ruby, as found when this layout was tried */
	struct session *view; /* a copy of the session; the copy uses this layout */
	struct look look;
};

struct rivals {
	struct rival of[RIVALS_MAX];
	size_t count;
	/* A rival whose result differs from the result of the session's layout; NULL if none. */
	const struct rival *differs;
};

/*
 * Prepares the rivals. All rivals will read the target through the session's `memory`. Returns false if there is not
 * enough memory.
 */
bool rivals_begin(struct rivals *rivals, const struct session *session);

/*
 * Calls look_once() for each rival. Does not compare the results, because a comparison takes time, and the target might
 * be stopped while this function runs.
 *   limit_ns  the time limit of each look
 */
void rivals_look(struct rivals *rivals, long limit_ns);

/*
 * Compares the traces of the rivals with the trace of `look`, which was read from the same bytes. Call this function
 * before anything in `look` is changed. Returns a rival whose trace differs from the trace of `look`; NULL if all
 * traces are the same. If the target was paused or is a core, ignores each rival that the self-test has refused for
 * these bytes. Sets `look->no_memory` if there is not enough memory.
 */
const struct rival *rivals_compare(struct rivals *rivals, struct look *look);

/* Frees everything. */
void rivals_clear(struct rivals *rivals);

#endif
