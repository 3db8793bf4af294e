/*
 * A limit for the work that a hostile target can cause, and for the memory that the result takes. The limit is a number of
 * steps: the words, and the entries of tables, that are looked at. All objects of a heap, or of one page of it, share the
 * steps. In a hostile target, objects can lead to the same memory, or around in a circle, so one object must not take all
 * steps:
 *   - An object may take at most half of the steps that are left and not reserved.
 *   - A third of all steps is reserved for objects that take few steps. A large object may take this small number, too.
 *   - Each object may take STEPS_ALWAYS, even if no steps are left.
 *
 * So a few hostile objects can hide only references of other large objects, and even many hostile objects cannot hide
 * references of small objects. The objects of a real heap are never limited: the steps that one object needs are at most the
 * steps that all objects need together, minus the steps that the others have taken.
 */
#ifndef RBDUMP_STEPS_H
#define RBDUMP_STEPS_H

#include <stdint.h>

/* Not many more than the number of words in a slot. */
#define STEPS_ALWAYS 16u

struct steps {
	uint64_t left, reserved, few;
};

/*
 *   needed  more than all objects need together
 *   few     how many steps one object may take even if only reserved steps are left
 */
static inline struct steps steps_begin(uint64_t needed, uint64_t few)
{
	return (struct steps){.left = 3 * needed, .reserved = needed, .few = few};
}

/* How many steps the next object may take. */
static inline uint64_t steps_for_one(const struct steps *steps)
{
	const uint64_t large = steps->left > steps->reserved ? (steps->left - steps->reserved) / 2 : 0;
	const uint64_t few = steps->left < steps->few ? steps->left : steps->few;
	const uint64_t ret = large > few ? large : few;

	return ret > STEPS_ALWAYS ? ret : STEPS_ALWAYS;
}

/* Notes that an object has taken steps: at most as many as steps_for_one() has returned. */
static inline void steps_take(struct steps *steps, uint64_t taken)
{
	steps->left -= taken < steps->left ? taken : steps->left;
}

#endif
