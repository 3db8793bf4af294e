/*
 * Fibers of a Ruby that does not link them: they are found by a search of its heap, or, up to 2.1, in the ring of each
 * thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "synthetic_fibers.h"

/* More than what is bounded takes, sanitized and on a busy machine; what is not takes many times that. */
#define MUCH_NS 20000000000L

#define TYPE (SYNTHETIC_BASE + 0x100)

/* The Fiber of a fiber, in a slot of the heap. */
static void put_object(uint64_t slot, uint64_t fiber, uint64_t type)
{
	struct synthetic *s = scene.s;

	synthetic_set(s, slot, F_basic_flags, synthetic_enum(s, E_RUBY_T_DATA));
	synthetic_set(s, slot, F_typed_data_type, type);
	synthetic_set(s, slot, F_typed_data_data, fiber);
	if (fiber != NOWHERE)
		synthetic_set(s, fiber, F_fiber_self, slot);
}

enum { SLOT = 320, SLOTS = 40, PAGES = 3 };

/* A heap of some pages, empty; gives the address of its first slot. */
static uint64_t new_heap(uint64_t *pages)
{
	struct synthetic *s = scene.s;
	uint64_t objspace = synthetic_struct(s, S_objspace), list_of_pages = synthetic_allocate(s, PAGES * 8);
	uint64_t slots = synthetic_allocate(s, PAGES * SLOTS * SLOT);

	synthetic_set(s, s->ruby.vm, F_vm_objspace, objspace);
	synthetic_set(s, objspace, F_objspace_pages, list_of_pages);
	synthetic_set(s, objspace, F_objspace_nr_pages, PAGES);
	for (size_t i = 0; i < PAGES; i++) {
		pages[i] = synthetic_struct(s, S_heap_page);
		synthetic_put_word(s, list_of_pages + i * 8, pages[i]);
		synthetic_set(s, pages[i], F_heap_page_start, slots + i * SLOTS * SLOT);
		synthetic_set(s, pages[i], F_heap_page_total_slots, SLOTS);
		synthetic_set(s, pages[i], F_heap_page_slot_size, SLOT);
	}
	return slots;
}

/* What a search reads: the target's pages, apart from the snapshot. */
static void read_pages(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	const struct synthetic *s = context;

	for (size_t i = 0; i < count; i++) {
		ok[i] = pages[i] >= SYNTHETIC_BASE && pages[i] < NOWHERE &&
			s->mapped[(pages[i] - SYNTHETIC_BASE) / MEMORY_PAGE];
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, s->bytes + (pages[i] - SYNTHETIC_BASE), MEMORY_PAGE);
	}
}

static void search(void)
{
	heap_clear(&scene.found);
	assert_true(heap_find(&scene.s->ruby, read_pages, scene.s, TYPE, &scene.found));
}

static void test_heap(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t pages[PAGES], slots = new_heap(pages), fibers[2];
	struct ruby_fibers found;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		synthetic_set(s, scene.of[i].fiber, F_fiber_jit_cont, 0);
	fibers[0] = new_fiber(scene.of[1].address, E_FIBER_SUSPENDED, true);
	fibers[1] = new_fiber(scene.of[0].address, E_FIBER_SUSPENDED, true);
	set_used(2);
	/* No thread has ever used a fiber: there is nothing to search for. */
	found = list_fibers();
	assert_int_equal(found.type, 0);
	fibers_clear(&found);

	/* The root fiber of a thread tells their type. */
	put_object(slots + 3 * SLOT, scene.of[1].fiber, TYPE);
	synthetic_set(s, scene.of[1].address, F_thread_root_fiber, scene.of[1].fiber);
	found = list_fibers();
	assert_int_equal(found.type, TYPE);
	assert_int_equal(found.count, 0);
	fibers_clear(&found);

	put_object(slots + (SLOTS + 1) * SLOT, fibers[1], TYPE);
	put_object(slots + (PAGES * SLOTS - 1) * SLOT, fibers[0], TYPE);
	put_object(slots + 5 * SLOT, NOWHERE, TYPE + 8); /* another type */
	search();
	assert_false(scene.found.cut);
	assert_int_equal(scene.found.data.count, 3);
	assert_fibers(fibers, 2, LIST_COMPLETE);
	assert_true(addresses_add(&scene.found.data, NOWHERE));
	assert_fibers(fibers, 2, LIST_BROKEN);
	scene.found.data.count--;

	/* A search that does not meet the class Object has not gone through the heap: it may lie between two slots. */
	s->ruby.object_class = synthetic_allocate(s, 8);
	synthetic_put_word(s, s->ruby.object_class, slots + (SLOTS + 7) * SLOT);
	search();
	assert_false(scene.found.cut);
	synthetic_put_word(s, s->ruby.object_class, slots + (SLOTS + 7) * SLOT + 8);
	search();
	assert_true(scene.found.cut);
	synthetic_put_word(s, s->ruby.object_class, slots + PAGES * SLOTS * SLOT);
	search();
	assert_true(scene.found.cut);
	s->ruby.object_class = 0;
	search();

	/* One was freed after the search. */
	put_object(slots + (SLOTS + 1) * SLOT, NOWHERE, TYPE);
	set_used(1);
	assert_fibers(fibers, 1, LIST_COMPLETE);
	heap_clear(&scene.found);
	assert_null(scene.found.data.of);
}

/* ---- until 2.4: a thread is its own execution context, and a fiber that it has left has a copy of it */

/* Objects for the threads, and for the fibers that they run; no thread has an execution context. */
static void before_2_5(uint64_t slots)
{
	struct synthetic *s = scene.s;

	synthetic_without(s, F_thread_ec);
	synthetic_without(s, F_ec_thread_ptr);
	synthetic_without(s, F_fiber_resuming);
	synthetic_without_enumerator(s, E_FIBER_SUSPENDED);
	/* The copy is in the fiber, behind everything else. */
	s->layout->members[F_fiber_saved_thread].offset = (uint32_t)s->layout->sizes[S_fiber].value;
	s->layout->sizes[S_fiber].value += s->layout->sizes[S_thread].value;
	for (size_t i = 0; i < 2; i++) {
		uint64_t object = synthetic_object(s, S_typed_data, synthetic_enum(s, E_RUBY_T_DATA)), saved;

		synthetic_set(s, object, F_typed_data_data, scene.of[i].address);
		synthetic_set(s, scene.of[i].address, F_thread_self, object);
		scene.of[i].fiber = synthetic_struct(s, S_fiber);
		synthetic_set(s, scene.of[i].fiber, F_fiber_status, synthetic_enum(s, E_RUNNING));
		put_object(slots + i * SLOT, scene.of[i].fiber, TYPE);
		/* Until it is left, the copy is what it was when the fiber was made. */
		saved = scene.of[i].fiber + s->layout->members[F_fiber_saved_thread].offset;
		synthetic_set(s, saved, F_thread_self, object);
		synthetic_set(s, saved, F_thread_vm_stack, 0);
	}
}

/* A fiber of one of the threads, with a stack, and its object in a slot of the heap. */
static uint64_t new_saved(size_t thread, uint64_t slot)
{
	struct synthetic *s = scene.s;
	struct access access = ruby_access(&s->ruby);
	uint64_t fiber = synthetic_struct(s, S_fiber), saved = access_address(&access, fiber, F_fiber_saved_thread);

	synthetic_set(s, saved, F_thread_self, access_member(&access, scene.of[thread].address, F_thread_self));
	synthetic_set(s, saved, F_thread_vm_stack, synthetic_allocate(s, 64));
	synthetic_set(s, fiber, F_fiber_status, synthetic_enum(s, E_RUNNING));
	put_object(slot, fiber, TYPE);
	return fiber;
}

static void test_saved_threads(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t pages[PAGES], slots = new_heap(pages), fibers[4];
	struct ruby_fibers found;

	(void)state;
	before_2_5(slots);
	for (size_t i = 0; i < 4; i++)
		fibers[i] = new_saved(i % 2, slots + (10 + i) * SLOT);
	synthetic_set(s, scene.of[1].address, F_thread_root_fiber, fibers[1]);
	synthetic_set(s, fibers[0], F_fiber_prev, fibers[2]);
	search();
	assert_fibers(fibers, 4, LIST_COMPLETE);
	found = list_fibers();
	assert_int_equal(found.type, TYPE);
	assert_int_equal(found.fibers[0].resumed_by, fibers[2]);
	assert_int_equal(found.fibers[2].resuming, fibers[0]);
	assert_int_equal(found.fibers[0].resuming, 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(found.fibers[i].thread_index, i % 2);
		assert_int_equal(found.fibers[i].ec, fibers[i] + s->layout->members[F_fiber_saved_thread].offset);
		assert_string_equal(found.fibers[i].state, "suspended");
	}
	fibers_clear(&found);

	/* One that has ended; one whose stack the thread has; and a thread that is just making its first. */
	synthetic_set(s, fibers[3], F_fiber_status, synthetic_enum(s, E_RUNNING) ^ 1);
	synthetic_set(s, fibers[2] + s->layout->members[F_fiber_saved_thread].offset, F_thread_vm_stack, 0);
	assert_fibers(fibers, 2, LIST_BROKEN);
	synthetic_set(s, scene.of[0].fiber, F_fiber_status, synthetic_enum(s, E_RUNNING) ^ 1);
	scene.of[0].fiber = fibers[2];
	assert_fibers(fibers, 2, LIST_COMPLETE);
	scene.of[0].fiber = 0;
	assert_fibers(fibers + 1, 1, LIST_COMPLETE);
	/* A copy whose thread is none. */
	synthetic_set(s, fibers[1] + s->layout->members[F_fiber_saved_thread].offset, F_thread_self, slots);
	assert_fibers(NULL, 0, LIST_COMPLETE);
	heap_clear(&scene.found);
}

/* Until 2.1 a thread's fibers are a ring, and lead to each other by their objects. */
static void test_ring(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t pages[PAGES], slots = new_heap(pages), fibers[3];
	struct ruby_fibers found;

	(void)state;
	synthetic_with(s, F_fiber_next_fiber);
	before_2_5(slots);
	for (size_t i = 0; i < 3; i++)
		fibers[i] = new_saved(0, slots + (10 + i) * SLOT);
	synthetic_set(s, scene.of[0].address, F_thread_root_fiber, slots + 10 * SLOT);
	for (size_t i = 0; i < 3; i++)
		synthetic_set(s, fibers[i], F_fiber_next_fiber, i < 2 ? fibers[i + 1] : scene.of[0].fiber);
	synthetic_set(s, scene.of[0].fiber, F_fiber_next_fiber, fibers[0]);
	synthetic_set(s, scene.of[1].fiber, F_fiber_next_fiber, scene.of[1].fiber);
	synthetic_set(s, fibers[0], F_fiber_prev, synthetic_enum(s, E_RUBY_Qnil));
	synthetic_set(s, fibers[2], F_fiber_prev, slots + 11 * SLOT);
	/* The heap was not searched. */
	assert_fibers(fibers, 3, LIST_COMPLETE);
	found = list_fibers();
	assert_int_equal(found.fibers[0].resumed_by, 0);
	assert_int_equal(found.fibers[2].resumed_by, fibers[1]);
	fibers_clear(&found);

	synthetic_set(s, fibers[2], F_fiber_next_fiber, NOWHERE);
	assert_fibers(fibers, 3, LIST_BROKEN);
	synthetic_set(s, fibers[2], F_fiber_next_fiber, fibers[1]);
	assert_fibers(fibers, 3, LIST_BROKEN);
	heap_clear(&scene.found);
}

/* A ring, and links, that are longer than what is looked at; and what there is no time for. */
static void test_long_rings(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t pages[PAGES], slots = new_heap(pages), before = 0, first = 0;
	struct ruby_fibers found;
	struct timespec began;

	(void)state;
	synthetic_with(s, F_fiber_next_fiber);
	before_2_5(slots);
	first = before = scene.of[0].fiber;
	for (size_t i = 0; i < FIBERS_LOOKED_AT + 10; i++) {
		uint64_t fiber = synthetic_struct(s, S_fiber);

		synthetic_set(s, before, F_fiber_next_fiber, fiber);
		before = fiber;
	}
	synthetic_set(s, before, F_fiber_next_fiber, first);
	synthetic_set(s, scene.of[1].fiber, F_fiber_next_fiber, first);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	assert_fibers(NULL, 0, LIST_TOO_LONG);
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < MUCH_NS);
	memory_limit(s->ruby.memory, 1000);
	found = list_fibers();
	assert_int_equal(found.missing, LIST_OUT_OF_TIME);
	assert_int_equal(found.count, 0);
	fibers_clear(&found);
}

/* 1.9.3 lists the parts of its heap, each by its first slot and what is behind its last. */
static void test_heap_of_rows(void **state)
{
	struct synthetic *s = scene.s;
	uint64_t pages[PAGES], slots = new_heap(pages), rows, objspace;
	size_t row = (size_t)s->layout->sizes[S_heap_row].value;
	struct access access;

	(void)state;
	synthetic_with(s, F_heap_row_start);
	synthetic_with(s, F_heap_row_end);
	synthetic_without(s, F_heap_page_start);
	synthetic_without(s, F_heap_page_total_slots);
	synthetic_without(s, F_heap_page_slot_size);
	s->layout->sizes[S_rvalue].value = SLOT;
	assert_true(heap_is_known(s->layout));
	rows = synthetic_allocate(s, PAGES * row);
	access = ruby_access(&s->ruby);
	objspace = access_member(&access, s->ruby.vm, F_vm_objspace);
	synthetic_set(s, objspace, F_objspace_pages, rows);
	for (size_t i = 0; i < PAGES; i++) {
		synthetic_set(s, rows + i * row, F_heap_row_start, slots + i * SLOTS * SLOT);
		synthetic_set(s, rows + i * row, F_heap_row_end, slots + (i + 1) * SLOTS * SLOT);
	}
	put_object(slots, scene.of[0].fiber, TYPE);
	put_object(slots + (PAGES * SLOTS - 1) * SLOT, scene.of[1].fiber, TYPE);
	search();
	assert_false(scene.found.cut);
	assert_int_equal(scene.found.data.count, 2);
	/* It ends before it begins. */
	synthetic_set(s, rows + row, F_heap_row_end, slots);
	search();
	assert_true(scene.found.cut);
	assert_int_equal(scene.found.data.count, 2);
	heap_clear(&scene.found);
}

static void test_heap_that_lies(void **state)
{
	static const struct {
		enum layout_member_id id;
		uint64_t value, right;
	} lies[] = {
	    {F_heap_page_start, NOWHERE, 0},	 {F_heap_page_start, 0, 0},
	    {F_heap_page_start, 3, 0},		 {F_heap_page_start, UINT64_MAX & ~UINT64_C(7), 0},
	    {F_heap_page_slot_size, 0, SLOT},	 {F_heap_page_slot_size, 8, SLOT},
	    {F_heap_page_slot_size, 20, SLOT},	 {F_heap_page_slot_size, UINT16_MAX, SLOT},
	    {F_heap_page_slot_size, 4096, SLOT}, {F_heap_page_total_slots, UINT16_MAX, SLOTS},
	};
	struct synthetic *s = scene.s;
	uint64_t pages[PAGES], slots = new_heap(pages), objspace;
	struct access access;

	(void)state;
	put_object(slots, scene.of[0].fiber, TYPE);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint64_t right = lies[i].right ? lies[i].right : slots + (uint64_t)SLOTS * SLOT;

		synthetic_set(s, pages[1], lies[i].id, lies[i].value);
		search();
		assert_true(scene.found.cut);
		assert_int_equal(scene.found.data.count, 1);
		synthetic_set(s, pages[1], lies[i].id, right);
		search();
		assert_false(scene.found.cut);
	}
	access = ruby_access(&s->ruby);
	objspace = access_member(&access, s->ruby.vm, F_vm_objspace);
	synthetic_set(s, objspace, F_objspace_nr_pages, UINT64_MAX);
	search();
	assert_true(scene.found.cut);
	assert_int_equal(scene.found.data.count, 0);
	synthetic_set(s, objspace, F_objspace_nr_pages, PAGES);
	synthetic_unmap(s, slots + SLOTS * SLOT);
	search();
	assert_true(scene.found.cut);
	heap_clear(&scene.found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_heap, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_heap_that_lies, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_saved_threads, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_ring, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_long_rings, set_up_fibers, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_heap_of_rows, set_up_fibers, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
