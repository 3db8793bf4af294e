/*
 * Several looks: what is said of threads that have moved, have not, have begun or have ended; and what is merged of all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "synthetic_looks.h"
#include "trace/merged.h"
#include "trace/progress.h"
#include "trace/same.h"

static void test_moved(void **state)
{
	struct trace *before =
	    LOOK(NULL, {1, STATE_RUNNING, "ab"}, {2, STATE_SLEEPING, "ab"}, {3, STATE_SLEEPING, "ab"},
		 {4, STATE_SLEEPING, "ab"}, {5, STATE_SLEEPING, "ab", .verdict = VERDICT_TORN},
		 {6, STATE_SLEEPING, "ab"}, {8, STATE_BLOCKED, "b"});
	struct trace *now =
	    LOOK(before, {1, STATE_RUNNING, "ab", .slept = true}, {2, STATE_SLEEPING, "ab", .slept = true},
		 {3, STATE_SLEEPING, "ab"}, {4, STATE_SLEEPING, "bb", .slept = true},
		 {5, STATE_SLEEPING, "ab", .slept = true}, {7, STATE_SLEEPING, "ab", .slept = true});
	static const enum trace_moved wanted[] = {MOVED_SAME_STACK, MOVED_NOT,	     MOVED_SAME_STACK,
						  MOVED_YES,	    MOVED_NOT_KNOWN, MOVED_NEW};

	(void)state;
	for (size_t i = 0; i < now->nr_threads; i++)
		assert_int_equal(now->threads[i].progress.moved, wanted[i]);
	assert_int_equal(now->look.before, 1);
	assert_int_equal(now->look.nr_gone, 2);
	assert_int_equal(now->look.gone[0].tid, 6);
	assert_int_equal(now->look.gone[1].tid, 8);
	trace_destroy(before);
	trace_destroy(now);
}

/* If the list of threads is not complete, it is not said that a thread has ended. */
static void test_ended_is_not_known(void **state)
{
	struct trace *before = LOOK(NULL, {1, STATE_SLEEPING, "ab"}, {2, STATE_SLEEPING, "ab"}), *now;

	(void)state;
	now = LOOK(NULL, {1, STATE_SLEEPING, "ab"});
	now->threads_missing = LIST_BROKEN;
	assert_true(trace_compare(before, now));
	assert_int_equal(now->look.nr_gone, 0);
	trace_destroy(before);
	trace_destroy(now);
}

/* Another thread with the memory of one that has ended: the tid tells. */
static void test_memory_used_again(void **state)
{
	struct trace *before = LOOK(NULL, {1, STATE_SLEEPING, "ab"}), *now = LOOK(NULL, {1, STATE_SLEEPING, "ab"});

	(void)state;
	now->threads[0].tid = 77;
	now->threads[0].progress.fresh = true; /* this native thread was not there before */
	assert_true(trace_compare(before, now));
	assert_int_equal(now->threads[0].progress.moved, MOVED_NEW);
	assert_true(now->threads[0].progress.has_cpu);
	assert_int_equal(now->look.nr_gone, 1);
	now->threads[0].tid = 0; /* not known */
	assert_true(trace_same_thread(&before->threads[0], &now->threads[0]));
	trace_destroy(before);
	trace_destroy(now);
}

/* If the native thread was there before, it may be the same thread, which has gone on in another native thread. */
static void test_other_native_thread(void **state)
{
	struct merged merged = {0};
	struct trace *now;

	(void)state;
	ADD(&merged, {1, STATE_SLEEPING, "ab"});
	now = LOOK(NULL, {1, STATE_SLEEPING, "ab", 500});
	now->threads[0].tid = 77;
	now->look.number = 2;
	assert_true(trace_compare(merged.last, now));
	assert_int_equal(now->threads[0].progress.moved, MOVED_NOT_KNOWN);
	assert_false(now->threads[0].progress.has_cpu);
	assert_int_equal(now->look.nr_gone, 0);
	assert_true(merged_add(&merged, now));
	assert_true(merged_finish(&merged));
	assert_int_equal(merged.nr_threads, 2);
	assert_false(merged.threads[0].ended || merged.threads[1].began || merged.threads[1].has_cpu);
	merged_clear(&merged);
}

static void test_merged_text(void **state)
{
	struct merged merged = {0};

	(void)state;
	ADD(&merged, {1, STATE_RUNNING, "abz"}, {2, STATE_SLEEPING, "xy"}, {3, STATE_SLEEPING, "q"});
	ADD(&merged, {1, STATE_RUNNING, "cbz", 700}, {2, STATE_SLEEPING, "xy", 0, true}, {3, STATE_SLEEPING, "q", 1});
	ADD(&merged, {1, STATE_WAITING_GVL, "cbz", 300}, {2, STATE_SLEEPING, "xy", 0, true},
	    {4, STATE_BLOCKED, "q", 2, .fresh = true});
	assert_int_equal(merged.nr_kept, 2);
	assert_merged(
	    &merged, 3,
	    "Process 4242: ruby 9.8.7\n"
	    "3 looks in 2.00 s, 3 threads in the last look, each look paused the process for at most 103 us\n"
	    "\n"
	    "Thread 1 running in 2, waiting for the GVL in 1; 1.00 s CPU\n"
	    "  2 of 3 looks:\n"
	    "    a.rb:99:in 'm'\n"
	    "  1 of 3 looks:\n"
	    "    a.rb:97:in 'm'\n"
	    "  these 2 stacks have the same outer frames:\n"
	    "    a.rb:98:in 'm'\n"
	    "    a.rb:122:in 'm'\n"
	    "\n"
	    "Thread 2 sleeping; has not moved; 0.00 s CPU\n"
	    "    a.rb:120:in 'm'\n"
	    "    a.rb:121:in 'm'\n"
	    "\n"
	    "Thread 3 sleeping; seen in 2 of 3 looks, ended after look 2; same stack in these 2 looks; 0.00 s CPU\n"
	    "    a.rb:113:in 'm'\n"
	    "\n"
	    "Thread 4 blocked; seen in 1 of 3 looks, began before look 3; 0.00 s CPU\n"
	    "    a.rb:113:in 'm'\n");
	merged_clear(&merged);
}

/* A stack that is the outer part of another one keeps its innermost frame; a torn stack is shown as a whole. */
static void test_common_frames(void **state)
{
	struct merged merged = {0};

	(void)state;
	ADD(&merged, {1, STATE_RUNNING, "abc"});
	ADD(&merged, {1, STATE_RUNNING, "bc"});
	ADD(&merged, {1, STATE_RUNNING, "c", .verdict = VERDICT_TORN});
	assert_merged(
	    &merged, 5,
	    "Process 4242: ruby 9.8.7\n"
	    "3 of 5 looks in 2.00 s, 1 thread in the last look, each look paused the process for at most 101 us\n"
	    "\n"
	    "Thread 1 running; 0.00 s CPU\n"
	    "  1 of 3 looks:\n"
	    "    a.rb:97:in 'm'\n"
	    "    a.rb:98:in 'm'\n"
	    "  1 of 3 looks:\n"
	    "    a.rb:98:in 'm'\n"
	    "  these 2 stacks have the same outer frames:\n"
	    "    a.rb:99:in 'm'\n"
	    "  1 of 3 looks [torn: the stack changed while it was copied]:\n"
	    "    a.rb:99:in 'm'\n");
	merged_clear(&merged);
}

/* A thread that was idle in some looks: the frames that its other stacks have in common are shown once all the same. */
static void test_idle_in_between(void **state)
{
	struct merged merged = {0};

	(void)state;
	ADD(&merged, {1, STATE_RUNNING, "abyz"});
	ADD(&merged, {1, STATE_SLEEPING, "pq"});
	ADD(&merged, {1, STATE_SLEEPING, "pq"});
	ADD(&merged, {1, STATE_RUNNING, "cyz"});
	assert_merged(&merged, 4,
		      "Process 4242: ruby 9.8.7\n"
		      "4 looks in 3.00 s, 1 thread in the last look, each look paused the process for at most 101 us\n"
		      "\n"
		      "Thread 1 running in 2, sleeping in 2; 0.00 s CPU\n"
		      "  2 of 4 looks:\n"
		      "    a.rb:112:in 'm'\n"
		      "    a.rb:113:in 'm'\n"
		      "  1 of 4 looks:\n"
		      "    a.rb:97:in 'm'\n"
		      "    a.rb:98:in 'm'\n"
		      "  1 of 4 looks:\n"
		      "    a.rb:99:in 'm'\n"
		      "  these 2 stacks have the same outer frames:\n"
		      "    a.rb:121:in 'm'\n"
		      "    a.rb:122:in 'm'\n");
	merged_clear(&merged);
}

/* Threads that had one stack and one state in all looks are folded; not one that has run in between. */
static void test_fold_of_merged(void **state)
{
	struct merged merged = {0};

	(void)state;
	ADD(&merged, {1, STATE_SLEEPING, "a"}, {2, STATE_SLEEPING, "a"}, {3, STATE_SLEEPING, "a"},
	    {4, STATE_SLEEPING, "a"});
	ADD(&merged, {1, STATE_SLEEPING, "a", 0, true}, {2, STATE_SLEEPING, "a", 0, true}, {3, STATE_SLEEPING, "a", 9},
	    {4, STATE_SLEEPING, "a", 0, true});
	assert_merged(&merged, 2,
		      "Process 4242: ruby 9.8.7\n"
		      "2 looks in 1.00 s, 4 threads in the last look, each look paused the process for at most 104 us\n"
		      "\n"
		      "Thread 3 sleeping; same stack in all 2 looks; 0.01 s CPU\n"
		      "    a.rb:97:in 'm'\n"
		      "\n"
		      "3 threads, sleeping (tids 1, 2, 4); have not moved; 0.00 s CPU together\n"
		      "    a.rb:97:in 'm'\n");
	merged_clear(&merged);
}

/* A thread that gets its name later has the name; the trace that has the name is kept. */
static void test_name_that_comes_later(void **state)
{
	struct merged merged = {0};
	struct trace *second;

	(void)state;
	ADD(&merged, {1, STATE_SLEEPING, "a"});
	second = LOOK(merged.last, {1, STATE_SLEEPING, "a"});
	second->threads[0].name = trace_string(second, "worker");
	assert_true(merged_add(&merged, second));
	second = LOOK(merged.last, {2, STATE_SLEEPING, "a"});
	assert_true(merged_add(&merged, second));
	assert_true(merged_finish(&merged));
	assert_string_equal(merged.threads[0].as->name, "worker");
	assert_int_equal(merged.threads[0].nr_looks, 2);
	assert_true(merged.threads[0].ended);
	merged_clear(&merged);
}

/* All that a kept trace owns counts for the limit, not only its stacks. */
static void test_kept_bytes(void **state)
{
	enum { HOLDS = 1000 };
	struct merged merged = {0};
	struct trace *first = LOOK(NULL, {1, STATE_SLEEPING, "a"});

	(void)state;
	first->threads[0].holds = calloc(HOLDS, sizeof(*first->threads[0].holds));
	assert_non_null(first->threads[0].holds);
	first->threads[0].nr_holds = HOLDS;
	assert_true(merged_add(&merged, first));
	ADD(&merged, {1, STATE_SLEEPING, "a"});
	assert_int_equal(merged.nr_kept, 1);
	assert_int_equal(merged.kept_bytes, trace_bytes(first));
	assert_in_range(merged.kept_bytes, HOLDS * sizeof(*first->threads[0].holds), SIZE_MAX);
	merged_clear(&merged);
}

/* Fibers are behind their thread, wherever they were seen first. */
static void test_fibers_of_merged(void **state)
{
	struct merged merged = {0};
	struct trace *first = LOOK(NULL, {1, STATE_SLEEPING, "a"}, {2, STATE_SLEEPING, "a"}), *second;

	(void)state;
	assert_true(merged_add(&merged, first));
	second = LOOK(NULL, {1, STATE_SLEEPING, "a"}, {1, STATE_SUSPENDED, "b"}, {2, STATE_SLEEPING, "a"});
	second->threads[1].suspended = true;
	second->threads[1].fiber = 0xf00;
	second->look.number = 2;
	assert_true(trace_compare(first, second));
	assert_true(merged_add(&merged, second));
	assert_true(merged_finish(&merged));
	assert_int_equal(merged.nr_threads, 3);
	assert_true(merged.threads[1].as->suspended);
	assert_false(merged.threads[1].has_cpu);
	assert_false(merged.threads[1].began);
	assert_int_equal(merged.threads[2].as->id, 2);
	merged_clear(&merged);
}

/* Native threads that Ruby does not know have no struct of Ruby's: their tids tell them apart. */
static void test_native_threads(void **state)
{
	struct trace *first =
	    LOOK(NULL, {41, STATE_UNKNOWN, "a", .slept = true}, {42, STATE_UNKNOWN, "a", .slept = true});
	struct trace *second = LOOK(NULL, {42, STATE_UNKNOWN, "a", .slept = true}, {43, STATE_UNKNOWN, "a"},
				    {44, STATE_UNKNOWN, "a", .fresh = true});

	(void)state;
	for (size_t i = 0; i < first->nr_threads; i++) {
		first->threads[i].native = true;
		first->threads[i].id = 0;
	}
	for (size_t i = 0; i < second->nr_threads; i++) {
		second->threads[i].native = true;
		second->threads[i].id = 0;
	}
	assert_true(trace_compare(first, second));
	assert_int_equal(second->threads[0].progress.moved, MOVED_NOT);
	/* It was there before, so perhaps it was a thread of Ruby. */
	assert_int_equal(second->threads[1].progress.moved, MOVED_NOT_KNOWN);
	assert_int_equal(second->threads[2].progress.moved, MOVED_NEW);
	/* The other one may be a thread of Ruby now. */
	assert_int_equal(second->look.nr_gone, 0);
	trace_destroy(first);
	trace_destroy(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_moved),
	    cmocka_unit_test(test_ended_is_not_known),
	    cmocka_unit_test(test_memory_used_again),
	    cmocka_unit_test(test_merged_text),
	    cmocka_unit_test(test_common_frames),
	    cmocka_unit_test(test_fold_of_merged),
	    cmocka_unit_test(test_kept_bytes),
	    cmocka_unit_test(test_fibers_of_merged),
	    cmocka_unit_test(test_name_that_comes_later),
	    cmocka_unit_test(test_other_native_thread),
	    cmocka_unit_test(test_idle_in_between),
	    cmocka_unit_test(test_native_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
