/*
 * Stacks that were shown to be right, by their fingerprints: seen again, one needs neither a check nor names.
 *
 * A stack is known for as long as the objects that it leads to are what they were (collections_same_objects()): with
 * the next collection of garbage all are forgotten. So neither what was freed nor what was moved can be taken for what
 * came to its place. What a program changes in place (a class gets its name) is not seen: so now and then all are to be
 * forgotten (known_forget()).
 *
 * All functions but known_settle() belong to the thread that takes samples.
 */
#ifndef RBDUMP_KNOWN_H
#define RBDUMP_KNOWN_H

#include "sample/fingerprint.h"
#include "vm/collections.h"

struct known;

/* A stack; `id` is below KNOWN_MAX, and is used again for another one, of a later epoch. */
struct known_stack {
	uint32_t id, epoch;
};

#define KNOWN_MAX 4096u

/* What has no place among them. */
#define KNOWN_NONE ((struct known_stack){.id = UINT32_MAX})

struct known *known_create(void);	 /* NULL if out of memory */
void known_destroy(struct known *known); /* NULL is fine */

/*
 * Looks a stack up, and enters it if it is new.
 *   now  how far the collector was when it was copied
 *   ret  which one it is; KNOWN_NONE if it cannot be entered
 * Returns whether it is known to be right.
 */
bool known_find(struct known *known, const struct collections *now, const struct fingerprint *fingerprint,
		struct known_stack *ret);

/* The same, of the stacks that are there alone: one that is new is KNOWN_NONE. */
bool known_recognize(struct known *known, const struct collections *now, const struct fingerprint *fingerprint,
		     struct known_stack *ret);

/* Forgets all. */
void known_forget(struct known *known);

/* Says that a stack is right. May be called by any thread. */
void known_settle(struct known *known, struct known_stack stack);

#endif
