/*
 * Stacks that were shown to be right, by their fingerprints: seen again, one needs neither a check nor names.
 *
 * A stack is right for as long as the objects that it leads to are what they were (collections_same_objects()): with
 * the next collection of garbage a new epoch begins, in which none is. So neither what was freed nor what was moved can
 * be taken for what came to its place. What a program changes in place (a class gets its name) is not seen: so now and
 * then another epoch is to be begun (known_doubt()). What is left of an older epoch is that a stack of these words was
 * there: it is familiar, and may lead to something else by now.
 *
 * All functions but known_settle() and known_reject() belong to the thread that takes samples.
 */
#ifndef RBDUMP_KNOWN_H
#define RBDUMP_KNOWN_H

#include "sample/fingerprint.h"
#include "vm/collections.h"

struct known;

/* A stack, and when it was seen; `id` is below KNOWN_MAX, and is used again for another one, of a later epoch. */
struct known_stack {
	uint64_t epoch;
	uint32_t id;
};

#define KNOWN_MAX 4096u

/* What has no place among them. */
#define KNOWN_NONE ((struct known_stack){.id = UINT32_MAX})

enum known_as {
	KNOWN_AS_UNTOLD,   /* nothing can be said where the collector is now */
	KNOWN_AS_NEW,	   /* it is not there, or was not shown to be right yet */
	KNOWN_AS_FAMILIAR, /* it was right in an epoch before: it is to be checked, and named, anew */
	KNOWN_AS_RIGHT
};

struct known *known_create(void);	 /* NULL if out of memory */
void known_destroy(struct known *known); /* NULL is fine */

/*
 * Looks a stack up.
 *   now     how far the collector was when it was copied
 *   enters  whether it is entered if it is not there, where that can be
 *   ret     which one it is; KNOWN_NONE if it is not there
 */
enum known_as known_find(struct known *known, const struct collections *now, const struct fingerprint *fingerprint,
			 bool enters, struct known_stack *ret);

/* From now on, none is right: all are familiar. */
void known_doubt(struct known *known);

/* How often there was no room for more, and all began anew: what is new since then may not be so to the program. */
uint64_t known_times_full(const struct known *known);

/* Says that a stack is right, in the epoch in which it was seen. May be called by any thread. */
void known_settle(struct known *known, struct known_stack stack);

/* Says that a stack is not what it was when it was right: it is new. May be called by any thread. */
void known_reject(struct known *known, struct known_stack stack);

#endif
