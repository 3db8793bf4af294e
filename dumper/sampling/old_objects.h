/*
 * The bytes of old objects to which stacks refer: code, method entries and their definitions, and environments. Only a
 * major collection frees an old object (ruby/collections.h). So until the next major collection begins, an old object
 * need not be copied again with each stack: its kept bytes are right.
 *
 * A program can change an object in place, for example when it redefines a method. The state of the garbage collector
 * does not show such a change. So the caller must call old_objects_forget() from time to time.
 *
 * A table belongs to the thread that takes samples.
 */
#ifndef RBDUMP_OLD_OBJECTS_H
#define RBDUMP_OLD_OBJECTS_H

#include "ruby/checked_code.h"
#include "ruby/collections.h"
#include "ruby/frame.h"
#include "sampling/stack_copy.h"

struct old_objects;

struct old_objects *old_objects_create(const struct layout *layout); /* NULL if out of memory */
void old_objects_destroy(struct old_objects *objects);		     /* NULL is fine */

/* Forgets all objects. */
void old_objects_forget(struct old_objects *objects);

/*
 * Sets the moment of the next stack. Forgets all objects if other objects may have taken their place by that moment.
 *   then  the state of the garbage collector at that moment
 */
void old_objects_at(struct old_objects *objects, const struct collections *then);

/*
 * The bytes of an object, for the moment of old_objects_at(). NULL if the table does not have the object, or has less
 * than `length` bytes of it. Valid until the next call of old_objects_keep(), old_objects_at() or old_objects_forget().
 */
const uint8_t *old_objects_find(const struct old_objects *objects, uint64_t address, size_t length);

/*
 * Keeps those objects of a copy that are old. Call it only after the copy was checked: the words of a torn stack may lead to
 * an object that nothing refers to, and that is being freed.
 *   then, now  the states of the garbage collector before and after the objects were copied
 */
void old_objects_keep(struct old_objects *objects, const struct stack_copy *copy, const struct collections *then,
		      const struct collections *now);

/*
 * Finds out which frames of a stack are known (known_frames.h). The stack must be of the moment of old_objects_at().
 * What was found is valid until the next call of this function.
 */
void old_objects_look(struct old_objects *objects, const struct stack_copy *copy);

/* What was found. Lives as long as the table. */
const struct known_stack *old_objects_frames(const struct old_objects *objects);

/*
 * Notes the frames of a stack that was checked. The last call of old_objects_look() must have been for this stack. From
 * now on, these frames are known, and it need not be checked again whether their code and their method entry can belong
 * to one frame. A frame is left out if its code or its method entry was not kept yet when the bytes for its check were
 * read.
 *   read_ns  when the oldest of these bytes were read, by CLOCK_MONOTONIC
 */
void old_objects_note_checked(struct old_objects *objects, const struct stack_copy *copy, const struct stack *stack,
			      uint64_t read_ns);

/*
 * Notes, in the same way, that the call site of the caller agrees with the callee: the two innermost frames of a stack.
 */
void old_objects_note_call(struct old_objects *objects, const struct frame *caller, const struct frame *callee,
			   uint64_t read_ns);

/* What was noted. Lives as long as the table. */
const struct checked_code *old_objects_checked(const struct old_objects *objects);

#endif
