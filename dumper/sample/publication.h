/*
 * In which torn windows a stack is torn at all: watched, while threads are stepped out of them.
 *
 * A frame is published by the store to its execution context's cfp. Where that comes last, a thread that is stopped in
 * the window has either the whole frame or none of it, and need not be stepped. Which comes first is a matter of the
 * source and of the compiler, for each place where vm_push_frame was inlined, and the code there is straight: so a few
 * passes tell in which the frame is another than what was left in its place by an older one. A word that was the same
 * in all of them may still be stored too late: a window is watched again now and then. Facts: vm_insnhelper.c,
 * vm_push_frame(), 2.7.4 to 4.0.5.
 */
#ifndef RBDUMP_PUBLICATION_H
#define RBDUMP_PUBLICATION_H

#include "session/session.h"

struct publication;

/* The session must outlive it. NULL if out of memory. */
struct publication *publication_create(const struct session *session);
void publication_destroy(struct publication *publication); /* NULL is fine */

/* Whether frames were always seen to be published last in that window, often enough. */
bool publication_is_last(const struct publication *publication, const struct layout_window *window);

/*
 * Whether a thread that is stopped in that window can be copied where it is: frames are published last there. Now and
 * then false there, too.
 */
bool publication_may_copy(struct publication *publication, const struct layout_window *window);

/* Begins to watch a thread that is stopped in a window, and about to be stepped; `ec` is its execution context. */
void publication_begin(struct publication *publication, const struct layout_window *window, uint64_t ec);
/* After each step. */
void publication_step(struct publication *publication);
/* The thread is out of the window. */
void publication_end(struct publication *publication);

#endif
