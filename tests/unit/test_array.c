/* Arrays that grow, the search in sorted ones, and tables that find what is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/index_table.h"

#define COUNT 5000u

static void test_capacity(void **state)
{
	uint16_t *items = NULL;
	uint32_t capacity = 0;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_true(array_make_room(items, capacity, i + 1));
		assert_true(capacity > i && capacity <= 2 * (i + 1) + 4);
		items[i] = (uint16_t)i;
	}
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(items[i], i);
	/* What there is room for is not moved. */
	assert_true(array_make_room(items, capacity, capacity));
	free(items);
}

static void test_nothing_wanted(void **state)
{
	int *items = NULL;
	size_t capacity = 0;

	(void)state;
	assert_true(array_make_room(items, capacity, 0));
	assert_non_null(items);
	free(items);
}

static void test_too_much(void **state)
{
	const size_t much[] = {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 8};
	uint64_t *items = NULL, *before;
	size_t capacity = 0;

	(void)state;
	assert_true(array_make_room(items, capacity, 10));
	before = items;
	for (size_t i = 0; i < sizeof(much) / sizeof(much[0]); i++) {
		assert_false(array_make_room(items, capacity, much[i]));
		assert_ptr_equal(items, before);
		assert_in_range(capacity, 10, 100);
	}
	free(items);
}

/* With nobody who keeps the capacity: also after some have been taken away. */
static void test_one_by_one(void **state)
{
	uint32_t *items = NULL, count = 0;

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		for (count /= 3; count < 1000; count++) {
			assert_true(array_make_room_for_one(items, count));
			items[count] = count;
		}
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(items[i], i);
	}
	free(items);
}

/* The same as what a walk along the array finds, in arrays of every length, with gaps and with like items. */
static void test_first(void **state)
{
	uint32_t items[40];

	(void)state;
	for (size_t count = 0; count <= 40; count++) {
		for (size_t i = 0; i < count; i++)
			items[i] = (uint32_t)(i / 3 * 2);
		for (uint32_t wanted = 0; wanted < 30; wanted++) {
			size_t at = 0;

			while (at < count && items[at] < wanted)
				at++;
			assert_int_equal(array_first(items, count, item, *item >= wanted), at);
		}
	}
	assert_int_equal(array_first((uint32_t *)NULL, 0, item, *item > 0), 0);
}

struct item {
	uint32_t key, other;
};

/* Few different ones, so that many share a slot. */
static uint64_t hash(const void *item)
{
	return hash_begin(((const struct item *)item)->key % 100);
}

static bool same(const void *a, const void *b)
{
	return ((const struct item *)a)->key == ((const struct item *)b)->key;
}

static const struct index_items of = {sizeof(struct item), hash, same};

static void test_index_table(void **state)
{
	static struct item items[COUNT];
	struct index_table table = {0};
	const struct item absent = {.key = COUNT};

	(void)state;
	assert_int_equal(index_table_find(&table, &of, items, &absent), UINT32_MAX);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t *slot;

		items[i] = (struct item){.key = i, .other = i * 2};
		assert_true(index_table_make_room(&table, &of, items));
		slot = index_table_slot(&table, &of, items, &items[i]);
		assert_int_equal(*slot, 0);
		index_table_enter(&table, slot, i);
		assert_int_equal(*index_table_slot(&table, &of, items, &items[i]) - 1, i);
		assert_true(table.used * 2 <= table.size);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct item key = {.key = i};

		assert_int_equal(index_table_find(&table, &of, items, &key), i);
	}
	assert_int_equal(index_table_find(&table, &of, items, &absent), UINT32_MAX);
	index_table_clear(&table);
	assert_int_equal(index_table_find(&table, &of, items, &items[0]), UINT32_MAX);
}

static void test_hashes(void **state)
{
	(void)state;
	assert_true(hash_text("a") == hash_text("a"));
	assert_true(hash_text("a") != hash_text("b"));
	assert_true(hash_text("") != hash_text("a"));
	assert_true(hash_begin(1) == hash_begin(1));
	assert_true(hash_mix(hash_begin(1), 2) != hash_mix(hash_begin(2), 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_capacity), cmocka_unit_test(test_nothing_wanted),
	    cmocka_unit_test(test_too_much), cmocka_unit_test(test_one_by_one),
	    cmocka_unit_test(test_first),    cmocka_unit_test(test_index_table),
	    cmocka_unit_test(test_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
