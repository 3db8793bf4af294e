/*
 * Sums that do not wrap around. A hostile target can have many objects that each claim to own all of the target's
 * memory, and a file that a heap is compared with can contain any numbers. If a sum would be greater than SUM_MAX, the
 * result is SUM_MAX. So the difference of two sums fits into an int64_t.
 */
#ifndef RBDUMP_SUMS_H
#define RBDUMP_SUMS_H

#include <stdint.h>

#define SUM_MAX ((uint64_t)INT64_MAX)

static inline uint64_t sum(uint64_t a, uint64_t b)
{
	return a > SUM_MAX || b > SUM_MAX - a ? SUM_MAX : a + b;
}

static inline void sum_add(uint64_t *to, uint64_t more)
{
	*to = sum(*to, more);
}

#endif
