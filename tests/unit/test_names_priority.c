/* The priority of the thread that finds names: only within a budget, and never instead of what the user has chosen. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/priority.h"
#include "sampling/names_priority.h"

static void work(long ns)
{
	struct timespec began;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
	while (elapsed_by_ns(CLOCK_THREAD_CPUTIME_ID, &began) < ns)
		;
}

static int priority_now(void)
{
	struct sched_param param;

	assert_int_equal(sched_getparam(0, &param), 0);
	return param.sched_priority;
}

static bool is_permitted(void)
{
	const bool permitted = priority_raise(PRIORITY_SAMPLES);

	if (permitted)
		priority_lower();
	return permitted;
}

static void test_budget(void **state)
{
	struct names_priority priority = {0};

	(void)state;
	names_priority_keep(&priority, 0.05);
	if (!is_permitted() && priority_now() == 0) {
		assert_true(priority.refused);
		return;
	}
	assert_int_equal(sched_getscheduler(0), SCHED_FIFO);
	assert_int_equal(priority_now(), PRIORITY_NAMES);
	/* A budget of 10 ms, and a twentieth of the time that passes. */
	work(60000000);
	names_priority_keep(&priority, 0.05);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	/* Two seconds later, there is some of it left again. */
	priority.limit.at.tv_sec -= 2;
	names_priority_keep(&priority, 0.05);
	assert_int_equal(priority_now(), PRIORITY_NAMES);
	names_priority_end(&priority);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static void test_what_the_user_has_chosen(void **state)
{
	struct names_priority priority = {0};

	(void)state;
	if (!is_permitted())
		return;
	assert_int_equal(sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 7}), 0);
	assert_false(priority_raise(PRIORITY_GUARD));
	assert_true(priority_is_real_time());
	names_priority_keep(&priority, 0.05);
	work(30000000);
	names_priority_keep(&priority, 0.05);
	names_priority_end(&priority);
	assert_int_equal(sched_getscheduler(0), SCHED_RR);
	assert_int_equal(priority_now(), 7);
	priority_lower();
	assert_false(priority_is_real_time());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_budget),
	    cmocka_unit_test(test_what_the_user_has_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
