/*
 * The graph of who waits for whom: circles of threads and fibers, chains that are none, and waits that do not count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/wait_graph.h"

#define THREADS 6u

/* A thread has the address THREAD(i), its current fiber FIBER(i); what entry i waits for has the address OBJECT(i). */
#define THREAD(i) (UINT64_C(0x1000) + 8 * (i))
#define FIBER(i)  (UINT64_C(0x2000) + 8 * (i))
#define OBJECT(i) (UINT64_C(0x3000) + 8 * (i))

static int set_up(void **state)
{
	struct trace *trace = trace_create();

	assert_non_null(trace);
	trace->threads = calloc(THREADS, sizeof(*trace->threads));
	assert_non_null(trace->threads);
	trace->nr_threads = THREADS;
	trace->waits_of_one_moment = true;
	for (size_t i = 0; i < THREADS; i++)
		trace->threads[i] = (struct trace_thread){.id = THREAD(i), .fiber = FIBER(i)};
	*state = trace;
	return 0;
}

static int tear_down(void **state)
{
	trace_destroy(*state);
	return 0;
}

/* Entry `from` waits for what the fiber or thread with the address `holder` holds. */
static void wait_for(struct trace *trace, size_t from, uint64_t holder)
{
	trace->threads[from].wait = (struct trace_wait){
	    .kind = WAIT_MUTEX,
	    .object = OBJECT(from),
	    .holder_state = HOLDER_KNOWN,
	    .holder = holder,
	    .confirmed = true,
	};
}

/* Entry `index` is a suspended fiber of the thread of entry `of`. */
static void suspend(struct trace *trace, size_t index, size_t of)
{
	trace->threads[index].id = THREAD(of);
	trace->threads[index].suspended = true;
	trace->threads[index].state = STATE_SUSPENDED;
}

static void assert_circle(const struct trace *trace, size_t which, const size_t *entries, size_t count)
{
	assert_true(which < trace->nr_deadlocks);
	assert_int_equal(trace->deadlocks[which].count, count);
	assert_memory_equal(trace->deadlocks[which].entries, entries, count * sizeof(*entries));
	assert_false(trace->deadlocks[which].holder_ended);
}

static void test_circles(void **state)
{
	struct trace *trace = *state;

	wait_for(trace, 0, THREAD(1));
	wait_for(trace, 1, FIBER(2));
	wait_for(trace, 2, THREAD(0));
	wait_for(trace, 3, THREAD(0)); /* waits for a circle, and is not in it */
	wait_for(trace, 4, THREAD(5));
	wait_for(trace, 5, THREAD(4));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 2);
	assert_circle(trace, 0, (size_t[]){0, 1, 2}, 3);
	assert_circle(trace, 1, (size_t[]){4, 5}, 2);
	assert_int_equal(trace->threads[1].wait.holder_entry, 2);
	assert_int_equal(wait_graph_next(trace, 3), 0);
}

static void test_chain(void **state)
{
	struct trace *trace = *state;

	for (size_t i = 0; i + 1 < THREADS; i++)
		wait_for(trace, i, THREAD(i + 1));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 0);
	assert_int_equal(wait_graph_next(trace, 4), 5);
	assert_int_equal(wait_graph_next(trace, 5), WAIT_NO_ENTRY);
}

static void test_waits_for_itself(void **state)
{
	struct trace *trace = *state;

	wait_for(trace, 2, THREAD(2));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 1);
	assert_circle(trace, 0, (size_t[]){2}, 1);
}

static void test_not_confirmed(void **state)
{
	struct trace *trace = *state;

	wait_for(trace, 0, THREAD(1));
	wait_for(trace, 1, THREAD(0));
	trace->threads[1].wait.confirmed = false;
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 0);
	assert_int_equal(wait_graph_next(trace, 1), 0);
}

static void test_of_several_moments(void **state)
{
	struct trace *trace = *state;

	trace->waits_of_one_moment = false;
	wait_for(trace, 0, THREAD(1));
	wait_for(trace, 1, THREAD(0));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 0);
}

/* A suspended fiber runs only in its thread, which waits. */
static void test_fibers(void **state)
{
	struct trace *trace = *state;

	suspend(trace, 1, 0);
	wait_for(trace, 0, THREAD(2));
	wait_for(trace, 2, FIBER(1));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 1);
	assert_circle(trace, 0, (size_t[]){0, 2, 1}, 3);
	assert_int_equal(wait_graph_next(trace, 1), 0);
	assert_int_equal(wait_graph_next(trace, 2), 1);
}

/* Two fibers of one thread, which a scheduler has suspended. */
static void test_fibers_of_one_thread(void **state)
{
	struct trace *trace = *state;

	suspend(trace, 1, 0);
	suspend(trace, 2, 0);
	wait_for(trace, 1, FIBER(2));
	wait_for(trace, 2, FIBER(1));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 1);
	assert_circle(trace, 0, (size_t[]){1, 2}, 2);
	/* The thread itself goes on. */
	assert_int_equal(wait_graph_next(trace, 0), WAIT_NO_ENTRY);
}

static void test_fiber_of_thread_that_goes_on(void **state)
{
	struct trace *trace = *state;

	suspend(trace, 1, 0);
	wait_for(trace, 2, FIBER(1));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 0);
	assert_int_equal(wait_graph_next(trace, 1), WAIT_NO_ENTRY);
}

static void test_ended(void **state)
{
	struct trace *trace = *state;

	wait_for(trace, 3, 0);
	trace->threads[3].wait.holder_state = HOLDER_ENDED;
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 1);
	assert_true(trace->deadlocks[0].holder_ended);
	assert_int_equal(trace->deadlocks[0].count, 1);
	assert_int_equal(trace->deadlocks[0].entries[0], 3);
	assert_int_equal(wait_graph_next(trace, 3), WAIT_NO_ENTRY);
}

static void test_holder_that_is_not_there(void **state)
{
	struct trace *trace = *state;

	wait_for(trace, 0, UINT64_C(0xdead0));
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->nr_deadlocks, 0);
	assert_int_equal(trace->threads[0].wait.holder_state, HOLDER_UNKNOWN);
	assert_int_equal(wait_graph_next(trace, 0), WAIT_NO_ENTRY);
}

static void test_waiters(void **state)
{
	struct trace *trace = *state;

	for (size_t i = 0; i < 3; i++) {
		wait_for(trace, i, THREAD(5));
		trace->threads[i].wait.object = OBJECT(0);
	}
	wait_for(trace, 3, THREAD(5));
	trace->threads[5].holds = calloc(2, sizeof(*trace->threads[5].holds));
	assert_non_null(trace->threads[5].holds);
	trace->threads[5].nr_holds = 2;
	trace->threads[5].holds[0].object = OBJECT(0);
	assert_true(wait_graph_find(trace));
	assert_int_equal(trace->threads[2].wait.waiters, 3);
	assert_int_equal(trace->threads[3].wait.waiters, 1);
	assert_int_equal(trace->threads[5].holds[0].waiters, 3);
	assert_int_equal(trace->threads[5].holds[1].waiters, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_circles, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_chain, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_waits_for_itself, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_not_confirmed, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_of_several_moments, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_fibers, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_fibers_of_one_thread, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_fiber_of_thread_that_goes_on, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_ended, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_holder_that_is_not_there, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_waiters, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
