/* How long a process would be stopped: a wait for a CPU does not count, if rbdump will not wait for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/priority.h"
#include "heap/pause.h"

#define WAIT_NS 100000000L
#define WORK_NS 50000000L

static void work(void)
{
	struct timespec begin;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	while (elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &begin) < WORK_NS)
		;
}

static void test_waiting(void **state)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	const bool hurries = priority_raise(PRIORITY_SAMPLES);
	struct pause_estimate estimate;
	double ms;

	(void)state;
	if (hurries)
		priority_lower();
	pause_estimate_begin(&estimate);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
	work();
	ms = pause_estimate_end(&estimate);
	assert_true(ms >= (double)WORK_NS / 1e6);
	assert_int_equal(ms < (double)(WAIT_NS + WORK_NS) / 1e6, hurries);
	/* The priority was only tried. */
	assert_false(priority_is_real_time());
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_waiting)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
