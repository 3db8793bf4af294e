/*
 * A flat profile: what time was spent in each function, and in what it called; and at each line.
 */
#ifndef RBDUMP_FLAT_H
#define RBDUMP_FLAT_H

#include "recording/profile.h"

struct flat_row {
	uint32_t function;
	int64_t line;	/* by line; else 0 */
	uint64_t self;	/* ns */
	uint64_t total; /* of every stack that it is on, once; by line: not known, 0 */
};

struct flat {
	struct flat_row *rows; /* by self time, then total time: the most first; none without any */
	size_t count;
};

/* False if out of memory. To be given to flat_clear(). */
bool flat_by_function(const struct profile *profile, struct flat *ret);
bool flat_by_line(const struct profile *profile, struct flat *ret);
void flat_clear(struct flat *flat);

#endif
