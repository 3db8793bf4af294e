/*
 * Reads the values of a look: local variables and self of each frame, if the user has asked for them. This header is used
 * only inside session/.
 *
 * The words of the VM stack are copied with the stack (ruby/stack_pages.h), and lead to objects. Before a target is
 * stopped, the objects are read once from the running target, so that their pages are known and can be copied while the
 * target is stopped, with all other pages that change. There are at most as many such pages as pages of other data, so the
 * copy takes at most about twice as long. If a thread has moved on before the stop, some of its values lead to other
 * pages. These are read after the target goes on: then the object is the same, but its contents may be newer, and the value
 * is marked (VALUE_LATER of trace/details.h). If a collection has begun meanwhile, the object may be another one, and what
 * was read so late is dropped (VALUE_UNREADABLE).
 */
#ifndef RBDUMP_LOOK_VALUES_H
#define RBDUMP_LOOK_VALUES_H

#include "session/look.h"

enum values_pass {
	VALUES_LEARN,	   /* to learn which pages are needed; the trace is to be dropped */
	VALUES_READ,	   /* to read what was copied; the target does not change, or the snapshot is sealed */
	VALUES_READ_LATER, /* the same, and what was not copied is read now from the target, which goes on */
};

/*
 * Reads the values of all frames of the look's trace, and puts them into the trace. Does nothing if session->values wants
 * none. The trace must have its threads in the order of `look->stacks`. Sets `no_memory` if there is not enough memory.
 */
void look_values(const struct session *session, struct look *look, enum values_pass pass);

#endif
