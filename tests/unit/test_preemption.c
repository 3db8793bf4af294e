/* Preemption: while it holds, no thread of the process runs; afterwards, all is as it was. */
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
#include "base/thread.h"
#include "target/preemption.h"

/* Each counter has a page of its own. */
#define THREADS_MAX 2
#define WORDS	    (4096 / sizeof(uint64_t))
#define TIMES	    50

/* A process of some threads that count, or of one that sleeps. */
static pid_t child;
static volatile uint64_t *counters;

static void *count(void *counter)
{
	for (volatile uint64_t *at = counter;; ++*at)
		;
	return NULL;
}

static void start(int threads)
{
	const struct sched_param none = {0};
	pthread_t other;

	counters = mmap(NULL, THREADS_MAX * WORDS * sizeof(*counters), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(counters, MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The tests may run with chrt(1). */
		sched_setscheduler(0, SCHED_OTHER, &none);
		if (threads > 1 && thread_start(&other, count, (void *)(uintptr_t)&counters[WORDS]))
			_exit(1);
		if (threads > 0)
			count((void *)(uintptr_t)&counters[0]);
		for (counters[0] = 1;;)
			pause();
	}
	for (int i = 0; i < threads || i == 0; i++)
		while (counters[(size_t)i * WORDS] == 0)
			sched_yield();
}

static cpu_set_t cpus;

static int begin(void **state)
{
	(void)state;
	return sched_getaffinity(0, sizeof(cpus), &cpus);
}

static void end_child(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
}

static int end(void **state)
{
	(void)state;
	priority_lower();
	sched_setaffinity(0, sizeof(cpus), &cpus);
	end_child();
	return munmap((void *)(uintptr_t)counters, THREADS_MAX * WORDS * sizeof(*counters));
}

static void pass(long ns)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (elapsed_ns(&began) < ns)
		;
}

static uint64_t counted(void)
{
	return counters[0] + counters[WORDS];
}

/* Lets go of the CPU. */
static void rest(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Lets the child run until it has counted. */
static void let_run(long ns)
{
	const uint64_t then = counted();

	while (counted() == then)
		rest(ns);
}

/*
 * Preempts the child TIMES times, and passes 0.2 ms each time. Where it is said to be held, it has not counted. Returns how
 * often it was held.
 *   counted_on  receives how often it has counted
 */
static int preempt(void (*pass_time)(long ns), int *counted_on)
{
	struct preemption preemption = {0};
	cpu_set_t after;
	int held = 0;

	*counted_on = 0;
	for (int i = 0; i < TIMES; i++) {
		uint64_t then, now;

		preemption_choose(&preemption, child, true);
		preemption_begin(&preemption);
		then = counted();
		pass_time(200000);
		now = counted();
		preemption_end(&preemption);
		if (preemption.held)
			assert_int_equal(now, then);
		held += preemption.held;
		*counted_on += now != then;
		rest(500000);
	}
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&cpus, &after));
	return held;
}

/* Whether the kernel counts how often a thread is given a CPU (CONFIG_SCHED_INFO). */
static bool counts_switches(void)
{
	struct task task;
	bool counts;

	task_open(&task, getpid(), gettid());
	counts = task_switches(&task) != 0;
	task_close(&task);
	return counts;
}

/* The kernel may move the child to another CPU, but not each time. */
static void test_one_thread(void **state)
{
	int counted_on;

	(void)state;
	start(1);
	if (!priority_raise(PRIORITY_SAMPLES) || !counts_switches()) {
		preempt(pass, &counted_on);
		skip();
	}
	assert_true(preempt(pass, &counted_on) > 0);
}

/* A thread that was let run is not held. */
static void test_let_run(void **state)
{
	int counted_on;

	(void)state;
	start(1);
	priority_raise(PRIORITY_SAMPLES);
	assert_int_equal(preempt(let_run, &counted_on), 0);
	assert_int_equal(counted_on, TIMES);
}

/* At most one of them is kept from running. Each is chosen in its turn. */
static void test_two_threads(void **state)
{
	struct preemption preemption = {0};
	pid_t chosen[3];
	int counted_on;

	(void)state;
	start(2);
	priority_raise(PRIORITY_SAMPLES);
	preempt(pass, &counted_on);
	for (int i = 0; i < 3; i++) {
		preemption_choose(&preemption, child, true);
		chosen[i] = preemption.tid;
		preemption_begin(&preemption);
		preemption_end(&preemption);
		assert_false(preemption.held);
	}
	assert_int_not_equal(chosen[0], chosen[1]);
	assert_int_equal(chosen[0], chosen[2]);
}

/* A thread that may run before rbdump is left alone: rbdump would have to wait for it. */
static void test_real_time(void **state)
{
	struct preemption preemption = {0};
	const struct sched_param highest = {.sched_priority = 50};

	(void)state;
	start(0);
	if (sched_setscheduler(child, SCHED_FIFO, &highest) != 0)
		skip();
	priority_raise(PRIORITY_SAMPLES);
	/* As if it had gone to sleep after it was chosen. */
	preemption.tid = child;
	task_open(&preemption.task, child, child);
	preemption_begin(&preemption);
	assert_int_equal(preemption.cpu, -1);
	preemption_end(&preemption);
	assert_false(preemption.held);
}

/* Nothing runs, so nothing has to be kept from running. */
static void test_asleep(void **state)
{
	struct preemption preemption = {0};

	(void)state;
	start(0);
	for (int i = 0; i < 1000 && !(preemption.held && preemption.tid == 0); i++) {
		preemption_choose(&preemption, child, true);
		preemption_begin(&preemption);
		preemption_end(&preemption);
		rest(1000000);
	}
	assert_int_equal(preemption.tid, 0);
	assert_true(preemption.held);
}

/* Of a process that does not exist, it is not known what runs. */
static void test_ended(void **state)
{
	struct preemption preemption = {0};
	pid_t ended;

	(void)state;
	start(1);
	ended = child;
	preemption_choose(&preemption, ended, true);
	assert_int_equal(preemption.tid, ended);
	end_child();
	preemption_begin(&preemption);
	preemption_end(&preemption);
	assert_false(preemption.held);
	preemption_choose(&preemption, ended, true);
	preemption_begin(&preemption);
	preemption_end(&preemption);
	assert_false(preemption.held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_one_thread, begin, end),
	    cmocka_unit_test_setup_teardown(test_let_run, begin, end),
	    cmocka_unit_test_setup_teardown(test_two_threads, begin, end),
	    cmocka_unit_test_setup_teardown(test_real_time, begin, end),
	    cmocka_unit_test_setup_teardown(test_asleep, begin, end),
	    cmocka_unit_test_setup_teardown(test_ended, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
