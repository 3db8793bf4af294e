/*
 * What is read of each thread: its state, who owns the GVL and who waits for it, the native thread and the fiber. And
 * whether the garbage collector runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic_threads.h"

static enum trace_state state_of(struct synthetic *s, uint64_t thread)
{
	struct ruby_threads threads = list_threads(s);
	enum trace_state found;

	for (size_t i = 0; i < threads.count; i++) {
		if (threads.threads[i].address != thread)
			continue;
		found = threads.threads[i].state;
		threads_clear(&threads);
		return found;
	}
	fail_msg("the thread is not listed");
	return STATE_UNKNOWN;
}

/* Until 2.7 the VM itself has the list and the GVL. */
static void test_without_ractors(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[3];

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	link_ring(s, s->ruby.vm, F_vm_living_threads, F_thread_node, threads, 3);
	link_ring(s, s->ruby.vm, F_vm_gvl_queue, F_thread_gvl_node, threads + 1, 1);
	synthetic_set(s, s->ruby.vm, F_vm_gvl_owner, threads[2]);
	synthetic_without(s, F_vm_ractors);
	assert_threads(s, threads, 3, LIST_COMPLETE);
	synthetic_set(s, threads[1], F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	assert_int_equal(state_of(s, threads[1]), STATE_WAITING_GVL);
	assert_int_equal(state_of(s, threads[2]), STATE_RUNNING);
	/* Until 2.5 it notes who ran last, and whether anybody still does. */
	synthetic_without(s, F_vm_gvl_owner);
	synthetic_set(s, s->ruby.vm, F_vm_running_thread, threads[0]);
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	synthetic_set(s, s->ruby.vm, F_vm_gvl_acquired, 1);
	assert_int_equal(state_of(s, threads[0]), STATE_RUNNING);
	synthetic_without(s, F_vm_running_thread);
	assert_int_equal(state_of(s, threads[0]), STATE_UNKNOWN);
}

static void test_states(void **state)
{
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), other = new_thread(s, E_THREAD_RUNNABLE);
	const uint64_t both[] = {thread, other};
	uint64_t ractor = one_ractor(s, both, 2);

	synthetic_set(s, ractor, F_ractor_sched_running, other);
	assert_int_equal(state_of(s, thread), STATE_WAITING_GVL);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_int_equal(state_of(s, thread), STATE_SLEEPING);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_STOPPED_FOREVER));
	assert_int_equal(state_of(s, thread), STATE_SLEEPING_FOREVER);
	synthetic_set(s, thread, F_thread_blocking_region, 0x7ffc0010);
	assert_int_equal(state_of(s, thread), STATE_BLOCKED);
	/* It has just got the GVL, or is just giving it up. */
	synthetic_set(s, ractor, F_ractor_sched_running, thread);
	assert_int_equal(state_of(s, thread), STATE_RUNNING);
	assert_int_equal(state_of(s, other), STATE_WAITING_GVL);
	/* The last to run has ended. */
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_KILLED));
	assert_int_equal(state_of(s, thread), STATE_DEAD);
	/* Nobody has the GVL. */
	synthetic_set(s, ractor, F_ractor_sched_running, 0);
	assert_int_equal(state_of(s, other), STATE_WAITING_GVL);
}

/* 3.0 and 3.1 keep the owner elsewhere; without either, a thread that could run may be running. */
static void test_owners(void **state)
{
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), ractor = one_ractor(s, &thread, 1);

	synthetic_set(s, ractor, F_ractor_gvl_owner, thread);
	assert_int_equal(state_of(s, thread), STATE_WAITING_GVL);
	synthetic_without(s, F_ractor_sched_running);
	assert_int_equal(state_of(s, thread), STATE_RUNNING);
	synthetic_without(s, F_ractor_gvl_owner);
	assert_int_equal(state_of(s, thread), STATE_UNKNOWN);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_int_equal(state_of(s, thread), STATE_SLEEPING);
}

/* Who has been woken still looks asleep: the queue tells. */
static void test_queue(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[4], ractor;

	threads[0] = new_thread(s, E_THREAD_STOPPED_FOREVER);
	threads[1] = new_thread(s, E_THREAD_STOPPED);
	threads[2] = new_thread(s, E_THREAD_KILLED);
	threads[3] = new_thread(s, E_THREAD_STOPPED);
	ractor = one_ractor(s, threads, 4);
	link_ring(s, ractor, F_ractor_gvl_queue, F_thread_gvl_node, threads, 3);
	synthetic_set(s, ractor, F_ractor_sched_running, threads[1]);
	assert_threads(s, threads, 4, LIST_COMPLETE);
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	assert_int_equal(state_of(s, threads[1]), STATE_RUNNING);
	assert_int_equal(state_of(s, threads[2]), STATE_DEAD);
	assert_int_equal(state_of(s, threads[3]), STATE_SLEEPING);
	/* A broken queue costs no thread. */
	synthetic_put_word(s, next_of(s, threads[0] + s->layout->members[F_thread_gvl_node].offset), NOWHERE);
	assert_threads(s, threads, 4, LIST_COMPLETE);
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	synthetic_put_word(s, next_of(s, threads[0] + s->layout->members[F_thread_gvl_node].offset),
			   threads[0] + s->layout->members[F_thread_gvl_node].offset);
	assert_threads(s, threads, 4, LIST_COMPLETE);
	synthetic_without(s, F_thread_gvl_node);
	assert_int_equal(state_of(s, threads[0]), STATE_SLEEPING_FOREVER);
}

/* Where it is changed while it is read, each thread tells whether it is in it. */
static void test_queue_that_changes(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[4], ractor;

	for (size_t i = 0; i < 4; i++)
		threads[i] = new_thread(s, E_THREAD_STOPPED);
	ractor = one_ractor(s, threads, 4);
	link_ring(s, ractor, F_ractor_gvl_queue, F_thread_gvl_node, threads, 2);
	/* One that has left it points at itself, that of one that is being made is zero. */
	synthetic_put_word(s, next_of(s, threads[2] + s->layout->members[F_thread_gvl_node].offset),
			   threads[2] + s->layout->members[F_thread_gvl_node].offset);
	synthetic_put_word(s, next_of(s, threads[3] + s->layout->members[F_thread_gvl_node].offset), 0);
	synthetic_set(s, ractor, F_ractor_gvl_queue, NOWHERE);
	assert_threads(s, threads, 4, LIST_COMPLETE);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(state_of(s, threads[i]), i < 2 ? STATE_WAITING_GVL : STATE_SLEEPING);
}

static void test_native_threads(void **state)
{
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), native = synthetic_struct(s, S_nt);
	struct ruby_threads listed;

	one_ractor(s, &thread, 1);
	synthetic_set(s, thread, F_thread_name, 0x7788);
	synthetic_set(s, thread, F_thread_tid, 31);
	synthetic_set(s, thread, F_thread_thread_id, 0x7f31);
	synthetic_set(s, native, F_nt_tid, 32);
	synthetic_set(s, native, F_nt_thread_id, 0x7f32);
	/* 3.1: in the thread itself. */
	listed = list_threads(s);
	assert_int_equal(listed.threads[0].tid, 31);
	assert_int_equal(listed.threads[0].pthread, 0x7f31);
	assert_int_equal(listed.threads[0].name, 0x7788);
	threads_clear(&listed);
	/* 3.2 and later: in the native thread. */
	synthetic_set(s, thread, F_thread_nt, native);
	listed = list_threads(s);
	assert_int_equal(listed.threads[0].tid, 32);
	assert_int_equal(listed.threads[0].pthread, 0x7f32);
	threads_clear(&listed);
	/* M:N: a thread that does not run has none. */
	synthetic_set(s, thread, F_thread_nt, 0);
	synthetic_without(s, F_thread_tid);
	synthetic_without(s, F_thread_thread_id);
	synthetic_without(s, F_thread_name);
	listed = list_threads(s);
	assert_int_equal(listed.count, 1);
	assert_int_equal(listed.threads[0].tid, 0);
	assert_int_equal(listed.threads[0].pthread, 0);
	assert_int_equal(listed.threads[0].name, 0);
	assert_int_not_equal(listed.threads[0].ec, 0);
	threads_clear(&listed);
	synthetic_set(s, thread, F_thread_nt, NOWHERE);
	listed = list_threads(s);
	assert_int_equal(listed.threads[0].tid, 0);
	assert_int_equal(listed.threads[0].pthread, 0);
	threads_clear(&listed);
}

static void test_fibers(void **state)
{
	static const struct {
		enum layout_enumerator_id status;
		const char *name;
	} statuses[] = {
	    {E_FIBER_CREATED, "created"},
	    {E_FIBER_RESUMED, "resumed"},
	    {E_FIBER_SUSPENDED, "suspended"},
	    {E_FIBER_TERMINATED, "terminated"},
	};
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), fiber = synthetic_struct(s, S_fiber);
	uint64_t ec = synthetic_struct(s, S_ec);
	struct ruby_threads listed;

	one_ractor(s, &thread, 1);
	synthetic_set(s, thread, F_thread_ec, ec);
	listed = list_threads(s);
	assert_int_equal(listed.threads[0].ec, ec);
	assert_int_equal(listed.threads[0].fiber, 0);
	assert_null(listed.threads[0].fiber_state);
	threads_clear(&listed);
	synthetic_set(s, ec, F_ec_fiber_ptr, fiber);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		synthetic_set(s, fiber, F_fiber_status, synthetic_enum(s, statuses[i].status));
		listed = list_threads(s);
		assert_int_equal(listed.threads[0].fiber, fiber);
		assert_string_equal(listed.threads[0].fiber_state, statuses[i].name);
		threads_clear(&listed);
	}
	synthetic_without_enumerator(s, E_FIBER_TERMINATED);
	listed = list_threads(s);
	assert_null(listed.threads[0].fiber_state);
	threads_clear(&listed);
	synthetic_set(s, ec, F_ec_fiber_ptr, NOWHERE);
	listed = list_threads(s);
	assert_int_equal(listed.threads[0].fiber, NOWHERE);
	assert_null(listed.threads[0].fiber_state);
	threads_clear(&listed);
}

static void test_collection(void **state)
{
	struct synthetic *s = *state;
	uint64_t objspace = synthetic_struct(s, S_objspace);
	bool known;

	synthetic_set(s, s->ruby.vm, F_vm_objspace, objspace);
	assert_false(threads_gc_running(&s->ruby, &known));
	assert_true(known);
	synthetic_set(s, objspace, F_objspace_during_gc, 1);
	assert_true(threads_gc_running(&s->ruby, &known));
	assert_true(known);
	synthetic_set(s, s->ruby.vm, F_vm_objspace, NOWHERE);
	assert_false(threads_gc_running(&s->ruby, &known));
	assert_false(known);
	synthetic_set(s, s->ruby.vm, F_vm_objspace, objspace);
	synthetic_without(s, F_objspace_during_gc);
	assert_false(threads_gc_running(&s->ruby, &known));
	assert_false(known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_without_ractors, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_states, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_owners, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_queue, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_queue_that_changes, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_native_threads, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_fibers, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_collection, set_up_threads, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
