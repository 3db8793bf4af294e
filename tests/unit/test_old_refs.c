/* The references of objects of old Rubies, whose tables have other forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "given_refs.h"
#include "ruby/class_refs.h"
#include "ruby/object_refs.h"
#include "synthetic.h"

#define PAIRS_26 8
#define WORDS_26 3

static struct given refs_of(struct synthetic *s, uint64_t object)
{
	struct given given = {.count = 0};
	struct object_refs *refs = calloc(1, sizeof(*refs));
	const struct object_slot slot = {object, s->bytes + (object - SYNTHETIC_BASE), 1024};
	struct access access = ruby_access(&s->ruby);

	assert_non_null(refs);
	assert_true(object_refs_read(&s->ruby, refs));
	given.all = object_refs_each(refs, &access, &slot, given_note, &given);
	object_refs_clear(refs);
	free(refs);
	return given;
}

static size_t count(const struct given *given, uint64_t target, enum ref_label label)
{
	size_t ret = 0;

	for (size_t i = 0; i < given->count; i++)
		ret += given->refs[i].target == target && given->refs[i].label == label &&
		       given->refs[i].certainty == REF_EXACT;
	return ret;
}

/* 2.6: in each entry of a small Hash, there is the hash before the key. */
static void test_small_hash(void **state)
{
	struct synthetic *s = *state;
	const uint64_t bound = synthetic_enum(s, E_RHASH_AR_TABLE_BOUND_SHIFT);
	const uint64_t hash = synthetic_object(s, S_hash, synthetic_enum(s, E_RUBY_T_HASH) | UINT64_C(8) << bound);
	const uint64_t other = synthetic_string(s, "no reference"),
		       table = synthetic_allocate(s, PAIRS_26 * WORDS_26 * 8);
	uint64_t keys[PAIRS_26], values[PAIRS_26];
	struct given given;

	synthetic_without_enumerator(s, E_imemo_fields);
	synthetic_with(s, F_hash_ar);
	synthetic_set(s, hash, F_hash_ar, table);
	synthetic_set(s, hash, F_hash_ifnone, 0);
	synthetic_without(s, F_ar_table_pairs);
	s->layout->sizes[S_ar_table] = (struct layout_number){.present = true, .value = PAIRS_26 * WORDS_26 * 8};
	for (uint64_t i = 0; i < PAIRS_26; i++) {
		keys[i] = synthetic_string(s, "key");
		values[i] = synthetic_string(s, "value");
		synthetic_put_word(s, table + i * 24, other);
		synthetic_put_word(s, table + i * 24 + 8, keys[i]);
		synthetic_put_word(s, table + i * 24 + 16, values[i]);
	}
	/* One was deleted. */
	synthetic_put_word(s, table + 24 + 8, synthetic_enum(s, E_RUBY_Qundef));
	given = refs_of(s, hash);
	assert_true(given.all);
	for (size_t i = 0; i < PAIRS_26; i++) {
		assert_int_equal(count(&given, keys[i], REF_KEY), i != 1);
		assert_int_equal(count(&given, values[i], REF_VALUE), i != 1);
	}
	assert_int_equal(count(&given, other, REF_KEY) + count(&given, other, REF_VALUE), 0);
	/* Entries of another size are not known. */
	s->layout->sizes[S_ar_table].value = PAIRS_26 * 32;
	assert_false(refs_of(s, hash).all);
}

/* An st_table with one entry. */
static uint64_t table_of(struct synthetic *s, uint64_t key, uint64_t record)
{
	const uint64_t table = synthetic_struct(s, S_st), entries = synthetic_struct(s, S_st_entry);

	synthetic_set(s, entries, F_st_entry_hash, 1);
	synthetic_set(s, entries, F_st_entry_key, key);
	synthetic_set(s, entries, F_st_entry_record, record);
	synthetic_set(s, table, F_st_entries, entries);
	synthetic_set(s, table, F_st_entries_start, 0);
	synthetic_set(s, table, F_st_entries_bound, 1);
	synthetic_set(s, table, F_st_entry_power, 0);
	synthetic_set(s, table, F_st_num_entries, 1);
	return table;
}

/* Up to 2.2, constants are in an st_table; what methods refer to is not known. */
static void test_constants(void **state)
{
	static const enum layout_member_id newer[] = {F_classext_callable_m_tbl, F_id_table_items, F_id_table_capa,
						      F_class_m_tbl, F_classext_m_tbl};
	struct synthetic *s = *state;
	const uint64_t klass = synthetic_object(s, S_class, synthetic_enum(s, E_RUBY_T_CLASS));
	const uint64_t ext = synthetic_struct(s, S_classext), entry = synthetic_struct(s, S_const_entry);
	const uint64_t constant = synthetic_string(s, "constant"), variable = synthetic_string(s, "variable");
	struct given given;

	synthetic_without_enumerator(s, E_imemo_fields);
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		synthetic_without(s, newer[i]);
	synthetic_set(s, entry, F_const_entry_value, constant);
	synthetic_set(s, entry, F_const_entry_file, 0);
	synthetic_set(s, ext, F_classext_const_tbl, table_of(s, 7, entry));
	synthetic_set(s, ext, F_classext_iv_tbl, table_of(s, 8, variable));
	synthetic_set(s, klass, F_class_ptr, ext);
	synthetic_set(s, klass, F_class_super, 0);
	synthetic_set(s, klass, F_basic_klass, 0);
	assert_non_null(class_refs_lack(s->layout));
	given = refs_of(s, klass);
	assert_false(given.all);
	assert_int_equal(count(&given, constant, REF_CONSTANT), 1);
	assert_int_equal(count(&given, variable, REF_IVAR_NAMED), 1);
	/* From 2.3 on, there is another form of table in that place, which no layout has up to 2.4. */
	synthetic_with(s, F_classext_callable_m_tbl);
	given = refs_of(s, klass);
	assert_false(given.all);
	assert_int_equal(count(&given, constant, REF_CONSTANT), 0);
	assert_int_equal(count(&given, variable, REF_IVAR_NAMED), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_small_hash, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_constants, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
