/* The limit of CPU time: what rounds of a known cost add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sampling/cpu_limit.h"

#define MS	1000000LL
#define SECOND_ (1000 * MS)

/* The share of the CPU that rounds of `cost_ns` took, which were due every `period_ns`, from `from_ns` to `to_ns`. */
static double share_taken(double share, long long period_ns, long long cost_ns, long long from_ns, long long to_ns)
{
	struct timespec now = {.tv_sec = 1000}, used = {.tv_nsec = 5};
	struct timespec begin = now, before = used;
	struct cpu_limit limit;
	long long pause;

	cpu_limit_begin(&limit, share, &now, &used);
	while (ns_between(&begin, &now) < to_ns) {
		if (ns_between(&begin, &now) < from_ns)
			before = used;
		now = plus_ns(now, cost_ns);
		used = plus_ns(used, cost_ns);
		pause = cpu_limit_pause(&limit, share, &now, &used);
		assert_true(pause >= 0);
		now = plus_ns(now, pause > period_ns - cost_ns ? pause : period_ns - cost_ns);
	}
	return (double)ns_between(&before, &used) / (double)(to_ns - from_ns);
}

static void test_never_more_than_the_share(void **state)
{
	static const double shares[] = {0.01, 0.1, 0.5};
	static const long long costs[] = {MS, 5 * MS, 9 * MS, 100 * MS, SECOND_};

	(void)state;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		for (size_t k = 0; k < sizeof(costs) / sizeof(costs[0]); k++) {
			double taken = share_taken(shares[i], 10 * MS, costs[k], 1000 * SECOND_, 10000 * SECOND_);
			double wanted = costs[k] >= 10 * MS ? 1 : (double)costs[k] / (double)(10 * MS);

			/* All that is allowed is used, too, to the cost of a round. */
			assert_true(taken < shares[i] + 0.002);
			assert_true(taken > (wanted < shares[i] ? wanted : shares[i]) - 0.002);
		}
	}
}

/* What comes first may cost more: it is saved up for, and no more than that. */
static void test_begin(void **state)
{
	(void)state;
	assert_true(share_taken(0.1, 10 * MS, 9 * MS, 0, SECOND_) > 0.3);
	assert_true(share_taken(0.1, 10 * MS, 9 * MS, 0, 10 * SECOND_) < 0.1 + 0.03 + 0.01);
}

/* After a long rest, a second's share is there, not that of the whole rest. */
static void test_what_is_saved(void **state)
{
	struct timespec now = {.tv_sec = 1000}, used = {0};
	struct cpu_limit limit;

	(void)state;
	cpu_limit_begin(&limit, 0.1, &now, &used);
	used = plus_ns(used, 300 * MS);
	assert_int_equal(cpu_limit_pause(&limit, 0.1, &now, &used) / MS, 0);
	now = plus_ns(now, 1000 * SECOND_);
	assert_int_equal(cpu_limit_pause(&limit, 0.1, &now, &used), 0);
	used = plus_ns(used, 150 * MS);
	/* 50 ms too much are what half a second gives. */
	assert_in_range(cpu_limit_pause(&limit, 0.1, &now, &used), 499 * MS, 501 * MS);
}

static void test_default(void **state)
{
	(void)state;
	assert_true(cpu_limit_for(1) == 10);
	assert_true(cpu_limit_for(99) == 10);
	assert_true(cpu_limit_for(198) == 20);
	assert_true(cpu_limit_for(10000) == 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_never_more_than_the_share),
	    cmocka_unit_test(test_begin),
	    cmocka_unit_test(test_what_is_saved),
	    cmocka_unit_test(test_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
