/*
 * Fibers of a Ruby that links them: which of them are listed, whose they are, links that are broken or cannot be read,
 * and what counts as missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic_fibers.h"

/* Some may be missing. */
static void assert_missing(void)
{
	struct ruby_fibers fibers = list_fibers();

	assert_int_not_equal(fibers.missing, LIST_COMPLETE);
	fibers_clear(&fibers);
}

static uint64_t link_of(uint64_t fiber)
{
	struct access access = ruby_access(&scene.s->ruby);
	uint64_t link = access_member(&access, fiber, F_fiber_jit_cont);

	assert_false(access.failed);
	return link;
}

static void test_suspended(void **state)
{
	uint64_t fibers[2];
	struct ruby_fibers found;

	(void)state;
	fibers[0] = new_fiber(scene.of[1].address, E_FIBER_SUSPENDED, true);
	fibers[1] = new_fiber(scene.of[0].address, E_FIBER_SUSPENDED, true);
	synthetic_set(scene.s, fibers[0], F_fiber_prev, scene.of[1].fiber);
	synthetic_set(scene.s, fibers[1], F_fiber_resuming, fibers[0]);
	set_used(2);
	assert_fibers(fibers, 2, LIST_COMPLETE);
	found = list_fibers();
	assert_int_equal(found.fibers[0].thread_index, 1);
	assert_int_equal(found.fibers[1].thread_index, 0);
	assert_int_equal(found.fibers[0].resumed_by, scene.of[1].fiber);
	assert_int_equal(found.fibers[0].resuming, 0);
	assert_int_equal(found.fibers[1].resumed_by, 0);
	assert_int_equal(found.fibers[1].resuming, fibers[0]);
	assert_string_equal(found.fibers[0].state, "suspended");
	fibers_clear(&found);
}

static void test_without_a_stack(void **state)
{
	uint64_t fiber;

	(void)state;
	new_fiber(scene.of[0].address, E_FIBER_CREATED, false);
	new_fiber(scene.of[0].address, E_FIBER_TERMINATED, false);
	fiber = new_fiber(scene.of[0].address, E_FIBER_SUSPENDED, false);
	synthetic_set(scene.s, fiber + scene.s->layout->members[F_fiber_ec].offset, F_ec_vm_stack, 0);
	assert_fibers(NULL, 0, LIST_COMPLETE);
}

/* A continuation is linked as a fiber is. */
static void test_continuation(void **state)
{
	uint64_t fiber;

	(void)state;
	fiber = new_fiber(scene.of[0].address, E_FIBER_SUSPENDED, false);
	synthetic_set(scene.s, fiber + scene.s->layout->members[F_fiber_ec].offset, F_ec_fiber_ptr, scene.of[0].fiber);
	assert_fibers(NULL, 0, LIST_COMPLETE);
}

static void test_missed(void **state)
{
	uint64_t fiber;
	struct ruby_fibers found;

	(void)state;
	fiber = new_fiber(scene.of[0].address, E_FIBER_SUSPENDED, true);
	set_used(4);
	assert_fibers(&fiber, 1, LIST_MISSED);
	found = list_fibers();
	assert_int_equal(found.nr_missing, 3);
	fibers_clear(&found);
	/* One more than there should be: it is just being given back. */
	set_used(0);
	assert_fibers(&fiber, 1, LIST_COMPLETE);
}

static void test_broken_links(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t fibers[3], first;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		fibers[i] = new_fiber(scene.of[0].address, E_FIBER_SUSPENDED, false);
	assert_fibers(fibers, 3, LIST_COMPLETE);
	first = link_of(fibers[0]);

	/* A circle, from either end. */
	synthetic_set(s, link_of(fibers[2]), F_jit_cont_prev, first);
	assert_missing();
	synthetic_set(s, first, F_jit_cont_next, link_of(fibers[2]));
	assert_missing();
	synthetic_set(s, link_of(fibers[2]), F_jit_cont_prev, 0);
	assert_missing();
	/* Cut off: the fibers that the threads run are not among them. */
	synthetic_set(s, first, F_jit_cont_next, 0);
	assert_missing();
	synthetic_set(s, first, F_jit_cont_next, NOWHERE);
	assert_missing();
}

/* Left behind by a thread that has ended. Its root fiber's stack went with it; and memory of anything else is none. */
static void test_ended_thread(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t thread = synthetic_struct(s, S_thread), fiber = new_fiber(thread, E_FIBER_SUSPENDED, true);
	struct ruby_fibers found;

	(void)state;
	set_used(1);
	synthetic_set(s, thread, F_thread_vm, s->ruby.vm);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_RUNNABLE));
	assert_fibers(NULL, 0, LIST_COMPLETE);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_KILLED));
	assert_fibers(&fiber, 1, LIST_COMPLETE);
	found = list_fibers();
	assert_int_equal(found.fibers[0].thread_index, 2);
	fibers_clear(&found);
	synthetic_set(s, thread, F_thread_root_fiber, fiber);
	assert_fibers(NULL, 0, LIST_COMPLETE);
	synthetic_set(s, thread, F_thread_root_fiber, 0);
	synthetic_set(s, thread, F_thread_vm, 0);
	assert_fibers(NULL, 0, LIST_COMPLETE);
}

/* Room in pages that nothing else is in. */
static uint64_t alone(size_t size)
{
	uint64_t address = synthetic_allocate(scene.s, size + 2 * MEMORY_PAGE);

	synthetic_allocate(scene.s, MEMORY_PAGE);
	return (address + MEMORY_PAGE) & ~(uint64_t)(MEMORY_PAGE - 1);
}

/* What cannot be read is not taken for what is not there. */
static void test_unreadable(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t gone = alone(64), other = scene.of[1].fiber;

	(void)state;
	synthetic_unmap(s, gone);
	/* The fiber that a thread runs: of the other the links are known, but that it is not among them. */
	scene.of[1].fiber = gone;
	assert_fibers(&other, 1, LIST_BROKEN);
	scene.of[0].fiber = gone;
	assert_fibers(NULL, 0, LIST_BROKEN);
	/* Without links: what the threads lead to. */
	scene.of[0].fiber = scene.of[1].fiber = 0;
	synthetic_set(s, scene.of[0].address, F_thread_root_fiber, gone);
	assert_fibers(NULL, 0, LIST_BROKEN);
	synthetic_set(s, scene.of[0].address, F_thread_root_fiber, 0);
	assert_fibers(NULL, 0, LIST_COMPLETE);
	scene.of[0].fiber = synthetic_struct(s, S_fiber);
	synthetic_set(s, scene.of[0].fiber, F_fiber_prev, gone);
	assert_fibers(NULL, 0, LIST_BROKEN);
	synthetic_set(s, scene.of[0].fiber, F_fiber_prev, 0);
	scene.of[0].address = gone;
	assert_fibers(NULL, 0, LIST_BROKEN);
}

static void test_not_known(void **state)
{
	struct synthetic *s = scene.s;

	(void)state;
	new_fiber(scene.of[0].address, E_FIBER_SUSPENDED, true);
	synthetic_without(s, F_jit_cont_next);
	synthetic_without(s, F_objspace_pages);
	assert_fibers(NULL, 0, LIST_NOT_KNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_suspended, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_without_a_stack, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_continuation, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_missed, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_broken_links, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_ended_thread, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_unreadable, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_not_known, set_up_fibers, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
