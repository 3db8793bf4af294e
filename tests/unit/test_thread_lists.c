/*
 * The lists of ractors and threads: which threads are listed and in which order. Broken and circular lists, limits of
 * length and time, and whether two lists are the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "synthetic_threads.h"

/* More than what is bounded takes, sanitized and on a busy machine; what is not takes many times that. */
#define MUCH_NS 20000000000L

/* Where the pointer to the next thread is, in a thread. */
static uint64_t link_of(const struct synthetic *s, uint64_t thread)
{
	return next_of(s, thread + s->layout->members[F_thread_node].offset);
}

static void test_ractors(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[3], ractors[2];
	struct ruby_threads listed;

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	ractors[0] = new_ractor(s, 1, threads, 2);
	ractors[1] = new_ractor(s, 7, threads + 2, 1);
	/* Each has a GVL of its own. */
	synthetic_set(s, ractors[0], F_ractor_sched_running, threads[1]);
	synthetic_set(s, ractors[1], F_ractor_sched_running, threads[2]);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_set(s, s->ruby.vm, F_vm_main_thread, threads[0]);
	assert_threads(s, threads, 3, LIST_COMPLETE);
	listed = list_threads(s);
	assert_true(listed.threads[0].main);
	assert_false(listed.threads[1].main);
	assert_int_equal(listed.threads[0].ractor, 1);
	assert_int_equal(listed.threads[1].ractor, 1);
	assert_int_equal(listed.threads[2].ractor, 7);
	assert_int_equal(listed.threads[0].state, STATE_WAITING_GVL);
	assert_int_equal(listed.threads[1].state, STATE_RUNNING);
	assert_int_equal(listed.threads[2].state, STATE_RUNNING);
	threads_clear(&listed);
	synthetic_without(s, F_ractor_id);
	listed = list_threads(s);
	assert_int_equal(listed.threads[2].ractor, 1);
	threads_clear(&listed);
}

static void test_no_threads(void **state)
{
	struct synthetic *s = *state;

	one_ractor(s, NULL, 0);
	assert_threads(s, NULL, 0, LIST_COMPLETE);
}

static void test_list_broken_off(void **state)
{
	struct synthetic *s = *state;
	struct ruby_threads listed;
	uint64_t threads[3];

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	one_ractor(s, threads, 3);
	assert_threads(s, threads, 3, LIST_COMPLETE);
	synthetic_put_word(s, link_of(s, threads[1]), 0);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.threads[0].address, threads[0]);
	assert_int_equal(listed.threads[1].address, threads[1]);
	threads_clear(&listed);
	synthetic_put_word(s, link_of(s, threads[1]), UINT64_MAX - 7);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.threads[1].address, threads[1]);
	threads_clear(&listed);
}

static void test_heads_that_cannot_be_read(void **state)
{
	struct synthetic *s = *state;
	struct ruby_threads threads;

	s->ruby.vm = NOWHERE;
	threads = list_threads(s);
	assert_int_equal(threads.missing, LIST_BROKEN);
	assert_int_equal(threads.count, 0);
	threads_clear(&threads);
	synthetic_without(s, F_vm_ractors);
	threads = list_threads(s);
	assert_int_equal(threads.missing, LIST_BROKEN);
	assert_int_equal(threads.count, 0);
	threads_clear(&threads);
}

/* A thread that unlinks itself while it is looked at can lead in a circle past the head. */
static void test_circles(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[40];

	for (size_t i = 0; i < 40; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	for (size_t length = 1; length <= 40; length += 13) {
		one_ractor(s, threads, 40);
		synthetic_put_word(s, link_of(s, threads[39]),
				   threads[40 - length] + s->layout->members[F_thread_node].offset);
		assert_threads(s, threads, 40, LIST_BROKEN);
	}
}

/* A list that leads into another's: what follows is in both, and is listed once. */
static void test_lists_that_run_together(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[4], ractors[2];
	struct ruby_threads listed;

	for (size_t i = 0; i < 4; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	ractors[0] = new_ractor(s, 1, threads, 2);
	ractors[1] = new_ractor(s, 2, threads + 2, 2);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_put_word(s, link_of(s, threads[1]), threads[3] + s->layout->members[F_thread_node].offset);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	for (size_t i = 0; i < listed.count; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(listed.threads[i].address, listed.threads[j].address);
	assert_int_equal(listed.threads[0].address, threads[0]);
	assert_int_equal(listed.threads[1].address, threads[1]);
	assert_int_equal(listed.threads[2].address, threads[3]);
	threads_clear(&listed);
	/* So with ractors. */
	ractors[0] = new_ractor(s, 1, threads, 2);
	ractors[1] = new_ractor(s, 2, threads + 2, 2);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_put_word(s, next_of(s, ractors[1] + s->layout->members[F_ractor_node].offset),
			   ractors[0] + s->layout->members[F_ractor_node].offset);
	assert_threads(s, threads, 4, LIST_BROKEN);
}

static void test_too_many(void **state)
{
	struct synthetic *s = *state;
	struct ruby_threads listed;
	uint64_t *threads, ractors[2];

	threads = test_calloc(THREADS_MAX + 1, sizeof(*threads));
	for (size_t i = 0; i <= THREADS_MAX; i++)
		threads[i] = synthetic_struct(s, S_thread);
	one_ractor(s, threads, THREADS_MAX);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_COMPLETE);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	one_ractor(s, threads, THREADS_MAX + 1);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_TOO_LONG);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	/* In all ractors together. */
	ractors[0] = new_ractor(s, 1, threads, THREADS_MAX / 2);
	ractors[1] = new_ractor(s, 2, threads + THREADS_MAX / 2, THREADS_MAX / 2 + 1);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_TOO_LONG);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	/* More than that in a circle is a circle. */
	one_ractor(s, threads, THREADS_MAX - 1);
	synthetic_put_word(s, link_of(s, threads[THREADS_MAX - 2]),
			   threads[5] + s->layout->members[F_thread_node].offset);
	assert_threads(s, threads, THREADS_MAX - 1, LIST_BROKEN);
	test_free(threads);
}

/* However long the queues are, and however many ractors have the same: each is gone through once at most. */
static void test_long_queues(void **state)
{
	enum { RACTORS = 2000 };
	struct synthetic *s = *state;
	uint64_t *threads = test_calloc(THREADS_MAX, sizeof(*threads)), ractors[RACTORS];
	struct ruby_threads listed;
	struct timespec began;

	for (size_t i = 0; i < THREADS_MAX; i++)
		threads[i] = new_thread(s, E_THREAD_STOPPED);
	ractors[0] = new_ractor(s, 1, threads, THREADS_MAX);
	link_ring(s, ractors[0], F_ractor_gvl_queue, F_thread_gvl_node, threads, THREADS_MAX);
	for (size_t i = 1; i < RACTORS; i++) {
		ractors[i] = new_ractor(s, i + 1, NULL, 0);
		synthetic_set(s, ractors[i], F_ractor_gvl_queue,
			      threads[0] + s->layout->members[F_thread_gvl_node].offset);
	}
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, RACTORS);
	/* All is copied. */
	listed = list_threads(s);
	threads_clear(&listed);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	listed = list_threads(s);
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < MUCH_NS);
	assert_int_equal(listed.missing, LIST_COMPLETE);
	assert_int_equal(listed.count, THREADS_MAX);
	for (size_t i = 0; i < THREADS_MAX; i++)
		assert_int_equal(listed.threads[i].state, STATE_WAITING_GVL);
	threads_clear(&listed);
	/* Nor is the rest gone through when there is no room for more. */
	for (size_t i = 1; i < RACTORS; i++)
		synthetic_set(s, ractors[i], F_ractor_threads, threads[0] + s->layout->members[F_thread_node].offset);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	listed = list_threads(s);
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < MUCH_NS);
	assert_int_equal(listed.missing, LIST_TOO_LONG);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	test_free(threads);
}

/* What was read in time is whole, and it is said that there may be more. */
static void test_out_of_time(void **state)
{
	enum { LONG = 8000 };
	struct synthetic *s = *state;
	uint64_t *threads = test_calloc(LONG, sizeof(*threads));
	struct ruby_threads listed;

	for (size_t i = 0; i < LONG; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	one_ractor(s, threads, LONG);
	memory_limit(s->ruby.memory, 1);
	assert_threads(s, threads, 0, LIST_OUT_OF_TIME);
	/* Longer each time, until it is enough. */
	for (long limit = 10000;; limit *= 2) {
		memory_limit(s->ruby.memory, limit);
		listed = list_threads(s);
		for (size_t i = 0; i < listed.count; i++) {
			assert_int_equal(listed.threads[i].address, threads[i]);
			assert_int_equal(listed.threads[i].state, STATE_WAITING_GVL);
			assert_int_not_equal(listed.threads[i].ec, 0);
		}
		if (listed.missing == LIST_COMPLETE)
			break;
		assert_int_equal(listed.missing, LIST_OUT_OF_TIME);
		threads_clear(&listed);
	}
	assert_int_equal(listed.count, LONG);
	threads_clear(&listed);
	test_free(threads);
}

/* One thread more, less, or another makes another list. */
static void test_same(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[3];
	struct ruby_threads before, now;

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	one_ractor(s, threads, 2);
	before = list_threads(s);
	now = list_threads(s);
	assert_true(threads_are_same(&before, &now));
	threads_clear(&now);
	one_ractor(s, threads, 3);
	now = list_threads(s);
	assert_false(threads_are_same(&before, &now));
	threads_clear(&now);
	one_ractor(s, threads + 1, 2);
	now = list_threads(s);
	assert_false(threads_are_same(&before, &now));
	threads_clear(&now);
	one_ractor(s, threads, 2);
	synthetic_put_word(s, link_of(s, threads[1]), threads[0] + s->layout->members[F_thread_node].offset);
	now = list_threads(s);
	assert_int_equal(now.count, 2);
	assert_false(threads_are_same(&before, &now));
	threads_clear(&now);
	threads_clear(&before);
}

/* What is wrong in one ractor does not hide another. */
static void test_one_ractor_broken(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[2], ractors[2];
	struct ruby_threads listed;

	threads[0] = new_thread(s, E_THREAD_RUNNABLE);
	threads[1] = new_thread(s, E_THREAD_RUNNABLE);
	ractors[0] = new_ractor(s, 1, threads, 1);
	ractors[1] = new_ractor(s, 2, threads + 1, 1);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_put_word(s, link_of(s, threads[0]), threads[0] + s->layout->members[F_thread_node].offset);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.threads[listed.count - 1].address, threads[1]);
	assert_int_equal(listed.threads[listed.count - 1].ractor, 2);
	threads_clear(&listed);
	synthetic_set(s, s->ruby.vm, F_vm_ractors, NOWHERE);
	listed = list_threads(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.count, 0);
	threads_clear(&listed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_ractors, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_threads, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_list_broken_off, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_heads_that_cannot_be_read, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_circles, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_lists_that_run_together, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_too_many, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_long_queues, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_out_of_time, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_same, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_one_ractor_broken, set_up_threads, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
