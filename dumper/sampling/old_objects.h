/*
 * Keeps the bytes of old objects that stacks refer to: code, method entries and their definitions, and environments. An
 * old object is an object of the garbage collector's old generation. Only a major collection frees an old object
 * (ruby/collections.h). So the kept bytes of an old object remain correct until the next major collection begins. Until
 * then, rbdump does not have to copy the object again with each stack.
 *
 * However, the target can change an object in place, for example when it redefines a method. The state of the garbage
 * collector does not show such a change. So the caller must call old_objects_forget() from time to time.
 *
 * A struct old_objects is a table of the bytes of old objects. The table belongs to the thread of rbdump that takes
 * samples.
 */
#ifndef RBDUMP_OLD_OBJECTS_H
#define RBDUMP_OLD_OBJECTS_H

#include "ruby/checked_code.h"
#include "ruby/collections.h"
#include "ruby/frame.h"
#include "sampling/stack_copy.h"

struct old_objects;

struct old_objects *old_objects_create(const struct layout *layout); /* NULL if there is not enough memory */
void old_objects_destroy(struct old_objects *objects);		     /* NULL is fine */

/* Forgets all objects. */
void old_objects_forget(struct old_objects *objects);

/*
 * Sets the moment to which later searches of the table refer: the moment when a stack was copied. Call this function
 * before the table is searched for the objects or frames of this stack. If the addresses in the table may have belonged
 * to other objects at this moment, forgets all objects.
 *   then  the state of the garbage collector when the stack was copied
 */
void old_objects_at(struct old_objects *objects, const struct collections *then);

/*
 * Returns the bytes that an object had at the moment for which old_objects_at() was last called. Returns NULL if the
 * table does not have the object, or has less than `length` bytes of the object. The bytes are valid until the next
 * call of old_objects_keep(), old_objects_at() or old_objects_forget().
 */
const uint8_t *old_objects_find(const struct old_objects *objects, uint64_t address, size_t length);

/*
 * Adds the old objects of a copy to the table. Call this function only after the copy was checked, because an unchecked
 * copy may be torn. A torn stack may refer to an object to which nothing else refers any more. Ruby may be freeing such
 * an object.
 *   then, now  the states of the garbage collector before and after the objects were copied
 */
void old_objects_keep(struct old_objects *objects, const struct stack_copy *copy, const struct collections *then,
		      const struct collections *now);

/*
 * Finds out which frames of a stack are known (known_frames.h). Before this call, old_objects_at() must have been
 * called for the moment at which the stack was copied. The function old_objects_frames() returns the result, which is
 * valid until the next call of old_objects_look().
 */
void old_objects_look(struct old_objects *objects, const struct stack_copy *copy);

/*
 * Returns the known frames that the last call of old_objects_look() has found. The pointer is valid until
 * old_objects_destroy() is called. But the next call of old_objects_look() overwrites the frames.
 */
const struct known_stack *old_objects_frames(const struct old_objects *objects);

/*
 * Adds the frames of a checked stack to the known frames. A frame is added only if its code and its method entry were
 * already in the table at the time `read_ns`. The last call of old_objects_look() must have been for this stack. For
 * each added frame of Ruby code, the table also remembers that the frame's code and the frame's method entry can belong
 * to the same frame. So this pair of code and method entry is not checked again.
 *   read_ns  a time (CLOCK_MONOTONIC): none of the bytes that the check has used was read earlier
 * Returns true if a frame was not added, and the only reason was that its code or its method entry came into the table
 * after `read_ns`.
 */
bool old_objects_note_checked(struct old_objects *objects, const struct stack_copy *copy, const struct stack *stack,
			      uint64_t read_ns);

/*
 * Notes that `callee` agrees with the call site in `caller` (ruby/call_site.h). `caller` and `callee` are the two
 * innermost frames of a stack. Does nothing if the code of `caller` or the method entry of `callee` was not yet in the
 * table at the time `read_ns`.
 */
void old_objects_note_call(struct old_objects *objects, const struct frame *caller, const struct frame *callee,
			   uint64_t read_ns);

/*
 * Returns the notes that old_objects_note_checked() and old_objects_note_call() have made about code. The pointer is
 * valid until old_objects_destroy() is called.
 */
const struct checked_code *old_objects_checked(const struct old_objects *objects);

#endif
