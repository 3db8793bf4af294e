/* Hash tables as four eras of Ruby keep them: entries in a row, in lists, and two kinds of short rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ruby/st.h"
#include "synthetic.h"

#define FACTOR	     3 /* record = FACTOR * key */
#define DELETED_HASH UINT64_MAX

enum { BINS = 7, LIMIT = 100 };

struct sum {
	uint64_t keys, records;
	size_t count, stop_after;
};

static bool add(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct sum *sum = context;

	assert_false(access->failed);
	sum->keys += key;
	sum->records += record;
	return ++sum->count != sum->stop_after;
}

/* What is in a table, and whether its end was reached. */
static struct sum sum_of(struct synthetic *s, uint64_t table, size_t limit, size_t stop_after, bool *ended)
{
	struct access access = ruby_access(&s->ruby);
	struct sum sum = {.stop_after = stop_after};

	*ended = st_each(&access, table, limit, add, &sum);
	return sum;
}

static void assert_sum(struct synthetic *s, uint64_t table, size_t count, uint64_t keys)
{
	bool ended;
	struct sum sum = sum_of(s, table, LIMIT, 0, &ended);

	assert_true(ended);
	assert_int_equal(sum.count, count);
	assert_int_equal(sum.keys, keys);
	assert_int_equal(sum.records, FACTOR * keys);
	if (count < 2)
		return;
	assert_int_equal(sum_of(s, table, LIMIT, 1, &ended).count, 1);
	assert_false(ended);
	assert_int_equal(sum_of(s, table, count - 1, 0, &ended).count, count - 1);
	assert_false(ended);
	assert_int_equal(sum_of(s, table, count, 0, &ended).count, count);
	assert_true(ended);
}

static void assert_unreadable(struct synthetic *s, uint64_t table)
{
	struct access access = ruby_access(&s->ruby);
	struct sum sum = {0};
	uint64_t record;

	assert_false(st_each(&access, table, LIMIT, add, &sum));
	assert_true(access.failed);
	assert_int_equal(sum.count, 0);
	access = ruby_access(&s->ruby);
	assert_false(st_lookup(&access, table, 1, &record));
	assert_true(access.failed);
}

static void assert_found(struct synthetic *s, uint64_t table, uint64_t key, bool expected)
{
	struct access access = ruby_access(&s->ruby);
	uint64_t record = 0;

	assert_int_equal(st_lookup(&access, table, key, &record), expected);
	assert_false(access.failed);
	if (expected)
		assert_int_equal(record, FACTOR * key);
}

static void set_entry(struct synthetic *s, uint64_t entry, uint64_t key)
{
	synthetic_set(s, entry, F_st_entry_hash, key);
	synthetic_set(s, entry, F_st_entry_key, key);
	synthetic_set(s, entry, F_st_entry_record, FACTOR * key);
}

/* Since 2.4. */
static void test_row(void **state)
{
	struct synthetic *s = *state;
	uint64_t size = (uint64_t)s->layout->sizes[S_st_entry].value, table = synthetic_struct(s, S_st);
	uint64_t entries = synthetic_allocate(s, 6 * size);

	for (uint64_t i = 0; i < 6; i++)
		set_entry(s, entries + i * size, 10 + i);
	synthetic_set(s, table, F_st_entries, entries);
	synthetic_set(s, table, F_st_entries_start, 1);
	synthetic_set(s, table, F_st_entries_bound, 5);
	assert_sum(s, table, 4, 11 + 12 + 13 + 14);
	synthetic_set(s, entries + 4 * size, F_st_entry_hash, DELETED_HASH);
	assert_int_equal(sum_of(s, table, LIMIT, 0, &(bool){false}).keys, 11 + 12 + 13);
	synthetic_set(s, table, F_st_entries_start, 5);
	assert_sum(s, table, 0, 0);
	synthetic_set(s, table, F_st_entries_start, 1);
	synthetic_set(s, table, F_st_entries, NOWHERE);
	assert_int_equal(sum_of(s, table, LIMIT, 0, &(bool){false}).count, 0);
}

static void use_lists(struct synthetic *s)
{
	synthetic_without(s, F_st_entries);
	synthetic_with(s, F_st_bins);
}

/* Until 2.3: entry of key k in list k % BINS, the last one first. */
static uint64_t lists_of(struct synthetic *s, const uint64_t *keys, size_t count)
{
	uint64_t table = synthetic_struct(s, S_st), bins = synthetic_allocate(s, BINS * 8), heads[BINS] = {0};

	for (size_t i = 0; i < count; i++) {
		uint64_t entry = synthetic_struct(s, S_st_entry);

		set_entry(s, entry, keys[i]);
		synthetic_set(s, entry, F_st_entry_next, heads[keys[i] % BINS]);
		heads[keys[i] % BINS] = entry;
	}
	synthetic_put(s, bins, heads, sizeof(heads));
	synthetic_set(s, table, F_st_bins, bins);
	synthetic_set(s, table, F_st_num_bins, BINS);
	synthetic_set(s, table, F_st_num_entries, count);
	return table;
}

static void test_lists(void **state)
{
	static const uint64_t keys[] = {1, 8, 15, 5, UINT64_C(1) << 60};
	struct synthetic *s = *state;
	struct access access;
	struct sum sum = {0};
	uint64_t table;

	use_lists(s);
	table = lists_of(s, keys, 5);
	assert_sum(s, table, 5, 29 + (UINT64_C(1) << 60));
	for (size_t i = 0; i < 5; i++)
		assert_found(s, table, keys[i], true);
	assert_found(s, table, 22, false);
	assert_found(s, table, 3, false);
	/* Of one that says it has more, nothing is known to be absent. */
	synthetic_set(s, table, F_st_num_entries, 6);
	access = ruby_access(&s->ruby);
	assert_false(st_each(&access, table, LIMIT, add, &sum));
	assert_true(access.failed);
	synthetic_set(s, table, F_st_num_entries, 5);
	synthetic_set(s, table, F_st_num_bins, UINT64_C(1) << 40);
	assert_int_equal(sum_of(s, table, LIMIT, 0, &(bool){false}).count, 0);
	synthetic_set(s, table, F_st_bins, NOWHERE);
	synthetic_set(s, table, F_st_num_bins, BINS);
	assert_unreadable(s, table);
	assert_unreadable(s, NOWHERE);
}

/* A list that leads back into itself ends. */
static void test_circle(void **state)
{
	static const uint64_t keys[] = {1, 8};
	struct synthetic *s = *state;
	struct access access;
	uint64_t table, entry, record;
	bool ended;

	use_lists(s);
	table = lists_of(s, keys, 2);
	access = ruby_access(&s->ruby);
	entry = access_word(&access, access_member(&access, table, F_st_bins) + 8);
	synthetic_set(s, access_member(&access, entry, F_st_entry_next), F_st_entry_next, entry);
	assert_int_equal(sum_of(s, table, LIMIT, 0, &ended).count, LIMIT);
	assert_false(ended);
	access = ruby_access(&s->ruby);
	assert_false(st_lookup(&access, table, 15, &record));
}

/* 2.0 to 2.3, few entries. */
static void test_packed(void **state)
{
	struct synthetic *s = *state;
	uint64_t size = (uint64_t)s->layout->sizes[S_st_packed].value, table = synthetic_struct(s, S_st);
	uint64_t entries = synthetic_allocate(s, 4 * size);

	use_lists(s);
	for (uint64_t i = 0; i < 4; i++) {
		synthetic_set(s, entries + i * size, F_st_packed_key, 20 + i);
		synthetic_set(s, entries + i * size, F_st_packed_val, FACTOR * (20 + i));
	}
	synthetic_set(s, table, F_st_entries_packed, 1);
	synthetic_set(s, table, F_st_packed, entries);
	synthetic_set(s, table, F_st_real_entries, 3);
	assert_sum(s, table, 3, 20 + 21 + 22);
	assert_found(s, table, 22, true);
	assert_found(s, table, 23, false);
	/* There is room for six. */
	synthetic_set(s, table, F_st_real_entries, 7);
	assert_unreadable(s, table);
	synthetic_set(s, table, F_st_real_entries, 3);
	synthetic_set(s, table, F_st_packed, NOWHERE);
	assert_unreadable(s, table);
}

/* Deleted entries, and lists without entries, take steps, too: a hostile table can have any number of them. */
static void test_steps(void **state)
{
	struct synthetic *s = *state;
	uint64_t table = synthetic_struct(s, S_st), size = (uint64_t)s->layout->sizes[S_st_entry].value;
	uint64_t entries = synthetic_allocate(s, 20 * size), empty[BINS] = {0}, bins, steps;
	struct access access;
	struct sum sum = {0};

	for (uint64_t i = 0; i < 20; i++)
		synthetic_set(s, entries + i * size, F_st_entry_hash, DELETED_HASH);
	synthetic_set(s, table, F_st_entries, entries);
	synthetic_set(s, table, F_st_entries_start, 0);
	synthetic_set(s, table, F_st_entries_bound, 20);
	synthetic_set(s, table, F_st_entry_power, 5);
	for (steps = 0; steps < 20; steps++) {
		uint64_t left = steps;

		access = ruby_access(&s->ruby);
		assert_false(st_each_step(&access, table, &left, add, &sum));
		assert_false(access.failed);
		assert_int_equal(left, 0);
	}
	steps = 21;
	access = ruby_access(&s->ruby);
	assert_true(st_each_step(&access, table, &steps, add, &sum));
	assert_int_equal(steps, 1);
	/* More entries than there is room for, or than there are: memory that is used for something else. */
	synthetic_set(s, table, F_st_entry_power, 4);
	access = ruby_access(&s->ruby);
	assert_false(st_each_step(&access, table, &steps, add, &sum));
	assert_true(access.failed);
	synthetic_set(s, table, F_st_entry_power, 5);
	synthetic_set(s, table, F_st_num_entries, 22);
	access = ruby_access(&s->ruby);
	assert_false(st_each_step(&access, table, &steps, add, &sum));
	assert_true(access.failed);
	assert_int_equal(steps, 1);
	synthetic_set(s, table, F_st_num_entries, 0);
	assert_int_equal(sum.count, 0);

	use_lists(s);
	table = synthetic_struct(s, S_st);
	bins = synthetic_allocate(s, sizeof(empty));
	synthetic_put(s, bins, empty, sizeof(empty));
	synthetic_set(s, table, F_st_bins, bins);
	synthetic_set(s, table, F_st_num_bins, BINS);
	synthetic_set(s, table, F_st_num_entries, 0);
	synthetic_set(s, table, F_st_entries_packed, 0);
	steps = BINS - 1;
	access = ruby_access(&s->ruby);
	assert_false(st_each_step(&access, table, &steps, add, &sum));
	steps = BINS;
	assert_true(st_each_step(&access, table, &steps, add, &sum));
	assert_int_equal(steps, 0);
}

/* 1.9.3, few entries: keys and records in the place of the lists. */
static void test_packed_pairs(void **state)
{
	struct synthetic *s = *state;
	uint64_t words[] = {30, 90, 31, 93, 32, 96, 33, 99}, table = synthetic_struct(s, S_st);
	uint64_t pairs = synthetic_allocate(s, sizeof(words));

	use_lists(s);
	synthetic_without(s, F_st_packed);
	synthetic_put(s, pairs, words, sizeof(words));
	synthetic_set(s, table, F_st_entries_packed, 1);
	synthetic_set(s, table, F_st_bins, pairs);
	synthetic_set(s, table, F_st_num_entries, 3);
	assert_sum(s, table, 3, 30 + 31 + 32);
	assert_found(s, table, 31, true);
	assert_found(s, table, 33, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_row, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_lists, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_circle, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_packed, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_steps, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_packed_pairs, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
