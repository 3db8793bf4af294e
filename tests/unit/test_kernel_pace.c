/* When stacks that the kernel copies wake rbdump, and how long it waits if they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampling/kernel_pace.h"

#define RING UINT64_C(8388608)
#define MS   UINT64_C(1000000)

static void test_new_stacks_wake(void **state)
{
	struct kernel_pace pace;

	(void)state;
	kernel_pace_init(&pace, 99, RING, 0);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_ALL);
	assert_int_equal(kernel_pace_wakes(&pace, 100 * MS), KERNEL_WAKES_NONE);
	kernel_pace_new_stack(&pace, 500 * MS);
	assert_int_equal(kernel_pace_wakes(&pace, 599 * MS), KERNEL_WAKES_ALL);
	assert_int_equal(kernel_pace_wakes(&pace, 600 * MS), KERNEL_WAKES_NONE);
}

static void test_new_stacks_without_collections(void **state)
{
	struct kernel_pace pace;

	(void)state;
	kernel_pace_init(&pace, 99, RING, 0);
	kernel_pace_collections(&pace, 7, 1000 * MS);
	kernel_pace_new_stack(&pace, 5900 * MS);
	assert_int_equal(kernel_pace_wakes(&pace, 5900 * MS), KERNEL_WAKES_ALL);
	kernel_pace_collections(&pace, 7, 6500 * MS);
	kernel_pace_collections(&pace, 0, 6500 * MS);
	kernel_pace_new_stack(&pace, 6500 * MS);
	assert_int_equal(kernel_pace_wakes(&pace, 6500 * MS), KERNEL_WAKES_NONE);
	kernel_pace_collections(&pace, 8, 6600 * MS);
	kernel_pace_new_stack(&pace, 6600 * MS);
	assert_int_equal(kernel_pace_wakes(&pace, 6600 * MS), KERNEL_WAKES_ALL);
}

static void test_high_rates_do_not_wake(void **state)
{
	struct kernel_pace pace;

	(void)state;
	kernel_pace_init(&pace, 10000, RING, 0);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_NONE);
	kernel_pace_new_stack(&pace, 1);
	assert_int_equal(kernel_pace_wakes(&pace, 2), KERNEL_WAKES_NONE);
	/* Unless names come too late. */
	kernel_pace_ask(&pace, 2);
	assert_int_equal(kernel_pace_wakes(&pace, 9000 * MS), KERNEL_WAKES_ALL);
	assert_int_equal(kernel_pace_wakes(&pace, 10001 * MS), KERNEL_WAKES_NONE);
}

static void test_waits_fit_the_ring(void **state)
{
	struct kernel_pace pace;
	int first;

	(void)state;
	kernel_pace_init(&pace, 1000, RING, 0);
	first = kernel_pace_wait_ms(&pace, KERNEL_WAKES_NONE, 0, 0);
	assert_int_equal(first, 2);
	for (int i = 0; i < 20; i++)
		kernel_pace_found(&pace, 1000);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_NONE, 0, 0), 20);
	/* As many as in twenty milliseconds at this rate: it stays. */
	kernel_pace_found(&pace, RING / 10);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_NONE, 0, 0), 20);
	kernel_pace_found(&pace, RING / 4);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_NONE, 0, 0), first);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_ALL, 0, 0), 400);
	/* Not longer than until a time. */
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_ALL, 5000000, 17500000), 13);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_ALL, 5000000, 4000000), 1);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_ALL, 5000000, 5000000000), 400);
}

static void test_few_stacks_wake(void **state)
{
	struct kernel_pace pace;

	(void)state;
	kernel_pace_init(&pace, 10000, RING, 0);
	kernel_pace_flushed(&pace, 300, 19, 199, 0.2);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_CLOCK);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_CLOCK, 0, 0), 800);
	kernel_pace_flushed(&pace, 300, 21, 0, 0.2);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_NONE);
	kernel_pace_flushed(&pace, 300, 0, 201, 0.2);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_NONE);
	/* Or too large ones: 0.8 s of that must not fill more than an eighth of the ring. */
	kernel_pace_found(&pace, RING / 40);
	kernel_pace_flushed(&pace, 300, 19, 199, 0.2);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_CLOCK);
	kernel_pace_found(&pace, RING / 40);
	kernel_pace_found(&pace, RING / 100);
	kernel_pace_flushed(&pace, 300, 19, 199, 0.2);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_NONE);
	/* A target that does not run is left alone. */
	kernel_pace_flushed(&pace, 0, 0, 0, 0.2);
	assert_int_equal(kernel_pace_wakes(&pace, 1), KERNEL_WAKES_CLOCK);
	assert_int_equal(kernel_pace_wait_ms(&pace, KERNEL_WAKES_CLOCK, 0, 0), 1000);
}

static void test_flushes_keep_step_with_nothing(void **state)
{
	const uint64_t step_ns = 150 * MS;
	int in_quarter[4] = {0};
	uint64_t random = 1, now_ns = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		const uint64_t next_ns = kernel_pace_next_flush(now_ns, &random);

		assert_in_range(next_ns - now_ns, 100 * MS, 200 * MS);
		now_ns = next_ns;
		in_quarter[now_ns % step_ns * 4 / step_ns]++;
	}
	/* 250 each, or five standard deviations more or less. */
	for (int i = 0; i < 4; i++)
		assert_in_range(in_quarter[i], 181, 319);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_new_stacks_wake),	   cmocka_unit_test(test_new_stacks_without_collections),
	    cmocka_unit_test(test_high_rates_do_not_wake), cmocka_unit_test(test_waits_fit_the_ring),
	    cmocka_unit_test(test_few_stacks_wake),	   cmocka_unit_test(test_flushes_keep_step_with_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
