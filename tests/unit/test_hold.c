/* The sleep of the guard: it ends when a hold begins, whether that comes before or after the guard has fallen asleep. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "target/hold.h"
#include "target/process_stat.h"

#define LONG_NS 60000000000L

static struct hold hold;
static hold_sleep guard_sleep;

static _Atomic pid_t waiter;

static void *wait_for_hold(void *unused)
{
	(void)unused;
	waiter = gettid();
	hold_wait(&guard_sleep, LONG_NS);
	return NULL;
}

/* Whether the thread that waits sleeps by now. */
static bool sleeps(void)
{
	struct process_stat stat;

	return waiter != 0 && process_stat_read("/proc/self/task", waiter, &stat) && stat.state == 'S';
}

static void check_ends(struct timespec *began)
{
	assert_int_equal(guard_sleep, 0);
	assert_true(elapsed_ns(began) < LONG_NS / 2);
}

static void test_hold_ends_the_sleep(void **state)
{
	struct timespec began;
	pthread_t guard;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &began);
	hold_use(&hold, &guard_sleep);
	for (int i = 0; i < 100; i++) {
		guard_sleep = 1;
		waiter = 0;
		assert_int_equal(pthread_create(&guard, NULL, wait_for_hold, NULL), 0);
		/* By turns before it sleeps, probably, and when it does. */
		while (i % 2 && !sleeps())
			sched_yield();
		hold_begin(1);
		assert_int_equal(pthread_join(guard, NULL), 0);
		hold_end();
		check_ends(&began);
	}
	assert_int_equal(hold.begun, 100);
	hold_use(NULL, NULL);
}

static void test_sleep_ends_by_itself(void **state)
{
	struct timespec began;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &began);
	guard_sleep = 1;
	hold_wait(&guard_sleep, 1000000);
	check_ends(&began);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hold_ends_the_sleep),
	    cmocka_unit_test(test_sleep_ends_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
