/*
 * What the kernel tells of all threads of a process between two looks: of one that sleeps, of one that works, of one that has
 * begun, and of one that has ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/task_set.h"

/* How much CPU time a thread uses for each byte that it reads. */
#define WORK_NS 20000000U

struct worker {
	pthread_t thread;
	int in[2], out[2];
	_Atomic pid_t tid;
};

static uint64_t own_cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return ns_of(&time);
}

static void *work(void *context)
{
	struct worker *worker = context;
	char byte;

	worker->tid = gettid();
	while (read(worker->in[0], &byte, 1) == 1) {
		const uint64_t end = own_cpu_ns() + WORK_NS;

		while (own_cpu_ns() < end)
			;
		if (write(worker->out[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

/* Waits until the thread sleeps, by what the kernel says. */
static void wait_until_asleep(const struct worker *worker)
{
	struct task task = TASK_CLOSED;
	struct task_look look;

	while (worker->tid == 0)
		sched_yield();
	task_open(&task, getpid(), worker->tid);
	do {
		sched_yield();
		look = task_look(&task, NULL);
	} while (!look.asleep);
	task_close(&task);
}

static void start(struct worker *worker)
{
	worker->tid = 0;
	assert_int_equal(pipe(worker->in), 0);
	assert_int_equal(pipe(worker->out), 0);
	assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
	wait_until_asleep(worker);
}

static void let_work(const struct worker *worker)
{
	char byte = 'x';

	assert_int_equal(write(worker->in[1], &byte, 1), 1);
	assert_int_equal(read(worker->out[0], &byte, 1), 1);
	wait_until_asleep(worker);
}

static void end(struct worker *worker)
{
	close(worker->in[1]);
	pthread_join(worker->thread, NULL);
	close(worker->in[0]);
	close(worker->out[0]);
	close(worker->out[1]);
}

static void look(struct task_set *set)
{
	assert_true(task_set_begin(set));
	task_set_end(set);
}

static void test_looks(void **state)
{
	struct task_set set = {.pid = getpid()};
	struct worker sleeps, works, begins;
	uint64_t cpu_ns;
	bool slept;

	(void)state;
	start(&sleeps);
	start(&works);
	look(&set);
	assert_int_equal(set.count, 3);
	assert_true(task_set_find(&set, sleeps.tid, &cpu_ns, &slept));
	assert_false(slept); /* there was no look before */
	task_set_keep(&set);

	let_work(&works);
	start(&begins);
	let_work(&begins);
	look(&set);
	assert_int_equal(set.count, 4);
	assert_true(task_set_find(&set, sleeps.tid, &cpu_ns, &slept));
	assert_true(slept);
	assert_int_equal(cpu_ns, 0);
	assert_true(task_set_find(&set, works.tid, &cpu_ns, &slept));
	assert_false(slept);
	assert_in_range(cpu_ns, WORK_NS, 10 * WORK_NS);
	assert_true(task_set_find(&set, begins.tid, &cpu_ns, &slept));
	assert_false(slept);
	assert_in_range(cpu_ns, WORK_NS, 10 * WORK_NS);
	assert_true(task_set_is_fresh(&set, begins.tid));
	assert_false(task_set_is_fresh(&set, works.tid) || task_set_is_fresh(&set, -1));
	assert_true(task_set_find(&set, getpid(), &cpu_ns, &slept));
	assert_false(slept);

	/* This look had no result, so the next one is compared with the same look as this one. */
	let_work(&works);
	look(&set);
	assert_true(task_set_find(&set, works.tid, &cpu_ns, &slept));
	assert_in_range(cpu_ns, 2 * WORK_NS, 20 * WORK_NS);
	task_set_keep(&set);

	end(&begins);
	look(&set);
	assert_int_equal(set.count, 3);
	assert_false(task_set_find(&set, begins.tid, &cpu_ns, &slept));
	assert_true(task_set_find(&set, works.tid, &cpu_ns, &slept));
	assert_true(slept);
	task_set_clear(&set);
	end(&sleeps);
	end(&works);
}

static void test_no_process(void **state)
{
	struct task_set set = {.pid = 0};
	uint64_t cpu_ns;
	bool slept;

	(void)state;
	look(&set);
	assert_int_equal(set.count, 0);
	assert_false(task_set_find(&set, 1, &cpu_ns, &slept));
	task_set_clear(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_looks), cmocka_unit_test(test_no_process)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
