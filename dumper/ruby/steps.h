/*
 * A limit for the work that a hostile target can cause, and for the memory that the result takes: how many words and entries
 * of tables are looked at. All objects of a heap, or of one page of it, share the steps. A hostile target can have objects
 * that lead to the same memory, or around in a circle, so one object must not take all of them:
 *   - An object may take at most half of those that are left and not reserved.
 *   - A third of all steps is reserved for objects that take few. A large object may take as few, too.
 *   - Each object may take STEPS_ALWAYS, also if none are left.
 *
 * So a few hostile objects hide references of other large objects only, and many hostile objects hide none of small ones. The
 * objects of a real heap are never limited: what one of them needs is at most what all need together, minus what the others
 * have taken.
 */
#ifndef RBDUMP_STEPS_H
#define RBDUMP_STEPS_H

#include <stdint.h>

/* Not many more than a slot has words. */
#define STEPS_ALWAYS 16u

struct steps {
	uint64_t left, reserved, few;
};

/*
 *   needed  more than all objects need together
 *   few     how many objects may take of those that are reserved
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

/* An object has taken steps: no more than it may. */
static inline void steps_take(struct steps *steps, uint64_t taken)
{
	steps->left -= taken < steps->left ? taken : steps->left;
}

#endif
