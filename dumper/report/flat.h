/*
 * A flat profile: how much time each function or each line took. For a function, two times are computed. `self` is the
 * time of the function alone. `total` is the time of the function together with the functions that it called.
 */
#ifndef RBDUMP_FLAT_H
#define RBDUMP_FLAT_H

#include "recording/profile.h"

struct flat_row {
	uint32_t function;
	int64_t line;  /* the line if the row is from flat_by_line(); 0 if the row is from flat_by_function() */
	uint64_t self; /* ns */
	/* The time of all stacks that contain the function, in ns. A stack that contains the function several times is
	   counted only once. In a row from flat_by_line(), `total` is 0. */
	uint64_t total;
};

struct flat {
	struct flat_row *rows; /* sorted by `self`, then by `total`, the highest first; rows without time are omitted */
	size_t count;
};

/*
 * flat_by_function() and flat_by_line() return false if there is not enough memory. To free `ret`, call flat_clear().
 */
bool flat_by_function(const struct profile *profile, struct flat *ret);
bool flat_by_line(const struct profile *profile, struct flat *ret);
void flat_clear(struct flat *flat);

#endif
