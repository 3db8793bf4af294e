/*
 * Counts objects by class and type.
 *
 * Objects of one class and one type are one group. The number of groups is limited, because the memory of a hostile
 * target can name a new class in every object. The objects beyond the limit are in one group of their own.
 */
#ifndef RBDUMP_CENSUS_H
#define RBDUMP_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not the number of a group: the slot is free. */
#define CENSUS_FREE 0u
/* The group of all objects beyond the limit. */
#define CENSUS_OTHERS 1u
/* The maximum number of groups. The number of a group fits into 16 bits. */
#define CENSUS_GROUPS 65535u

struct census_kind {
	uint64_t klass;	    /* RBasic.klass; 0 for internal types, whose klass is no class */
	uint64_t data_type; /* for a T_DATA without a class: the address of its rb_data_type_t; otherwise 0 */
	uint8_t type;	    /* RUBY_T_ */
	uint8_t imemo;	    /* for a T_IMEMO: enum imemo_type */
	bool dead;	    /* the last collection has not marked the object, and has not swept its slot yet */
	bool old;	    /* the object is of the old generation */
};

struct census_group {
	struct census_kind kind;
	uint64_t objects, slot_bytes;
	uint64_t shady, pinned;
	/*
	 * If the heap was read twice: the objects at the first reading, and those of them that were still there at the
	 * second.
	 */
	uint64_t before, stayed;
	uint64_t owned_bytes; /* outside the heap; at most SUM_MAX (heap/sums.h) */
	uint64_t inexact;     /* how many objects may own more bytes than are known */
};

struct census;

/* Creates an empty census. Returns NULL if there is not enough memory. */
struct census *census_create(void);
void census_destroy(struct census *census); /* NULL is fine */

/* Returns the number of the group of a kind. Makes the group if it is new. */
uint16_t census_find(struct census *census, const struct census_kind *kind);

/* The groups by their numbers. The pointer is valid until the next call of census_find(). */
struct census_group *census_groups(const struct census *census);

/* The group with a number. The pointer is valid until the next call of census_find(). */
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
