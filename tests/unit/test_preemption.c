/* Preemption: while it holds, the chosen thread does not run; afterwards all is as it was. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/priority.h"
#include "target/preemption.h"

/* A process that counts, or sleeps. */
static pid_t child;
static volatile uint64_t *counter;

static void start(bool counts)
{
	counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(counter, MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*counter = 1;
		while (counts)
			++*counter;
		for (;;)
			pause();
	}
	while (*counter == 0)
		sched_yield();
}

static int end(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return munmap((void *)(uintptr_t)counter, sizeof(*counter));
}

static void pass(long ns)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (elapsed_ns(&began) < ns)
		;
}

/* Where the kernel moves the child to another CPU, `held` has to tell. */
static void test_counter_stands_still(void **state)
{
	struct preemption preemption = {0};
	cpu_set_t before, after;
	int held = 0;
	bool raised;

	(void)state;
	start(true);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	raised = priority_raise(PRIORITY_SAMPLES);
	for (int i = 0; i < 50; i++) {
		uint64_t then, now;

		preemption_begin(&preemption, child);
		assert_int_equal(preemption.tid, child);
		then = *counter;
		pass(200000);
		now = *counter;
		preemption_end(&preemption);
		if (preemption.held) {
			assert_int_equal(now, then);
			held++;
		}
		pass(500000);
	}
	if (raised) {
		priority_lower();
		assert_true(held > 25);
	}
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

/* Nothing runs, so nothing has to be kept from running. */
static void test_asleep(void **state)
{
	struct preemption preemption = {0};
	struct task task;

	(void)state;
	start(false);
	task_open(&task, child, child);
	while (task_runs(&task))
		sched_yield();
	task_close(&task);
	preemption_begin(&preemption, child);
	assert_int_equal(preemption.tid, 0);
	preemption_end(&preemption);
	assert_true(preemption.held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_counter_stands_still, end),
	    cmocka_unit_test_teardown(test_asleep, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
