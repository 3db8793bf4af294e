/*
 * Other layouts that pass the self-test on a target as well as the one that it is read through. If nothing says which
 * of them is right, they must all show the same of the same bytes. A part of the session.
 */
#ifndef RBDUMP_RIVALS_H
#define RBDUMP_RIVALS_H

#include "session/look.h"

/* The most layouts that are compared. */
#define RIVALS_MAX 32u

struct rival {
	struct layout_found layout;
	struct ruby ruby;     /* what was found of the target through it; its memory is that of the session */
	struct session *view; /* the session as if it had that layout */
	struct look look;
};

struct rivals {
	struct rival of[RIVALS_MAX];
	size_t count;
	const struct rival *differs; /* one that shows something else than the session's layout; NULL if none does */
};

/* Makes them ready to read through the session's memory. False if out of memory. */
bool rivals_begin(struct rivals *rivals, const struct session *session);

/*
 * Looks once through each, as look_once() does. Nothing is compared: the target may stand still meanwhile.
 *   limit_ns  for each
 */
void rivals_look(struct rivals *rivals, long limit_ns);

/*
 * Compares what they have seen with what `look` has, in the same bytes, before anything else is known of it. Gives one
 * that shows something else; NULL if none does. If the target stood still, the self-test may rule one out by now: that
 * one does not count. Sets the look's `no_memory` if out of it.
 */
const struct rival *rivals_compare(struct rivals *rivals, struct look *look);

/* Frees everything. */
void rivals_clear(struct rivals *rivals);

#endif
