/*
 * Counting the objects of a synthetic heap, once and twice, and of heaps that no Ruby has: these must be bounded, and must
 * be marked as incomplete.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "heap/progress.h"
#include "heap/sums.h"
#include "synthetic_heap.h"

/* More than what is bounded takes, sanitized and on a busy machine. */
#define MUCH_NS 20000000000L

/* Frees a slot. */
static void take(size_t page, uint64_t slot)
{
	synthetic_set(heap_scene.s, heap_scene.start[page] + slot * SLOT, F_basic_flags, 0);
}

/* A page that is kept without slots is no page that cannot be read. */
static void test_page_without_slots(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		heap_scene_put(PAGES - 1, i, E_RUBY_T_FLOAT, 0x1000);
	synthetic_set(heap_scene.s, heap_scene.pages[0], F_heap_page_start, 0);
	synthetic_set(heap_scene.s, heap_scene.pages[0], F_heap_page_total_slots, 0);
	synthetic_set(heap_scene.s, heap_scene.pages[0], F_heap_page_slot_size, 0);
	heap_scene_begin(false, false);
	heap_count_once(&heap_scene.count);
	assert_int_equal(heap_scene.count.totals.objects, 10);
	assert_int_equal(heap_scene.count.totals.unread, 0);
	assert_false(heap_scene.count.incomplete);
	/* If it has slots after all, it is damaged. */
	synthetic_set(heap_scene.s, heap_scene.pages[0], F_heap_page_total_slots, 1);
	heap_count_once(&heap_scene.count);
	assert_int_equal(heap_scene.count.totals.unread, 1);
	assert_true(heap_scene.count.incomplete);
}

/* More pages without slots than there is room for their descriptions, and more than are read at a time. */
static void test_many_pages_without_slots(void **state)
{
	enum { UNUSED = 9500 };
	const uint64_t list = synthetic_allocate(heap_scene.s, (PAGES + UNUSED) * 8);
	struct addresses pages = {0};

	(void)state;
	for (uint64_t i = 0; i < PAGES; i++)
		heap_scene_put(i, i, E_RUBY_T_FLOAT, 0x1000);
	synthetic_put_word(heap_scene.s, list, heap_scene.pages[0]);
	for (uint64_t i = 1; i <= UNUSED; i++) {
		const uint64_t page = synthetic_struct(heap_scene.s, S_heap_page);

		synthetic_allocate(heap_scene.s, MEMORY_PAGE);
		synthetic_set(heap_scene.s, page, F_heap_page_start, 0);
		synthetic_set(heap_scene.s, page, F_heap_page_total_slots, 0);
		synthetic_set(heap_scene.s, page, F_heap_page_slot_size, 0);
		synthetic_put_word(heap_scene.s, list + i * 8, page);
	}
	for (uint64_t i = 1; i < PAGES; i++)
		synthetic_put_word(heap_scene.s, list + (UNUSED + i) * 8, heap_scene.pages[i]);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_pages, list);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, PAGES + UNUSED);
	heap_scene_begin(false, false);
	heap_count_once(&heap_scene.count);
	assert_int_equal(heap_scene.count.totals.objects, PAGES);
	assert_int_equal(heap_scene.count.totals.pages, PAGES);
	assert_int_equal(heap_scene.count.totals.unread, 0);
	assert_false(heap_scene.count.incomplete);
	for (size_t i = 0; i < PAGES; i++)
		assert_true(addresses_add(&pages, heap_scene.pages[i]));
	addresses_sort(&pages);
	assert_int_equal(heap_copy_still_listed(heap_scene.count.copy, &pages), PAGES);
	addresses_clear(&pages);
}

/* Threads copy some batches ahead, and no page is lost, counted twice or out of order. */
static void test_parallel(void **state)
{
	enum { MANY = 1200, USED = 20 };
	const uint64_t list = synthetic_allocate(heap_scene.s, MANY * 8);
	uint64_t page;

	(void)state;
	for (uint64_t i = 0; i < MANY; i++) {
		const uint64_t start = heap_scene_add_page(list, i, &page);

		for (uint64_t slot = 0; slot < USED; slot++) {
			const enum layout_enumerator_id type = slot < i % USED ? E_RUBY_T_FLOAT : E_RUBY_T_COMPLEX;

			synthetic_set(heap_scene.s, start + slot * SLOT, F_basic_flags,
				      synthetic_enum(heap_scene.s, type));
			synthetic_set(heap_scene.s, start + slot * SLOT, F_basic_klass, 0x1000);
		}
	}
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_pages, list);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, MANY);
	heap_scene_begin(true, true);
	for (int i = 0; i < 3; i++) {
		heap_count_twice(&heap_scene.count);
		assert_false(heap_scene.count.incomplete);
		assert_int_equal(heap_scene.count.totals.pages, MANY);
		assert_int_equal(heap_scene.count.totals.objects, MANY * USED);
		assert_int_equal(heap_scene_group(E_RUBY_T_FLOAT, 0x1000)->objects,
				 MANY / USED * (USED * (USED - 1) / 2));
		assert_true(heap_count_is_same(&heap_scene.count));
	}
}

static void test_once(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		heap_scene_put(i % PAGES, i, E_RUBY_T_FLOAT, 0x1000);
	heap_scene_put(0, 50, E_RUBY_T_COMPLEX, 0x1000);
	heap_scene_put(0, 51, E_RUBY_T_COMPLEX, 0x2000);
	heap_scene_put(1, 50, E_RUBY_T_DATA, 0x2000);
	heap_scene_begin(false, false);
	heap_count_once(&heap_scene.count);
	assert_false(heap_scene.count.incomplete);
	assert_int_equal(heap_scene.count.totals.pages, PAGES);
	assert_int_equal(heap_scene.count.totals.slots, PAGES * SLOTS);
	assert_int_equal(heap_scene.count.totals.free, PAGES * SLOTS - 43);
	assert_int_equal(heap_scene.count.totals.objects, 43);
	assert_int_equal(heap_scene_group(E_RUBY_T_FLOAT, 0x1000)->objects, 40);
	assert_int_equal(heap_scene_group(E_RUBY_T_FLOAT, 0x1000)->slot_bytes, 40 * SLOT);
	assert_int_equal(heap_scene_group(E_RUBY_T_FLOAT, 0x1000)->inexact, 0);
	assert_int_equal(heap_scene_group(E_RUBY_T_COMPLEX, 0x1000)->objects, 1);
	assert_int_equal(heap_scene_group(E_RUBY_T_COMPLEX, 0x2000)->objects, 1);
	assert_int_equal(heap_scene_group(E_RUBY_T_DATA, 0x2000)->inexact, 1);
}

/* ^C ends a reading, and no other one. */
static void test_interrupt(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < PAGES; i++)
		heap_scene_put(i, 0, E_RUBY_T_FLOAT, 0x1000);
	heap_scene_begin(false, false);
	progress_begin();
	for (uint64_t i = 0; progress_goes_on(i, PAGES); i++) {
		assert_in_range(i, 0, 3);
		if (i == 3)
			raise(SIGINT);
	}
	heap_count_once(&heap_scene.count);
	progress_end();
	assert_true(progress_was_interrupted());
	assert_true(heap_scene.count.late);
	assert_true(heap_scene.count.incomplete);
	assert_int_equal(heap_scene.count.totals.objects, 0);
	/* The next reading is another one. */
	progress_begin();
	heap_count_once(&heap_scene.count);
	progress_end();
	assert_false(heap_scene.count.incomplete);
	assert_int_equal(heap_scene.count.totals.objects, PAGES);
}

/* A reading that ^C ends does not replace the one before it. */
static void test_restore(void **state)
{
	uint64_t low, high;

	(void)state;
	for (uint64_t i = 0; i < 30; i++)
		heap_scene_put(0, i, E_RUBY_T_FLOAT, 0x1000);
	heap_scene_begin(false, false);
	heap_count_twice(&heap_scene.count);
	heap_count_keep(&heap_scene.count);
	heap_scene_put(1, 0, E_RUBY_T_COMPLEX, 0x1000);
	heap_count_twice(&heap_scene.count);
	assert_int_equal(heap_scene.count.totals.objects, 31);
	heap_scene.count.deadline_ns = 0;
	heap_count_twice(&heap_scene.count);
	assert_true(heap_scene.count.late);
	assert_int_equal(heap_scene.count.totals.objects, 0);
	assert_true(heap_count_restore(&heap_scene.count));
	assert_false(heap_scene.count.late);
	assert_false(heap_scene.count.incomplete);
	assert_int_equal(heap_scene.count.totals.objects, 30);
	assert_int_equal(heap_scene_group(E_RUBY_T_FLOAT, 0x1000)->objects, 30);
	assert_int_equal(heap_scene_group(E_RUBY_T_COMPLEX, 0x1000)->objects, 0);
	heap_count_range(&heap_scene.count, heap_scene_group(E_RUBY_T_FLOAT, 0x1000), false, true, &low, &high);
	assert_int_equal(low, 30);
	assert_int_equal(high, 30);
	assert_false(heap_count_restore(&heap_scene.count));
}

/* What a slot had at one of both readings only is possible; what it had at both is certain. */
static void test_twice(void **state)
{
	uint64_t low, high;

	(void)state;
	for (uint64_t i = 0; i < 30; i++)
		heap_scene_put(0, i, E_RUBY_T_FLOAT, 0x1000);
	heap_scene_begin(false, false);
	heap_scene.changes = true;
	heap_count_twice(&heap_scene.count);
	heap_count_range(&heap_scene.count, heap_scene_group(E_RUBY_T_FLOAT, 0x1000), false, true, &low, &high);
	assert_int_equal(low, 25);
	assert_int_equal(high, 42);
	heap_count_range(&heap_scene.count, heap_scene_group(E_RUBY_T_COMPLEX, 0x1000), false, true, &low, &high);
	assert_int_equal(low, 0);
	assert_int_equal(high, 5);
	/* If a collection has begun in between, only old objects are certain, and not even these if old ones are freed. */
	heap_count_range(&heap_scene.count, heap_scene_group(E_RUBY_T_FLOAT, 0x1000), true, true, &low, &high);
	assert_int_equal(low, 0);
	assert_int_equal(high, 42);
}

/* The reading of the sizes is the first one: enough if nothing has changed since. */
static void test_after_sizes(void **state)
{
	uint64_t low, high;

	(void)state;
	for (uint64_t i = 0; i < 30; i++)
		heap_scene_put(0, i, E_RUBY_T_FLOAT, 0x1000);
	heap_scene_begin(false, false);
	heap_count_sizes(&heap_scene.count);
	heap_count_after_sizes(&heap_scene.count);
	assert_true(heap_count_is_same(&heap_scene.count));
	heap_count_range(&heap_scene.count, heap_scene_group(E_RUBY_T_FLOAT, 0x1000), false, true, &low, &high);
	assert_int_equal(low, 30);
	assert_int_equal(high, 30);
	/* As many objects as before, but not the same ones. */
	heap_count_sizes(&heap_scene.count);
	take(0, 0);
	heap_scene_put(0, 30, E_RUBY_T_FLOAT, 0x1000);
	heap_count_after_sizes(&heap_scene.count);
	assert_int_equal(heap_scene_group(E_RUBY_T_FLOAT, 0x1000)->objects, 30);
	assert_false(heap_count_is_same(&heap_scene.count));
	/* One is gone, and there is none of its class any more. */
	heap_scene_put(1, 0, E_RUBY_T_COMPLEX, 0x1000);
	heap_count_sizes(&heap_scene.count);
	take(1, 0);
	heap_count_after_sizes(&heap_scene.count);
	assert_false(heap_count_is_same(&heap_scene.count));
	/* The same ranges as those of two readings of their own. */
	heap_scene_put(0, 0, E_RUBY_T_FLOAT, 0x1000);
	take(0, 30);
	heap_scene.changes = true;
	heap_count_sizes(&heap_scene.count);
	heap_count_after_sizes(&heap_scene.count);
	assert_false(heap_count_is_same(&heap_scene.count));
	heap_count_range(&heap_scene.count, heap_scene_group(E_RUBY_T_FLOAT, 0x1000), false, true, &low, &high);
	assert_int_equal(low, 25);
	assert_int_equal(high, 42);
}

/* While a page is put into the list, the last page of the list is behind its end. */
static void test_list_that_moves(void **state)
{
	(void)state;
	heap_scene_put(PAGES - 1, 0, E_RUBY_T_FLOAT, 0x1000);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, PAGES - 1);
	heap_scene.moves = 1;
	heap_scene_begin(true, false);
	heap_count_once(&heap_scene.count);
	assert_int_equal(heap_scene.moves, 0);
	assert_int_equal(heap_scene.count.totals.pages, PAGES);
	assert_int_equal(heap_scene.count.totals.objects, 1);
	assert_false(heap_scene.count.incomplete);
	/* It is another one at each time. */
	heap_scene.moves = UINT64_MAX;
	heap_count_once(&heap_scene.count);
	assert_true(heap_scene.count.incomplete);
	heap_scene.moves = 0;
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, PAGES);
	heap_count_once(&heap_scene.count);
	assert_false(heap_scene.count.incomplete);
}

/* An object that is not marked, in a page that is not swept, is dead. */
static void test_dead(void **state)
{
	size_t dead = 0;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		heap_scene_put(0, i, E_RUBY_T_FLOAT, 0x1000);
	synthetic_set(heap_scene.s, heap_scene.pages[0], F_heap_page_before_sweep, 1);
	for (size_t i = 0; i < 64; i++) {
		const uint8_t none = 0;

		synthetic_put(heap_scene.s,
			      heap_scene.pages[0] + heap_scene.s->layout->members[F_heap_page_mark_bits].offset + i,
			      &none, 1);
	}
	heap_scene_begin(false, false);
	heap_count_once(&heap_scene.count);
	for (size_t i = CENSUS_OTHERS; i < census_end(heap_scene.count.census); i++)
		if (census_group(heap_scene.count.census, (uint16_t)i)->kind.dead)
			dead += census_group(heap_scene.count.census, (uint16_t)i)->objects;
	assert_int_equal(dead, 10);
	assert_int_equal(heap_scene.count.totals.dead, 10);
	assert_int_equal(heap_scene.count.totals.objects, 0);
}

/* A String that says that it owns so many bytes. */
static void put_string(uint64_t slot, uint64_t capacity)
{
	const uint64_t at = heap_scene.start[0] + slot * SLOT;

	heap_scene_put(0, slot, E_RUBY_T_STRING, 0x1000);
	synthetic_set(heap_scene.s, at, F_basic_flags,
		      synthetic_enum(heap_scene.s, E_RUBY_T_STRING) | synthetic_enum(heap_scene.s, E_RSTRING_NOEMBED));
	synthetic_set(heap_scene.s, at, F_string_capa, capacity);
}

/* No object owns more than the target has, and sums do not wrap around. */
static void test_owned(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		put_string(i, i < 3 ? 1000 : 900);
	heap_scene_begin(false, false);
	heap_scene.count.owned_max = 950;
	heap_count_once(&heap_scene.count);
	assert_int_equal(heap_scene_group(E_RUBY_T_STRING, 0x1000)->objects, 10);
	assert_int_equal(heap_scene_group(E_RUBY_T_STRING, 0x1000)->owned_bytes, 7 * 901);
	assert_int_equal(heap_scene_group(E_RUBY_T_STRING, 0x1000)->inexact, 3);
	for (uint64_t i = 0; i < 10; i++)
		put_string(i, UINT64_MAX / 4);
	heap_scene.count.owned_max = UINT64_MAX;
	heap_count_once(&heap_scene.count);
	assert_int_equal(heap_scene_group(E_RUBY_T_STRING, 0x1000)->owned_bytes, SUM_MAX);
}

/* Each object has a class of its own. */
static void test_too_many_groups(void **state)
{
	struct census *census = census_create();
	struct census_kind kind = {.type = 1};

	(void)state;
	assert_non_null(census);
	for (uint64_t i = 1; i < 2 * CENSUS_GROUPS; i++) {
		kind.klass = i * 8;
		const uint16_t number = census_find(census, &kind);

		assert_true(i >= CENSUS_GROUPS ? number == CENSUS_OTHERS : number != CENSUS_FREE);
	}
	assert_int_equal(census_end(census), CENSUS_GROUPS + 1);
	kind.klass = 8;
	assert_int_not_equal(census_find(census, &kind), CENSUS_OTHERS);
	census_destroy(census);
}

static void count_damaged(size_t pages)
{
	struct timespec began;

	heap_scene_begin(false, false);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	heap_count_once(&heap_scene.count);
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < MUCH_NS);
	assert_true(heap_scene.count.incomplete);
	assert_int_equal(heap_scene.count.totals.pages, pages);
}

static void test_slot_size(void **state)
{
	static const uint64_t sizes[] = {0, 1, 12, 8, 0xffff, 4104};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		synthetic_set(heap_scene.s, heap_scene.pages[1], F_heap_page_slot_size, sizes[i]);
		count_damaged(PAGES - 1);
		heap_count_clear(&heap_scene.count);
	}
}

static void test_too_many_slots(void **state)
{
	(void)state;
	synthetic_set(heap_scene.s, heap_scene.pages[1], F_heap_page_total_slots, 0xffff);
	count_damaged(PAGES - 1);
}

static void test_start_nowhere(void **state)
{
	(void)state;
	synthetic_set(heap_scene.s, heap_scene.pages[2], F_heap_page_start, UINT64_MAX - 7);
	count_damaged(PAGES - 1);
}

static void test_pages_overlap(void **state)
{
	(void)state;
	synthetic_set(heap_scene.s, heap_scene.pages[1], F_heap_page_start, heap_scene.start[0] + SLOT);
	count_damaged(PAGES - 1);
}

/* The same page again and again. */
static void test_one_page_for_ever(void **state)
{
	uint64_t objspace, list = synthetic_allocate(heap_scene.s, 1 << 20);

	(void)state;
	for (uint64_t i = 0; i < (1 << 20) / 8; i++)
		synthetic_put_word(heap_scene.s, list + i * 8, heap_scene.pages[0]);
	memcpy(&objspace,
	       heap_scene.s->bytes + (heap_scene.s->ruby.vm - SYNTHETIC_BASE) +
		   heap_scene.s->layout->members[F_vm_objspace].offset,
	       8);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_pages, list);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, (1 << 20) / 8);
	count_damaged(1);
}

static void test_page_not_mapped(void **state)
{
	(void)state;
	synthetic_unmap(heap_scene.s, heap_scene.start[2] + SLOTS * SLOT / 2);
	heap_scene_begin(false, false);
	heap_count_once(&heap_scene.count);
	assert_true(heap_scene.count.incomplete);
	assert_true(heap_scene.count.totals.unread >= 1);
}

/* Behind the list, there is nothing. */
static void test_list_too_long(void **state)
{
	uint64_t objspace;

	(void)state;
	memcpy(&objspace,
	       heap_scene.s->bytes + (heap_scene.s->ruby.vm - SYNTHETIC_BASE) +
		   heap_scene.s->layout->members[F_vm_objspace].offset,
	       8);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, 1 << 24);
	heap_scene_put(1, 7, E_RUBY_T_FLOAT, 0x1000);
	count_damaged(PAGES);
	assert_int_equal(heap_scene.count.totals.objects, 1);
	/* One for each page of memory of the list, not one for each element. */
	assert_in_range(heap_scene.count.totals.unread, 1, (1 << 24) / (MEMORY_PAGE / 8) + MEMORY_PAGE);
}

static void test_list_nowhere(void **state)
{
	uint64_t objspace;

	(void)state;
	memcpy(&objspace,
	       heap_scene.s->bytes + (heap_scene.s->ruby.vm - SYNTHETIC_BASE) +
		   heap_scene.s->layout->members[F_vm_objspace].offset,
	       8);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_pages, NOWHERE);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, UINT64_MAX);
	heap_scene_begin(false, false);
	heap_count_twice(&heap_scene.count);
	assert_true(heap_scene.count.incomplete);
	assert_int_equal(heap_scene.count.totals.pages, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, heap_scene_set_up, heap_scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_page_without_slots),
	    TEST(test_many_pages_without_slots),
	    TEST(test_parallel),
	    TEST(test_once),
	    TEST(test_interrupt),
	    TEST(test_restore),
	    TEST(test_twice),
	    TEST(test_after_sizes),
	    TEST(test_list_that_moves),
	    TEST(test_dead),
	    TEST(test_owned),
	    TEST(test_too_many_groups),
	    TEST(test_slot_size),
	    TEST(test_too_many_slots),
	    TEST(test_start_nowhere),
	    TEST(test_pages_overlap),
	    TEST(test_one_page_for_ever),
	    TEST(test_page_not_mapped),
	    TEST(test_list_too_long),
	    TEST(test_list_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
