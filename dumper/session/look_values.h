/*
 * Reads the values of a look: local variables and self of each frame, if the user has asked for them. This header is used
 * only inside session/.
 *
 * The words of the VM stack are copied with the stack (ruby/stack_pages.h), and lead to objects. Before a target is
 * stopped, rbdump reads the objects once from the running target, to find out which pages contain the objects. While the
 * target is stopped, these pages are then copied together with all other pages that change. There are at most as many such
 * pages as pages of other data, so the copy takes at most about twice as long.
 *
 * If a thread has moved on before the stop, some of its values lead to other pages. These pages are read after the target
 * goes on. The object is then the same, but its contents may be newer, so the value is marked (VALUE_LATER of
 * trace/details.h). If a garbage collection has begun in the meantime, the object may be another one, so what was read
 * after the stop is dropped (VALUE_UNREADABLE).
 */
#ifndef RBDUMP_LOOK_VALUES_H
#define RBDUMP_LOOK_VALUES_H

#include "session/look.h"

enum values_pass {
	VALUES_LEARN,	   /* to learn which pages are needed; the caller drops the trace */
	VALUES_READ,	   /* to read what was copied; the target does not change, or the snapshot is sealed */
	VALUES_READ_LATER, /* like VALUES_READ, but what was not copied is read now from the running target */
};

/*
 * Reads the values of all frames of the look's trace, and puts them into the trace. Does nothing if the session wants no
 * values (`wants_locals`, `wants_self`). The trace must have its threads in the order of `look->stacks`. Sets `no_memory` if
 * there is not enough memory.
 */
void look_values(const struct session *session, struct look *look, enum values_pass pass);

#endif
