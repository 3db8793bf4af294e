/*
 * A limit for the work that a hostile target can cause: how many words and entries of tables are looked at. All objects of a
 * heap, or of one page of it, share the steps. One object may take at most half of those that are left, so a few hostile
 * objects cannot take them all. And each object may take a few steps in any case, so that the many small objects are looked
 * at whatever the others have taken.
 *
 * The objects of a real heap never take more than half of what is left, if there are at first twice as many steps as they
 * need together: what one object needs is at most what all objects need, minus what the others have taken.
 */
#ifndef RBDUMP_STEPS_H
#define RBDUMP_STEPS_H

#include <stdint.h>

struct steps {
	uint64_t left;	/* for all objects together */
	uint64_t least; /* each object may take so many, also if fewer are left */
};

/* How many steps the next object may take. */
static inline uint64_t steps_for_one(const struct steps *steps)
{
	return steps->left / 2 > steps->least ? steps->left / 2 : steps->least;
}

/* An object has taken steps: no more than it may. */
static inline void steps_take(struct steps *steps, uint64_t taken)
{
	steps->left -= taken < steps->left ? taken : steps->left;
}

#endif
