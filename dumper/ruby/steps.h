/*
 * A limit for the work that a hostile target can cause, and for the memory that the result takes. The limit is a number
 * of steps. A step is the read of one word, or of one entry of a table. All objects of a heap, or of one page of a
 * heap, share the steps. In a hostile target, many objects can lead to the same memory, and an object can lead to a
 * circular list. So the following rules prevent one object from taking all steps:
 *   - An object may take at most half of the steps that are left and not reserved.
 *   - A third of all steps is reserved for objects that take few steps. Each object, even a large one, may take up to
 *     `few` of the reserved steps.
 *   - Each object may take STEPS_ALWAYS steps, even if no steps are left.
 *
 * So if a few objects are hostile, rbdump can miss only references of large objects. Even if many objects are hostile,
 * rbdump does not miss references of small objects. The objects of a real heap never reach the limit: if all objects
 * together need N steps, and other objects have already taken T steps, the next object needs at most N - T steps. The
 * first rule always allows this number.
 */
#ifndef RBDUMP_STEPS_H
#define RBDUMP_STEPS_H

#include <stdint.h>

/* A small number: not much larger than the number of words in a slot. */
#define STEPS_ALWAYS 16u

struct steps {
	uint64_t left, reserved, few;
};

/*
 *   needed  a number that is larger than the number of steps that all objects need together
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

/* Notes that an object has taken `taken` steps. This number must not be larger than the result of steps_for_one(). */
static inline void steps_take(struct steps *steps, uint64_t taken)
{
	steps->left -= taken < steps->left ? taken : steps->left;
}

#endif
