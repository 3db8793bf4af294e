/* The numbers of slots, against a linear search, with pages at any address and of any length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "heap/slots.h"

enum { HEAPS = 200, PAGES_MAX = 40 };

/* What slots_number() should return, and the size of the slot: looks at each slot. */
static uint32_t linear_search(const struct heap_page *pages, size_t count, uint64_t address, uint64_t *size)
{
	uint64_t next = 1;

	for (size_t i = 0; i < count; i++) {
		if (pages[i].damaged)
			continue;
		for (uint64_t slot = 0; slot < pages[i].slots; slot++)
			if (address == pages[i].start + slot * pages[i].slot_size) {
				*size = pages[i].slot_size;
				return (uint32_t)(next + slot);
			}
		next += pages[i].slots;
	}
	return 0;
}

/*
 * Makes pages in ascending order. Some are damaged, some have no slots, and some begin where the one before ends.
 *   bytes_max  how long a page is at most
 *   gap_max    how far a page is from the one before at most
 */
static size_t make_pages(uint64_t *seed, uint64_t bytes_max, uint64_t gap_max, struct heap_page *ret)
{
	const size_t count = random_next(seed) % PAGES_MAX;
	uint64_t at = 8 + random_next(seed) % (UINT64_C(1) << 47) / 8 * 8;

	for (size_t i = 0; i < count; i++) {
		const uint64_t size = 8 + random_next(seed) % 32 * 8;

		if (random_next(seed) % 3 > 0)
			at += random_next(seed) % gap_max / 8 * 8;
		ret[i] = (struct heap_page){.start = at,
					    .slots = random_next(seed) % (bytes_max / size + 1),
					    .slot_size = size,
					    .damaged = random_next(seed) % 8 == 0};
		if (ret[i].damaged)
			ret[i].start = random_next(seed);
		else
			at += ret[i].slots * size;
	}
	return count;
}

static void check_address(const struct slots *slots, const struct heap_page *pages, size_t count, uint64_t address)
{
	const uint32_t number = slots_number(slots, address);
	uint64_t size = 0, expected_size = 0;

	assert_int_equal(number, linear_search(pages, count, address, &expected_size));
	if (number == 0)
		return;
	assert_int_equal(slots_address(slots, number, &size), address);
	assert_int_equal(size, expected_size);
}

/* Checks addresses in and around each page. */
static void check_heap(uint64_t *seed, const struct heap_page *pages, size_t count)
{
	struct slots *slots = slots_create(pages, count);
	uint64_t total = 0;

	assert_non_null(slots);
	for (size_t i = 0; i < count; i++) {
		const struct heap_page *page = &pages[i];
		const uint64_t end = page->start + page->slots * page->slot_size;

		for (uint64_t near = 0; near < 24; near++) {
			check_address(slots, pages, count, page->start - 12 + near);
			check_address(slots, pages, count, end - 12 + near);
			check_address(slots, pages, count, page->start ^ UINT64_C(1) << (near + 12));
		}
		for (int j = 0; j < 20 && page->slots > 0; j++)
			check_address(slots, pages, count,
				      page->start + random_next(seed) % page->slots * page->slot_size);
		if (!page->damaged)
			total += page->slots;
	}
	assert_int_equal(slots_count(slots), total);
	slots_destroy(slots);
}

static void test_any_pages(void **state)
{
	struct heap_page pages[PAGES_MAX];
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < HEAPS; i++) {
		const uint64_t bytes_max = 16 + random_next(&seed) % (HEAP_PAGE_BYTES_MAX - 15);
		const uint64_t gap_max = 16 + (random_next(&seed) >> random_next(&seed) % 40) % (UINT64_C(1) << 32);

		check_heap(&seed, pages, make_pages(&seed, bytes_max, gap_max, pages));
	}
}

/* Thousands of pages with one slot each, in as much memory as one page takes. */
static void test_tiny_pages(void **state)
{
	static struct heap_page pages[8192];
	const uint64_t start = 0x7f0000001008;
	struct slots *slots;

	(void)state;
	for (uint64_t i = 0; i < 8192; i++)
		pages[i] = (struct heap_page){.start = start + i * 16, .slots = 1, .slot_size = 8};
	/* Because of this one, the others are found by the same key. */
	pages[8191].slots = HEAP_PAGE_BYTES_MAX / 8;
	slots = slots_create(pages, 8192);
	assert_non_null(slots);
	for (uint32_t i = 0; i < 8192; i++) {
		assert_int_equal(slots_number(slots, start + (uint64_t)i * 16), i + 1);
		assert_int_equal(slots_number(slots, start + (uint64_t)i * 16 + 8), i < 8191 ? 0 : i + 2);
	}
	slots_destroy(slots);
}

static void test_empty(void **state)
{
	const struct heap_page damaged = {.start = 0x10000, .slots = 3, .slot_size = 40, .damaged = true};
	struct slots *slots = slots_create(NULL, 0);

	(void)state;
	assert_non_null(slots);
	assert_int_equal(slots_count(slots), 0);
	assert_int_equal(slots_number(slots, 0), 0);
	assert_int_equal(slots_number(slots, 0x10000), 0);
	slots_destroy(slots);
	slots = slots_create(&damaged, 1);
	assert_non_null(slots);
	assert_int_equal(slots_count(slots), 0);
	assert_int_equal(slots_number(slots, 0x10000), 0);
	slots_destroy(slots);
}

/* The highest page that heap_pages_next() lets through, and the lowest one. */
static void test_ends_of_memory(void **state)
{
	const struct heap_page pages[] = {
	    {.start = 8, .slots = HEAP_PAGE_BYTES_MAX / 8, .slot_size = 8},
	    {.start = (UINT64_MAX - HEAP_PAGE_BYTES_MAX) / 8 * 8, .slots = HEAP_PAGE_BYTES_MAX / 8, .slot_size = 8},
	};
	uint64_t seed = 2;

	(void)state;
	check_heap(&seed, pages, 2);
}

/* So many slots that their numbers just fit into 32 bits, and one more. */
static void test_most_slots(void **state)
{
	const uint64_t per_page = HEAP_PAGE_BYTES_MAX / 8, count = SLOTS_MAX / per_page + 1;
	struct heap_page *pages = calloc(count, sizeof(*pages));
	struct slots *slots;
	uint64_t size;

	(void)state;
	assert_non_null(pages);
	for (uint64_t i = 0; i < count; i++)
		pages[i] = (struct heap_page){.start = (i + 1) << 20, .slots = per_page, .slot_size = 8};
	pages[count - 1].slots = SLOTS_MAX % per_page;
	slots = slots_create(pages, count);
	assert_non_null(slots);
	assert_int_equal(slots_count(slots), SLOTS_MAX);
	assert_int_equal(slots_number(slots, (count << 20) + (SLOTS_MAX % per_page - 1) * 8), SLOTS_MAX);
	assert_int_equal(slots_address(slots, SLOTS_MAX, &size), (count << 20) + (SLOTS_MAX % per_page - 1) * 8);
	slots_destroy(slots);
	pages[count - 1].slots++;
	assert_null(slots_create(pages, count));
	free(pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_any_pages),  cmocka_unit_test(test_tiny_pages),     cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_most_slots), cmocka_unit_test(test_ends_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
