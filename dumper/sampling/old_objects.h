/*
 * The bytes of old objects to which stacks refer: code, method entries and their definitions, and environments. A
 * collection of young objects does not free an old object (ruby/collections.h). So until the next collection of old
 * objects begins, an old object need not be copied again with each stack: its kept bytes are right.
 *
 * A program can change an object in place, for example when it redefines a method; no collection shows that. So the caller
 * must call old_objects_forget() from time to time.
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
 * Says of which moment the next stack is. Forgets all objects if they may be other ones by then.
 *   then  the state of the garbage collector at that moment
 */
void old_objects_at(struct old_objects *objects, const struct collections *then);

/*
 * The bytes of an object, for the moment of old_objects_at(). NULL if the table does not have it, or not so many bytes of
 * it. Valid until the next call of old_objects_keep(), old_objects_at() or old_objects_forget().
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
 * Finds out which frames of a stack, of the moment of old_objects_at(), are known (known_frames.h). What was found lasts
 * until the next call of this function.
 */
void old_objects_look(struct old_objects *objects, const struct stack_copy *copy);

/* What was found. Lives as long as the table. */
const struct known_stack *old_objects_frames(const struct old_objects *objects);

/*
 * Notes the frames of a stack that was checked, for which old_objects_look() was called last: they are known from now on,
 * and that a frame has both this code and this method entry need not be checked again. Frames are left out whose code or
 * method entry was not yet kept when the bytes were read that they were checked with.
 *   read_ns  when the oldest of these bytes were read, by CLOCK_MONOTONIC
 */
void old_objects_note_checked(struct old_objects *objects, const struct stack_copy *copy, const struct stack *stack,
			      uint64_t read_ns);

/* The same, of the two innermost frames of a stack: that the call site of the caller agrees with the callee. */
void old_objects_note_call(struct old_objects *objects, const struct frame *caller, const struct frame *callee,
			   uint64_t read_ns);

/* What was noted. Lives as long as the table. */
const struct checked_code *old_objects_checked(const struct old_objects *objects);

#endif
