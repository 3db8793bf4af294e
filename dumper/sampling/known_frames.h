/*
 * Frames that are known without being walked and checked. A few words determine what a frame is: its code, the flags of
 * its environment, the method entry to which its environment leads, and whether it has a pc. If a frame with these
 * words was checked before, and its code and its method entry are old objects (old_objects.h), the frame is known: it
 * is not checked again, and its objects are not copied again.
 *
 * A frame can be known only if all environments that lead to its method entry are on the stack, and if the slots of these
 * environments contain the method entry itself, or nothing. The two innermost frames of a stack are never known, because
 * the call site between them is checked each time (ruby/call_site.h).
 *
 * From Ruby's sources, 2.4 to 4.0.5: see ruby/frame.h. No frame of older Rubies is known.
 *
 * The frames belong to the thread that takes samples.
 */
#ifndef RBDUMP_KNOWN_FRAMES_H
#define RBDUMP_KNOWN_FRAMES_H

#include "ruby/frame.h"
#include "sampling/stack_copy.h"

struct known_frames;

struct known_frames *known_frames_create(void);	       /* NULL if out of memory */
void known_frames_destroy(struct known_frames *known); /* NULL is fine */

/* Forgets all frames. */
void known_frames_forget(struct known_frames *known);

/* Finds out which frames of a copy of a whole stack are known. If there is no memory, no frame is known. */
void known_frames_find(struct known_frames *known, const struct stack_copy *copy);

/* What known_frames_find() has found. Lives as long as `known`. */
const struct known_stack *known_frames_found(const struct known_frames *known);

/*
 * Adds a frame of a copy of a whole stack. It must be a frame of Ruby code or of a C function that was walked and
 * checked, and that was not known. Its code and its method entry must be old objects. Forgets all other frames if there
 * is no room.
 */
void known_frames_add(struct known_frames *known, const struct stack_copy *copy, const struct frame *frame);

#endif
