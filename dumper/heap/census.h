/*
 * Counts objects by class and type.
 *
 * Objects of the same kind (struct census_kind) are one group: they have the same class, type and age, and they are all
 * live or all dead. The number of groups is limited, because in a hostile target, every object can have a class of its own.
 * If there are more kinds than groups, all objects of the remaining kinds are in one group.
 */
#ifndef RBDUMP_CENSUS_H
#define RBDUMP_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stands for a free slot. No group has this number. */
#define CENSUS_FREE 0u
/* The group of all objects whose kinds have no group of their own. */
#define CENSUS_OTHERS 1u
/* There are at most this many groups, so the number of each group fits into 16 bits. */
#define CENSUS_GROUPS 65535u

struct census_kind {
	uint64_t klass;	    /* RBasic.klass; 0 for internal types, whose klass is not a class */
	uint64_t data_type; /* for a T_DATA without a class: the address of its rb_data_type_t; otherwise 0 */
	uint8_t type;	    /* RUBY_T_ */
	uint8_t imemo;	    /* for a T_IMEMO: enum imemo_type */
	bool dead;	    /* the last collection left the object unmarked, but has not swept its slot yet */
	bool old;	    /* the object belongs to the old generation */
};

struct census_group {
	struct census_kind kind;
	uint64_t objects, slot_bytes;
	uint64_t shady, pinned;
	/*
	 * If the heap was read twice: how many objects there were at the first reading, and how many of these objects
	 * were still there at the second reading.
	 */
	uint64_t before, stayed;
	uint64_t owned_bytes; /* the bytes that the objects own outside the heap; at most SUM_MAX (heap/sums.h) */
	uint64_t inexact;     /* how many of the objects may own more bytes than rbdump has found */
};

struct census;

/* Creates an empty census. Returns NULL if there is not enough memory. */
struct census *census_create(void);
void census_destroy(struct census *census); /* NULL is fine */

/* Returns the number of the group of a kind. Makes the group if it does not exist yet. */
uint16_t census_find(struct census *census, const struct census_kind *kind);

/* Returns all groups: the index of a group is its number. The pointer is valid until the next call of census_find(). */
struct census_group *census_groups(const struct census *census);

/* Returns the group with the number `number`. The pointer is valid until the next call of census_find(). */
struct census_group *census_group(const struct census *census, uint16_t number);

/* The groups have the numbers from CENSUS_OTHERS to the returned number minus 1. */
size_t census_end(const struct census *census);

/*
 * Sets all counts to 0, except `owned_bytes` and `inexact`, and sets `before` to the previous value of `objects`. The
 * groups keep their numbers.
 */
void census_reset_counts(struct census *census);

/* Sets `owned_bytes` and `inexact` of all groups to 0. */
void census_reset_sizes(struct census *census);

#endif
