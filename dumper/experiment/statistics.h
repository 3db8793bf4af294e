/*
 * Confidence intervals of shares, and distributions that take little memory.
 */
#ifndef RBDUMP_STATISTICS_H
#define RBDUMP_STATISTICS_H

#include <stdint.h>

struct interval {
	double low, high;
};

/*
 * The 95 % confidence interval for the true share, if the observed share is `count` / `of`. This is the exact interval
 * of Clopper and Pearson. Even if `count` is 0 or very small, the interval contains the true share in at least 95 of 100
 * experiments. This function does not compute Wilson's interval, because for some small counts, Wilson's interval
 * contains the true share in fewer than 95 of 100 experiments. If `count` is 0, the interval is about [0, 3.7 / `of`].
 * If `of` is 0, the interval is [0, 1].
 */
struct interval interval_of_share(uint64_t count, uint64_t of);

/*
 * A distribution of values from 0.001 to 10^10. The values are counted in buckets. The upper bound of each bucket is
 * 1 % above its lower bound, so the error of a quantile is at most 1 %. The maximum is exact.
 */
struct distribution;

struct distribution *distribution_create(void);		      /* NULL if there is not enough memory */
void distribution_destroy(struct distribution *distribution); /* NULL is fine */
void distribution_add(struct distribution *distribution, double value);
uint64_t distribution_count(const struct distribution *distribution);
double distribution_max(const struct distribution *distribution);

/*
 * Returns a quantile: the value below which the given share (0 to 1) of all values lies. Returns 0 if there are no
 * values.
 */
double distribution_quantile(const struct distribution *distribution, double share);

#endif
