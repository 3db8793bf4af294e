/*
 * Shares with their intervals, and distributions in little room.
 */
#ifndef RBDUMP_STATISTICS_H
#define RBDUMP_STATISTICS_H

#include <stdint.h>

struct interval {
	double low, high;
};

/*
 * The 95 % interval of a share of which `count` in `of` were seen: Clopper and Pearson's, which is exact: it covers the
 * true share in at least 95 of 100 experiments, also where the count is 0, or very small (Wilson's may fall short of
 * that there, and these are the counts that matter here). None seen in n gives [0, 3.7 / n]. [0, 1] if `of` is 0.
 */
struct interval interval_of_share(uint64_t count, uint64_t of);

/*
 * How values above 0 are distributed, from 0.001 to 10^10, in buckets that are 1 % wide: a quantile is off by 1 % at
 * most. The greatest value is kept as it is.
 */
struct distribution;

struct distribution *distribution_create(void);		      /* NULL if out of memory */
void distribution_destroy(struct distribution *distribution); /* NULL is fine */
void distribution_add(struct distribution *distribution, double value);
uint64_t distribution_count(const struct distribution *distribution);
double distribution_max(const struct distribution *distribution);

/* The value below which that share (0 to 1) of all values lies; 0 if there is none. */
double distribution_quantile(const struct distribution *distribution, double share);

#endif
