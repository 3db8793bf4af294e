/*
 * Frames that rbdump knows from earlier stacks. A frame is identified by four values: its code, its method entry, the
 * flags of its environment, and whether it has a pc. A frame is known if two conditions hold: a frame with the same
 * four values was checked before, and the code and the method entry of the frame are old objects (old_objects.h). A
 * known frame is not checked again, and its objects are not copied again.
 *
 * To find the method entry of a frame, rbdump searches the frame's environment, and then the outer environments. A
 * frame can be known only if all of these environments are on the stack. In addition, the ME_CREF slot of the outermost
 * environment must contain the method entry itself, and the ME_CREF slots of all other environments must be empty. The
 * two innermost frames of a stack are never known, because the call site between them is checked each time
 * (ruby/call_site.h).
 *
 * Based on Ruby's sources, 2.4 to 4.0.5 (see ruby/frame.h). With older versions of Ruby, no frame is treated as known.
 *
 * Only the thread that takes samples may use the known frames.
 */
#ifndef RBDUMP_KNOWN_FRAMES_H
#define RBDUMP_KNOWN_FRAMES_H

#include "ruby/frame.h"
#include "sampling/stack_copy.h"

struct known_frames;

struct known_frames *known_frames_create(void);	       /* NULL if there is not enough memory */
void known_frames_destroy(struct known_frames *known); /* NULL is fine */

/* Forgets all frames. */
void known_frames_forget(struct known_frames *known);

/*
 * Finds the known frames in `copy`, which must contain a whole stack. If there is not enough memory, finds no known
 * frames.
 */
void known_frames_find(struct known_frames *known, const struct stack_copy *copy);

/*
 * Returns the frames that known_frames_find() has found. The pointer is valid until known_frames_destroy() is called.
 */
const struct known_stack *known_frames_found(const struct known_frames *known);

/*
 * Adds a frame to the known frames. The frame must be in `copy`, which must contain a whole stack. The frame must run
 * Ruby code or a C function. The frame must have been walked and checked, and must not be known yet. The code and the
 * method entry of the frame must be old objects. If there is no room for the frame, forgets all known frames, and does
 * not add the frame.
 */
void known_frames_add(struct known_frames *known, const struct stack_copy *copy, const struct frame *frame);

#endif
