/* Names of IDs, as several eras of Ruby store them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/symbol.h"
#include "synthetic.h"

static void assert_symbol(struct synthetic *s, uint64_t id, const char *expected)
{
	struct access access = ruby_access(&s->ruby);
	struct bytes name = symbol_name(&s->ruby, &access, id);

	assert_false(access.failed);
	assert_true(value_bytes_are(&access, name, expected));
}

static void assert_no_symbol(struct synthetic *s, uint64_t id)
{
	struct access access = ruby_access(&s->ruby);

	assert_int_equal(symbol_name(&s->ruby, &access, id).address, 0);
	assert_true(access.failed);
}

static void test_symbols(void **state)
{
	struct synthetic *s = *state;
	uint64_t ids[60];
	char name[32];

	/* Over several of the inner Arrays. */
	for (size_t i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "name_%zu", i);
		ids[i] = synthetic_id(s, name);
	}
	for (size_t i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "name_%zu", i);
		assert_symbol(s, ids[i], name);
		/* The scope (local, constant, …) is no part of the serial. */
		assert_symbol(s, ids[i] ^ 0x1f, name);
	}
	synthetic_name_id(s, '+', "+");
	synthetic_name_id(s, synthetic_enum(s, E_tLAST_OP_ID), "!~");
	assert_symbol(s, '+', "+");
	assert_symbol(s, synthetic_enum(s, E_tLAST_OP_ID), "!~");
}

static void assert_added(struct synthetic *s, uint64_t id, const char *expected)
{
	struct access access = ruby_access(&s->ruby);
	struct text text = {0};

	assert_int_equal(symbol_add(&s->ruby, &access, id, &text), expected != NULL);
	assert_int_equal(access.failed, expected == NULL);
	if (expected)
		assert_string_equal(text.data, expected);
	text_clear(&text);
}

/* Until 2.1: a hash table, and operators, which have Strings only when somebody has asked for them. */
static void test_symbols_by_table(void **state)
{
	enum { ID = 0x1235, OTHER = 0x1236, EQUAL = 140, OPERATORS = 150 };
	struct synthetic *s = *state;
	uint64_t bins = synthetic_allocate(s, 8), entry, table, list;

	synthetic_without(s, F_symbols_ids);
	synthetic_without(s, F_st_entries);
	synthetic_with(s, F_symbols_id_str);
	synthetic_with(s, F_symbols_op_sym);
	synthetic_with(s, F_st_bins);
	s->layout->members[F_symbols_op_sym].size = OPERATORS * 8;
	s->layout->members[F_symbols_op_sym].offset = 512;
	s->layout->sizes[S_symbols].value = 512 + OPERATORS * 8;
	s->ruby.symbols = synthetic_struct(s, S_symbols);
	for (size_t i = 0; i < OPERATORS; i++)
		synthetic_put_word(s, s->ruby.symbols + 512 + i * 8, 0);
	table = synthetic_struct(s, S_st);
	entry = synthetic_struct(s, S_st_entry);
	synthetic_set(s, entry, F_st_entry_key, ID);
	synthetic_set(s, entry, F_st_entry_record, synthetic_string(s, "name"));
	synthetic_put_word(s, bins, entry);
	synthetic_set(s, table, F_st_bins, bins);
	synthetic_set(s, table, F_st_num_bins, 1);
	synthetic_set(s, s->ruby.symbols, F_symbols_id_str, table);

	assert_symbol(s, ID, "name");
	assert_added(s, ID, "name");
	assert_no_symbol(s, OTHER);
	assert_added(s, OTHER, NULL);
	assert_no_symbol(s, '+');
	assert_added(s, '+', "+");
	synthetic_put_word(s, s->ruby.symbols + 512 + '+' * 8, synthetic_string(s, "+"));
	assert_symbol(s, '+', "+");

	assert_no_symbol(s, EQUAL);
	list = synthetic_allocate(s, 32 * 16);
	s->ruby.operators = list;
	synthetic_put_word(s, list, EQUAL - 1);
	synthetic_put_word(s, list + 16, EQUAL);
	synthetic_put_word(s, list + 24, NOWHERE);
	assert_added(s, EQUAL, NULL);
	synthetic_put_word(s, list + 24, synthetic_allocate(s, 8)); /* no text */
	assert_added(s, EQUAL, NULL);
	entry = synthetic_allocate(s, 8);
	synthetic_put(s, entry, "===", sizeof("==="));
	synthetic_put_word(s, list + 24, entry);
	assert_symbol(s, EQUAL, "===");
	assert_added(s, EQUAL, "===");
	synthetic_put_word(s, s->ruby.symbols + 512 + EQUAL * 8, synthetic_string(s, "!~"));
	assert_added(s, EQUAL, "!~");
}

static void test_no_symbols(void **state)
{
	struct synthetic *s = *state;
	uint64_t id = synthetic_id(s, "name"), next = id + (UINT64_C(1) << synthetic_enum(s, E_RUBY_ID_SCOPE_SHIFT));

	assert_symbol(s, id, "name");
	assert_no_symbol(s, 0);
	synthetic_name_id(s, next, "later");
	assert_no_symbol(s, next); /* beyond the last */
	assert_no_symbol(s, UINT64_MAX);
	assert_no_symbol(s, '-'); /* in the table, but not used yet */
	/* Hostile: a table that ends before its last ID. */
	synthetic_set(s, s->ruby.symbols, F_symbols_last_id, UINT32_MAX);
	assert_symbol(s, next, "later");
	assert_no_symbol(s, next + (UINT64_C(1) << synthetic_enum(s, E_RUBY_ID_SCOPE_SHIFT)));
	assert_no_symbol(s, UINT64_C(0xfffffff0) << synthetic_enum(s, E_RUBY_ID_SCOPE_SHIFT));
	synthetic_set(s, s->ruby.symbols, F_symbols_ids, synthetic_string(s, "no Array"));
	assert_no_symbol(s, id);
	s->ruby.symbols = 0;
	assert_no_symbol(s, id);
}

/* 4.0 counts to the first ID that is not in use. */
static void test_next_id(void **state)
{
	struct synthetic *s = *state;
	uint64_t id = synthetic_id(s, "name"), shift = synthetic_enum(s, E_RUBY_ID_SCOPE_SHIFT);

	synthetic_with(s, F_symbols_next_id);
	synthetic_without(s, F_symbols_last_id);
	synthetic_set(s, s->ruby.symbols, F_symbols_next_id, (id >> shift) + 1);
	assert_symbol(s, id, "name");
	synthetic_set(s, s->ruby.symbols, F_symbols_next_id, id >> shift);
	assert_no_symbol(s, id);
}

/* head: each list is an object of a C array, whose length comes first. */
static void test_darray(void **state)
{
	struct synthetic *s = *state;
	uint64_t meta = (uint64_t)s->layout->sizes[S_darray].value;
	uint64_t entry = (uint64_t)s->layout->sizes[S_symbol_entry].value;
	uint64_t array = synthetic_allocate(s, meta + 16 * entry), lists[2] = {0, synthetic_enum(s, E_RUBY_Qnil)};
	uint64_t at = array + meta + ('+' % 16) * entry;

	synthetic_with(s, F_symbol_entry_str);
	lists[0] = synthetic_object(s, S_typed_data, synthetic_enum(s, E_RUBY_T_DATA));
	synthetic_set(s, lists[0], F_typed_data_data, array);
	synthetic_set(s, array, F_darray_size, 16);
	synthetic_set(s, at, F_symbol_entry_str, synthetic_string(s, "+"));
	synthetic_set(s, s->ruby.symbols, F_symbols_last_id, 100);
	synthetic_set(s, s->ruby.symbols, F_symbols_ids,
		      synthetic_array(s, (uint64_t[]){lists[1], lists[1], lists[0]}, 3));
	assert_symbol(s, '+', "+");
	assert_no_symbol(s, 1); /* its list is nil */
	synthetic_set(s, array, F_darray_size, '+' % 16);
	assert_no_symbol(s, '+');
	synthetic_set(s, array, F_darray_size, 16);
	synthetic_set(s, lists[0], F_basic_flags, synthetic_enum(s, E_RUBY_T_CLASS));
	assert_no_symbol(s, '+');
}

/* An inner Array that is shorter than it should be; and the unit that every Ruby has, where DWARF does not tell it. */
static void test_short_table(void **state)
{
	struct synthetic *s = *state;
	uint64_t elements[34] = {0}, inner;

	elements[16 * 2] = synthetic_string(s, "sixteen");
	inner = synthetic_array(s, elements, 34);
	synthetic_set(s, s->ruby.symbols, F_symbols_ids, synthetic_array(s, &inner, 1));
	s->layout->constants[C_ID_ENTRY_UNIT] = (struct layout_number){0};
	assert_symbol(s, 16, "sixteen");
	assert_no_symbol(s, 17);
	synthetic_set(s, inner, F_array_heap_len, 32); /* what lies behind is another's */
	assert_no_symbol(s, 16);
	synthetic_set(s, inner, F_array_heap_len, 34);
	s->layout->constants[C_ID_ENTRY_UNIT] = (struct layout_number){.present = true, .value = 16};
	assert_no_symbol(s, 16);
	s->layout->enumerators[E_ID_ENTRY_UNIT] = (struct layout_number){.present = true, .value = 32};
	assert_symbol(s, 16, "sixteen"); /* until 2.4 that is where it is said */
	s->layout->enumerators[E_ID_ENTRY_SIZE] = (struct layout_number){0};
	assert_no_symbol(s, 16);
}

static void assert_units(struct synthetic *s, bool hold)
{
	struct access access = ruby_access(&s->ruby);

	assert_int_equal(symbol_units_hold(&s->ruby, &access), hold);
}

/* The first of several inner Arrays is full: it tells whether the layout is right in how long they are. */
static void test_units(void **state)
{
	struct synthetic *s = *state;
	uint64_t elements[32] = {0}, inner[2] = {synthetic_array(s, elements, 32), synthetic_array(s, elements, 2)};

	s->layout->enumerators[E_ID_ENTRY_UNIT] = (struct layout_number){.present = true, .value = 16};
	synthetic_set(s, s->ruby.symbols, F_symbols_ids, synthetic_array(s, inner, 2));
	assert_units(s, true);
	synthetic_set(s, inner[0], F_array_heap_len, 31); /* nobody has asked for the last Symbol */
	assert_units(s, true);
	synthetic_set(s, inner[0], F_array_heap_len, 30);
	assert_units(s, false);
	s->layout->enumerators[E_ID_ENTRY_UNIT].value = 15;
	assert_units(s, true);
	s->layout->enumerators[E_ID_ENTRY_UNIT].value = 17;
	assert_units(s, false);
	synthetic_set(s, s->ruby.symbols, F_symbols_ids, synthetic_array(s, inner, 1));
	assert_units(s, true); /* one alone says nothing */
}

#define MODERN(test) cmocka_unit_test_setup_teardown(test, synthetic_set_up, synthetic_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    MODERN(test_symbols), MODERN(test_symbols_by_table), MODERN(test_no_symbols), MODERN(test_next_id),
	    MODERN(test_darray),  MODERN(test_short_table),	 MODERN(test_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
