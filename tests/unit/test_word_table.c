/* A table of three words: what is found again, and that a lookup is short whatever the keys are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/word_table.h"

#define SLOTS 1024u

static struct word_key key(uint64_t number)
{
	return (struct word_key){{number * 40, number, number / 2}};
}

static void test_put_and_forget(void **state)
{
	struct word_table *table = word_table_create(SLOTS);
	struct word_key other = key(7);

	(void)state;
	assert_non_null(table);
	for (uint64_t i = 0; i < SLOTS / 4; i++) {
		assert_null(word_table_find(table, key(i)));
		assert_true(word_table_put(table, key(i), (struct word_value){{i, 2 * i}}));
	}
	assert_int_equal(word_table_count(table), SLOTS / 4);
	for (uint64_t i = 0; i < SLOTS / 4; i++) {
		assert_int_equal(word_table_find(table, key(i))->of[0], i);
		assert_int_equal(word_table_find(table, key(i))->of[1], 2 * i);
	}
	for (unsigned int word = 0; word < 3; word++) {
		other = key(7);
		other.of[word]++;
		assert_null(word_table_find(table, other));
	}
	assert_true(word_table_put(table, key(7), (struct word_value){{99}}));
	assert_int_equal(word_table_find(table, key(7))->of[0], 99);
	assert_int_equal(word_table_count(table), SLOTS / 4);
	word_table_forget(table);
	assert_int_equal(word_table_count(table), 0);
	for (uint64_t i = 0; i < SLOTS / 4; i++)
		assert_null(word_table_find(table, key(i)));
	word_table_destroy(table);
}

/* At most half of the slots are used; what is there can still be given another value. */
static void test_full(void **state)
{
	struct word_table *table = word_table_create(SLOTS);
	uint64_t first = UINT64_MAX, added = 0;

	(void)state;
	assert_non_null(table);
	for (uint64_t i = 0; i < 100 * (uint64_t)SLOTS; i++) {
		if (!word_table_put(table, key(i), (struct word_value){{i}}))
			continue;
		first = first < i ? first : i;
		added++;
	}
	assert_int_equal(added, SLOTS / 2);
	assert_int_equal(word_table_count(table), SLOTS / 2);
	assert_true(word_table_put(table, key(first), (struct word_value){{5}}));
	assert_int_equal(word_table_find(table, key(first))->of[0], 5);
	word_table_destroy(table);
}

/* Keys that all begin at the same slot: those above a few find no room, and the others are found. */
static void test_chosen_keys(void **state)
{
	struct word_table *table = word_table_create(SLOTS);
	unsigned int added = 0;

	(void)state;
	assert_non_null(table);
	for (uint64_t i = 0; i < 200; i++) {
		const struct word_key same = {{i << 1, i, 0}};

		if (word_table_put(table, same, (struct word_value){{i}})) {
			added++;
			assert_int_equal(word_table_find(table, same)->of[0], i);
		} else {
			assert_null(word_table_find(table, same));
		}
	}
	assert_in_range(added, 16, 64);
	word_table_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_put_and_forget),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_chosen_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
