/*
 * A set of slots, with one bit for each slot of the heap.
 */
#ifndef RBDUMP_SLOT_SET_H
#define RBDUMP_SLOT_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* To free the set, call free() for `bits`. */
struct slot_set {
	uint8_t *bits; /* the index of a bit is the number of its slot */
};

/*
 * Makes an empty set.
 *   count  the greatest slot number (slots_count())
 * Returns false if there is not enough memory.
 */
static inline bool slot_set_create(struct slot_set *set, uint32_t count)
{
	set->bits = calloc(count / 8 + 1, 1);
	return set->bits != NULL;
}

/* Adds a slot. */
static inline void slot_set_add(struct slot_set *set, uint32_t number)
{
	set->bits[number / 8] |= (uint8_t)(1u << number % 8);
}

/* Returns whether the set contains a slot. */
static inline bool slot_set_has(const struct slot_set *set, uint32_t number)
{
	return set->bits[number / 8] & 1u << number % 8;
}

#endif
