/* Objects: Strings as three eras of Ruby keep them, Arrays, imemos, and what compaction has moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/object_text.h"
#include "ruby/value.h"
#include "synthetic.h"

#define NOT_ALIGNED 4

/* What is not a pointer to an object: nil, false, an odd address, one in the first page, one that is not there. */
static void each_no_object(struct synthetic *s, void (*check)(struct synthetic *s, uint64_t value))
{
	check(s, 0);
	check(s, synthetic_enum(s, E_RUBY_Qnil));
	check(s, 0x1000 - 8);
	check(s, SYNTHETIC_BASE + SYNTHETIC_SIZE);
	check(s, synthetic_string(s, "not aligned") + NOT_ALIGNED);
	check(s, UINT64_MAX & ~UINT64_C(7));
}

static uint64_t embedded(struct synthetic *s, const char *text, uint64_t more_flags)
{
	uint64_t object = synthetic_object(s, S_string, synthetic_enum(s, E_RUBY_T_STRING) | more_flags);

	synthetic_put(s, object + s->layout->members[F_string_embed_ary].offset, text, strlen(text));
	return object;
}

static void assert_string(struct synthetic *s, uint64_t value, const char *expected)
{
	struct access access = ruby_access(&s->ruby);
	struct bytes bytes = value_string(&access, value);

	assert_false(access.failed);
	assert_int_equal(bytes.length, strlen(expected));
	assert_true(value_bytes_are(&access, bytes, expected));
}

static void assert_no_string(struct synthetic *s, uint64_t value)
{
	struct access access = ruby_access(&s->ruby);
	struct bytes bytes = value_string(&access, value);

	assert_true(access.failed);
	assert_int_equal(bytes.address, 0);
	assert_int_equal(bytes.length, 0);
}

/* 3.3 and later: one length for both kinds. */
static void test_length_at_top(void **state)
{
	struct synthetic *s = *state;
	uint64_t heap = synthetic_string(s, "on the heap"), here = embedded(s, "embedded", 0);

	/* Neither of the others' lengths is looked at. */
	synthetic_set(s, heap, F_string_heap_len, 3);
	synthetic_set(s, here, F_string_embed_len, 3);
	synthetic_set(s, here, F_string_len, 8);
	assert_string(s, heap, "on the heap");
	assert_string(s, here, "embedded");
}

/* 3.2: an embedded one has a length of its own. */
static void test_length_of_embedded(void **state)
{
	struct synthetic *s = *state;
	uint64_t heap = synthetic_string(s, "on the heap"), here = embedded(s, "embedded", UINT64_C(3) << 40);

	synthetic_without(s, F_string_len);
	synthetic_set(s, heap, F_string_heap_len, 11);
	synthetic_set(s, here, F_string_embed_len, 8);
	assert_string(s, heap, "on the heap");
	assert_string(s, here, "embedded");
}

/* Until 3.1: an embedded one has it in its flags. */
static void test_length_in_flags(void **state)
{
	struct synthetic *s = *state;
	uint64_t heap = synthetic_string(s, "on the heap");
	uint64_t here = embedded(s, "embedded", UINT64_C(8) << synthetic_enum(s, E_RSTRING_EMBED_LEN_SHIFT));

	synthetic_without(s, F_string_len);
	synthetic_without(s, F_string_embed_len);
	synthetic_set(s, heap, F_string_heap_len, 11);
	assert_string(s, heap, "on the heap");
	assert_string(s, here, "embedded");
	/* Bits beside the mask are no part of it. */
	synthetic_set(s, here, F_basic_flags,
		      synthetic_enum(s, E_RUBY_T_STRING) | UINT64_C(0x45) << 40 | UINT64_C(1) << 39);
	assert_string(s, here, "embed");
}

static void test_empty_string(void **state)
{
	struct synthetic *s = *state;

	assert_string(s, synthetic_string(s, ""), "");
	assert_string(s, embedded(s, "", 0), "");
}

static void test_longest_string(void **state)
{
	struct synthetic *s = *state;
	uint64_t value = synthetic_string(s, "x");
	struct access access;

	synthetic_set(s, value, F_string_len, VALUE_STRING_MAX);
	access = ruby_access(&s->ruby);
	assert_int_equal(value_string(&access, value).length, VALUE_STRING_MAX);
	assert_false(access.failed);
	synthetic_set(s, value, F_string_len, VALUE_STRING_MAX + 1);
	assert_no_string(s, value);
	synthetic_set(s, value, F_string_len, (uint64_t)-1);
	assert_no_string(s, value);
	synthetic_without(s, F_string_len);
	synthetic_set(s, value, F_string_heap_len, UINT64_C(1) << 63);
	assert_no_string(s, value);
}

static void test_no_string(void **state)
{
	struct synthetic *s = *state;
	uint64_t none = 0, object = synthetic_string(s, "a class now");

	each_no_object(s, assert_no_string);
	assert_no_string(s, synthetic_array(s, &none, 1));
	synthetic_set(s, object, F_basic_flags, synthetic_enum(s, E_RUBY_T_CLASS));
	assert_no_string(s, object);
	synthetic_set(s, object, F_basic_flags, 0); /* a free slot */
	assert_no_string(s, object);
}

static void test_unreadable_string(void **state)
{
	struct synthetic *s = *state;
	uint64_t value = synthetic_string(s, "text");
	struct access access;
	struct bytes bytes;

	synthetic_set(s, value, F_string_heap_ptr, SYNTHETIC_BASE + SYNTHETIC_SIZE);
	access = ruby_access(&s->ruby);
	bytes = value_string(&access, value);
	assert_false(value_bytes_are(&access, bytes, "text"));
	assert_true(access.failed);
}

static void test_comparison(void **state)
{
	struct synthetic *s = *state;
	struct access access;
	struct bytes bytes;
	char longer[300];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	bytes.address = synthetic_allocate(s, 300);
	bytes.length = 5;
	synthetic_put(s, bytes.address, "abcde", 5);
	access = ruby_access(&s->ruby);
	assert_true(value_bytes_are(&access, bytes, "abcde"));
	assert_false(value_bytes_are(&access, bytes, "abcdf"));
	assert_false(value_bytes_are(&access, bytes, "abcd"));
	assert_false(value_bytes_are(&access, bytes, "abcdef"));
	assert_false(access.failed);
	synthetic_put(s, bytes.address, longer, 299);
	bytes.length = 299;
	access = ruby_access(&s->ruby);
	assert_false(value_bytes_are(&access, bytes, longer)); /* longer than any name that is asked for */
	bytes.address = 0;
	assert_false(value_bytes_are(&access, bytes, ""));
}

static void assert_array(struct synthetic *s, uint64_t value, uint64_t count, uint64_t first)
{
	struct access access = ruby_access(&s->ruby);
	uint64_t elements;

	assert_int_equal(value_array(&access, value, &elements), count);
	assert_false(access.failed);
	assert_int_equal(access_word(&access, elements), first);
	assert_false(access.failed);
}

static void assert_no_array(struct synthetic *s, uint64_t value)
{
	struct access access = ruby_access(&s->ruby);
	uint64_t elements = 1;

	assert_int_equal(value_array(&access, value, &elements), 0);
	assert_int_equal(elements, 0);
	assert_true(access.failed);
}

static void test_arrays(void **state)
{
	struct synthetic *s = *state;
	const uint64_t elements[] = {11, 12, 13};
	uint64_t heap = synthetic_array(s, elements, 3);
	uint64_t here =
	    synthetic_object(s, S_array,
			     synthetic_enum(s, E_RUBY_T_ARRAY) | synthetic_enum(s, E_RARRAY_EMBED_FLAG) |
				 UINT64_C(2) << synthetic_enum(s, E_RARRAY_EMBED_LEN_SHIFT) | UINT64_C(1) << 35);

	synthetic_set(s, here, F_array_ary, 77);
	synthetic_set(s, here, F_array_heap_len, 9);
	assert_array(s, heap, 3, 11);
	assert_array(s, here, 2, 77);
}

static void test_no_array(void **state)
{
	struct synthetic *s = *state;

	each_no_object(s, assert_no_array);
	assert_no_array(s, synthetic_string(s, "a String"));
}

static uint64_t moved_to(struct synthetic *s, uint64_t destination)
{
	uint64_t object = synthetic_object(s, S_moved, synthetic_enum(s, E_RUBY_T_MOVED));

	synthetic_set(s, object, F_moved_destination, destination);
	return object;
}

static void test_moved(void **state)
{
	struct synthetic *s = *state;
	const uint64_t element = 5;
	uint64_t string = synthetic_string(s, "moved"), from = moved_to(s, string);
	struct access access;

	assert_string(s, from, "moved");
	assert_array(s, moved_to(s, synthetic_array(s, &element, 1)), 1, 5);
	access = ruby_access(&s->ruby);
	assert_int_equal(value_object(&access, from), string);
	assert_int_equal(value_object(&access, string), string);
	assert_false(access.failed);
}

static void test_moved_without_end(void **state)
{
	struct synthetic *s = *state;
	uint64_t circle = moved_to(s, 0);

	synthetic_set(s, circle, F_moved_destination, circle);
	assert_no_string(s, circle);
	assert_no_string(s, moved_to(s, 0));
	assert_no_string(s, moved_to(s, SYNTHETIC_BASE + SYNTHETIC_SIZE));
	/* Compaction never leads to what has moved on. */
	assert_no_string(s, moved_to(s, moved_to(s, synthetic_string(s, "too far"))));
}

/* Before 2.7 nothing moves: the same bits are something else. */
static void test_nothing_moves(void **state)
{
	struct synthetic *s = *state;
	uint64_t string = synthetic_string(s, "text"), from = moved_to(s, string);
	struct access access;

	synthetic_without_enumerator(s, E_RUBY_T_MOVED);
	synthetic_without(s, F_moved_destination);
	access = ruby_access(&s->ruby);
	assert_int_equal(value_object(&access, from), from);
	assert_no_string(s, from);
	assert_string(s, string, "text");
}

static void test_imemo(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq);
	struct access access = ruby_access(&s->ruby);

	assert_true(value_is_imemo(&access, code, E_imemo_iseq));
	assert_false(value_is_imemo(&access, code, E_imemo_ment));
	assert_false(value_is_imemo(&access, synthetic_enum(s, E_RUBY_Qnil), E_imemo_iseq));
	assert_false(value_is_imemo(&access, 0, E_imemo_iseq));
	assert_false(access.failed);
	assert_false(value_is_imemo(&access, SYNTHETIC_BASE + SYNTHETIC_SIZE, E_imemo_iseq));
	assert_true(access.failed);
	/* The type's four bits, and no more: the flags beside them are others'. */
	synthetic_set(s, code, F_basic_flags,
		      synthetic_enum(s, E_RUBY_T_IMEMO) | (synthetic_enum(s, E_imemo_iseq) | 0x10)
							      << synthetic_enum(s, E_RUBY_FL_USHIFT));
	access = ruby_access(&s->ruby);
	assert_true(value_is_imemo(&access, code, E_imemo_iseq));
	/* An object that has the same bits. */
	synthetic_set(s, code, F_basic_flags,
		      synthetic_enum(s, E_RUBY_T_STRING) | synthetic_enum(s, E_imemo_iseq)
							       << synthetic_enum(s, E_RUBY_FL_USHIFT));
	access = ruby_access(&s->ruby);
	assert_false(value_is_imemo(&access, code, E_imemo_iseq));
}

static void test_appended(void **state)
{
	struct synthetic *s = *state;
	struct bytes bytes = {.address = synthetic_allocate(s, 8), .length = 8};
	struct access access;
	struct text text = {0};

	synthetic_put(s, bytes.address, "one\xfftwo\0", 8);
	access = ruby_access(&s->ruby);
	text_format(&text, "<");
	assert_true(value_append(&text, &access, bytes));
	bytes.length = 0;
	assert_true(value_append(&text, &access, bytes));
	assert_string_equal(text.data, "<one\\xFFtwo\\x00");
	/* What cannot be had leaves the text as it was. */
	bytes = (struct bytes){.address = SYNTHETIC_BASE + SYNTHETIC_SIZE, .length = 4};
	assert_false(value_append(&text, &access, bytes));
	assert_true(access.failed);
	assert_string_equal(text.data, "<one\\xFFtwo\\x00");
	access = ruby_access(&s->ruby);
	bytes = (struct bytes){.address = synthetic_allocate(s, VALUE_STRING_MAX + 1), .length = VALUE_STRING_MAX + 1};
	assert_false(value_append(&text, &access, bytes));
	assert_string_equal(text.data, "<one\\xFFtwo\\x00");
	text_clear(&text);
}

/* Of a String of any length, its beginning and its length are told. */
static void test_text_of_long_string(void **state)
{
	struct synthetic *s = *state;
	char long_text[OBJECT_TEXT_BYTES + 1];
	uint64_t value;
	struct access access = ruby_access(&s->ruby);
	struct text text = {0};

	memset(long_text, 'x', sizeof(long_text));
	long_text[OBJECT_TEXT_BYTES] = '\0';
	value = synthetic_string(s, long_text);
	synthetic_set(s, value, F_string_len, VALUE_STRING_MAX + 1);
	object_add_text(&s->ruby, &access, value, &text);
	assert_true(text.data[0] == '"' && strncmp(text.data + 1, long_text, OBJECT_TEXT_BYTES) == 0);
	if (!strstr(text.data, "x\"… (65537 bytes)"))
		fail_msg("%s", text.data);
	text_clear(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_length_at_top, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_length_of_embedded, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_length_in_flags, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_empty_string, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_longest_string, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_string, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_unreadable_string, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_comparison, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_arrays, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_array, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_moved, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_moved_without_end, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_nothing_moves, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_imemo, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_appended, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_text_of_long_string, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
