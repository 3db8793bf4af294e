/* Intervals against closed forms and R's binom.test(); quantiles against sorted values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "experiment/statistics.h"

static void assert_near(double value, double expected, double relative)
{
	if (fabs(value - expected) > relative * fabs(expected))
		fail_msg("%.12g is not %.12g", value, expected);
}

static void test_intervals(void **state)
{
	/* binom.test(1, 10) and (5, 10) of R 4. */
	static const struct {
		uint64_t count, of;
		double low, high;
	} known[] = {
	    {1, 10, 0.002528579, 0.445016117},
	    {5, 10, 0.187086028, 0.812913972},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct interval interval = interval_of_share(known[i].count, known[i].of);

		assert_near(interval.low, known[i].low, 1e-6);
		assert_near(interval.high, known[i].high, 1e-6);
	}
}

static void test_intervals_at_the_ends(void **state)
{
	static const uint64_t sizes[] = {1, 2, 10, 15000, 1000000, 1000000000};

	(void)state;
	/* None of n: (1 - share)^n is 2.5 % at the upper end. All of n: the mirror image. */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double end = -expm1(log(0.025) / (double)sizes[i]);
		struct interval none = interval_of_share(0, sizes[i]), all = interval_of_share(sizes[i], sizes[i]);

		assert_true(none.low == 0 && all.high == 1);
		assert_near(none.high, end, 1e-6);
		assert_near(all.low, 1 - end, 1e-6);
	}
	assert_true(interval_of_share(0, 0).low == 0 && interval_of_share(0, 0).high == 1);
	assert_true(interval_of_share(2, 1).low == 0 && interval_of_share(2, 1).high == 1);
}

/* Of k of n, so many or more are 2.5 % likely at the lower end, so many or fewer at the upper. */
static double tail(uint64_t from, uint64_t to, uint64_t of, double share)
{
	double sum = 0;

	for (uint64_t k = from; k <= to; k++)
		sum += exp(lgamma((double)of + 1) - lgamma((double)k + 1) - lgamma((double)(of - k) + 1) +
			   (double)k * log(share) + (double)(of - k) * log1p(-share));
	return sum;
}

static void test_intervals_by_their_meaning(void **state)
{
	(void)state;
	for (uint64_t of = 3; of <= 400; of += 37) {
		for (uint64_t count = 1; count < of; count += 5) {
			struct interval interval = interval_of_share(count, of);

			assert_near(tail(count, of, of, interval.low), 0.025, 1e-6);
			assert_near(tail(0, count, of, interval.high), 0.025, 1e-6);
		}
	}
}

static void test_distribution(void **state)
{
	struct distribution *distribution = distribution_create();

	(void)state;
	assert_non_null(distribution);
	assert_true(distribution_quantile(distribution, 0.5) == 0);
	for (int i = 1; i <= 10000; i++)
		distribution_add(distribution, i * 0.37);
	assert_int_equal(distribution_count(distribution), 10000);
	assert_near(distribution_quantile(distribution, 0.5), 5000 * 0.37, 0.01);
	assert_near(distribution_quantile(distribution, 0.99), 9900 * 0.37, 0.01);
	assert_near(distribution_quantile(distribution, 0), 0.37, 0.01);
	assert_true(distribution_max(distribution) == 3700);
	assert_true(distribution_quantile(distribution, 1) <= 3700);
	assert_near(distribution_quantile(distribution, 1), 3700, 0.01);
	/* What lies beyond either end is counted there. */
	distribution_add(distribution, 0);
	distribution_add(distribution, -5);
	distribution_add(distribution, 1e300);
	assert_int_equal(distribution_count(distribution), 10003);
	assert_true(distribution_max(distribution) == 1e300);
	distribution_destroy(distribution);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_intervals),
	    cmocka_unit_test(test_intervals_at_the_ends),
	    cmocka_unit_test(test_intervals_by_their_meaning),
	    cmocka_unit_test(test_distribution),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
