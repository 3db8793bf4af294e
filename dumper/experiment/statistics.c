#include "experiment/statistics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define ALPHA 0.05

/* ---- intervals */

/*
 * The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), evaluated by Lentz's method.
 */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	result = d;
	for (int m = 1; m <= 10000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		result *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		result *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return result;
}

/* The regularized incomplete beta function. */
static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	/* The fraction converges fast on one side of the mean only. */
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The share below which the beta distribution has `probability`. */
static double beta_quantile(double a, double b, double probability)
{
	double low = 0, high = 1;

	for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
		double middle = (low + high) / 2;

		if (incomplete_beta(a, b, middle) < probability)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

struct interval interval_of_share(uint64_t count, uint64_t of)
{
	double k = (double)count, n = (double)of;
	struct interval interval = {0, 1};

	if (of == 0 || count > of)
		return interval;
	if (count > 0)
		interval.low = beta_quantile(k, n - k + 1, ALPHA / 2);
	if (count < of)
		interval.high = beta_quantile(k + 1, n - k, 1 - ALPHA / 2);
	return interval;
}

/* ---- distributions */

#define LOWEST	1e-3
#define HIGHEST 1e10
#define WIDTH	1.01
#define BUCKETS 3010 /* log(HIGHEST / LOWEST) / log(WIDTH), and one for what lies beyond */

struct distribution {
	uint64_t count;
	double max;
	uint64_t buckets[BUCKETS];
};

struct distribution *distribution_create(void)
{
	return calloc(1, sizeof(struct distribution));
}

void distribution_destroy(struct distribution *distribution)
{
	free(distribution);
}

void distribution_add(struct distribution *distribution, double value)
{
	double index = value > LOWEST ? log(value / LOWEST) / log(WIDTH) : 0;

	distribution->buckets[index < BUCKETS - 1 ? (size_t)index : BUCKETS - 1]++;
	distribution->count++;
	if (value > distribution->max)
		distribution->max = value;
}

uint64_t distribution_count(const struct distribution *distribution)
{
	return distribution->count;
}

double distribution_max(const struct distribution *distribution)
{
	return distribution->max;
}

double distribution_quantile(const struct distribution *distribution, double share)
{
	uint64_t wanted = (uint64_t)ceil(share * (double)distribution->count), seen = 0;
	double value;

	if (distribution->count == 0)
		return 0;
	if (wanted < 1)
		wanted = 1;
	for (size_t i = 0; i < BUCKETS; i++) {
		seen += distribution->buckets[i];
		if (seen < wanted)
			continue;
		/* The middle of the bucket, but at most the greatest value. */
		value = LOWEST * pow(WIDTH, (double)i + 0.5);
		return value < distribution->max ? value : distribution->max;
	}
	return distribution->max;
}
