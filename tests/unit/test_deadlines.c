/* When it is time for a sample, and which are late or missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sampling/deadlines.h"

#define US 1000LL
#define MS 1000000LL
#define S  1000000000LL

/* A moment, and one that is so long after it. */
static const struct timespec AT = {.tv_sec = 7, .tv_nsec = 999999999};

static void assert_due(long long turn_ns, long long due_ns)
{
	const struct timespec turn = plus_ns(AT, turn_ns + S), now = plus_ns(AT, S), due = deadline_next(&turn, &now);

	assert_int_equal(ns_between(&now, &due), due_ns);
}

/* At its turn, but the target is left alone for a moment. */
static void test_due(void **state)
{
	(void)state;
	assert_due(S - 1, S - 1);
	assert_due(30 * US, 30 * US);
	assert_due(30 * US - 1, 30 * US);
	assert_due(0, 30 * US);
	assert_due(-1 * MS, 30 * US);
}

/* A tenth of a period, and 100 us at least. */
static void test_late(void **state)
{
	(void)state;
	assert_false(deadline_is_late(0, MS));
	assert_false(deadline_is_late(100 * MS, S));
	assert_true(deadline_is_late(100 * MS + 1, S));
	for (long long period = 50 * US; period <= MS; period *= 2) {
		assert_false(deadline_is_late(100 * US, period));
		assert_true(deadline_is_late(100 * US + 1, period));
	}
}

static void assert_missed(long long behind_ns, long long period_ns, uint32_t missed, long long left_ns)
{
	const struct timespec now = plus_ns(AT, behind_ns);
	struct timespec turn = AT;

	assert_int_equal(deadlines_missed(&turn, &now, period_ns), missed);
	assert_int_equal(ns_between(&turn, &now), left_ns);
}

/* The turns stay where they were: none is made up for. */
static void test_missed(void **state)
{
	(void)state;
	assert_missed(0, MS, 0, 0);
	assert_missed(MS - 1, MS, 0, MS - 1);
	assert_missed(MS, MS, 1, 0);
	assert_missed(10 * MS + 3, MS, 10, 3);
	assert_missed(S, 100 * S, 0, S);
	assert_missed((UINT32_MAX / 8 + 1LL) * US, US, UINT32_MAX / 8, 0);
	/* A machine that slept for a year. */
	assert_missed(365 * 86400 * S, 50 * US, UINT32_MAX / 8, 0);
}

/* What a wait is asked by, and how often it was. */
struct asked {
	unsigned int times, ends_at;
	struct timespec now;
};

static bool ends(void *context, const struct timespec *now)
{
	struct asked *asked = context;

	asked->now = *now;
	return ++asked->times == asked->ends_at;
}

static struct timespec from_now(long long ns)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return plus_ns(now, ns);
}

static void test_wait(void **state)
{
	struct timespec due = from_now(2 * DEADLINE_SLICE_NS + MS), past = from_now(0);
	struct asked asked = {0}, ended = {.ends_at = 2};

	(void)state;
	assert_true(deadline_wait(&due, ends, &asked));
	assert_true(ns_between(&due, &asked.now) >= 0);
	/* At the beginning, after each slice, and when it is time; on a machine that sleeps too long, less often. */
	assert_in_range(asked.times, 2, 4);
	asked.times = 0;
	assert_true(deadline_wait(&past, ends, &asked));
	assert_int_equal(asked.times, 1);
	/* An end is not slept through. */
	due = from_now(1000 * S);
	assert_false(deadline_wait(&due, ends, &ended));
	assert_int_equal(ended.times, 2);
}

/* In the long run, a deadline is in each part of its period equally often, and never far from the one before. */
static void test_vary(void **state)
{
	static const long long periods[] = {1, 3, 100 * US, MS, 10101010, S};
	uint64_t random = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		const long long period = periods[i];
		unsigned int tenths[10] = {0};
		long long offset = 0;

		for (int round = 0; round < 100000; round++) {
			long long next = deadline_vary(offset, period, &random);

			assert_true(next >= 0 && next < period);
			assert_true(llabs(next - offset) <= period / 4);
			offset = next;
			tenths[10 * offset / period]++;
		}
		for (size_t j = 0; j < 10 && period > 1000; j++)
			assert_in_range(tenths[j], 9000, 11000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_due),	 cmocka_unit_test(test_late), cmocka_unit_test(test_missed),
	    cmocka_unit_test(test_wait), cmocka_unit_test(test_vary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
