/*
 * Reads the values of a look: local variables and self of each frame, if the user has asked for them. This header is used
 * only inside session/.
 *
 * The words of each VM stack are copied together with the other data of its thread (ruby/stack_pages.h). Many of these
 * words are references to objects. Before a target is stopped, rbdump reads the objects once from the running target,
 * to find out which pages contain the objects. While the target is stopped, these pages are copied together with all
 * other pages that change. The number of pages with objects is at most the number of pages with other data, so the copy
 * takes at most about twice as long as without the objects. But up to a few hundred pages with objects are copied even
 * if there are fewer pages with other data.
 *
 * If a thread has run after rbdump read the objects from the running target, and before the stop, some values of the
 * thread may lead to objects on other pages. These other pages are read after the target goes on. Normally, these pages
 * still contain the same objects. But the contents of an object may be newer than the stack, so each such value is
 * marked (VALUE_LATER of trace/details.h). If a garbage collection has begun since the stop, there may be other objects
 * on these pages, so the values that were read after the stop are dropped (VALUE_UNREADABLE).
 */
#ifndef RBDUMP_LOOK_VALUES_H
#define RBDUMP_LOOK_VALUES_H

#include "session/look.h"

enum values_pass {
	VALUES_LEARN,	   /* to learn which pages are needed; the caller drops the trace */
	VALUES_READ,	   /* to read the copied data; the target does not change, or the snapshot is sealed */
	VALUES_READ_LATER, /* like VALUES_READ, but data that was not copied is read now from the running target */
};

/*
 * Reads the values of all frames of the look's trace, and puts them into the trace. Does nothing if neither
 * `wants_locals` nor `wants_self` is set in the session. The trace must have its threads in the order of
 * `look->stacks`. Sets `no_memory` if there is not enough memory.
 */
void look_values(const struct session *session, struct look *look, enum values_pass pass);

#endif
