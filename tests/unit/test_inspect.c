/*
 * Values as text: in the memory of a Ruby that does not exist, and hostile ones: containers that contain themselves or each
 * other, numbers of entries that are not true, names of any length. And local variables in environments that contradict the
 * code.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/environment.h"
#include "ruby/inspect.h"
#include "ruby/locals.h"
#include "ruby/number_text.h"
#include "synthetic.h"

#define QTRUE 0x14u

/* The text of a value; the caller frees it. *lacks receives whether a part could not be read; it can be NULL. */
static char *text_of(struct synthetic *s, uint64_t value, bool *lacks)
{
	static struct inspect inspect;
	struct text text = {0};

	assert_true(inspect_begin(&s->ruby, &inspect));
	assert_non_null(inspect_value(&inspect, value, &text));
	if (lacks)
		*lacks = inspect.lacks;
	inspect_end(&inspect);
	return text.data;
}

static void expect(struct synthetic *s, uint64_t value, const char *expected)
{
	bool lacks;
	char *text = text_of(s, value, &lacks);

	assert_string_equal(text, expected);
	assert_int_equal(lacks, strstr(expected, "(unreadable)") != NULL);
	free(text);
}

/* Gives an object a class: programs do not see objects that have none. */
static uint64_t visible(struct synthetic *s, uint64_t object)
{
	synthetic_set(s, object, F_basic_klass, synthetic_class(s, E_RUBY_T_CLASS, "Foo", true));
	return object;
}

static void test_immediates(void **state)
{
	struct synthetic *s = *state;

	expect(s, 0, "false");
	expect(s, synthetic_enum(s, E_RUBY_Qnil), "nil");
	expect(s, QTRUE, "true");
	expect(s, 2 * 42 + 1, "42");
	expect(s, (uint64_t)-7 * 2 + 1, "-7");
	/* What leads nowhere. */
	expect(s, NOWHERE, "(unreadable)");
	expect(s, synthetic_enum(s, E_RUBY_Qundef), "(unreadable)");
}

static void test_floats(void **state)
{
	static const struct {
		double number;
		const char *text;
	} floats[] = {
	    {0, "0.0"},
	    {-0.0, "-0.0"},
	    {1.5, "1.5"},
	    {100, "100.0"},
	    {1e14, "100000000000000.0"},
	    {1e15, "1.0e+15"},
	    {1e16, "1.0e+16"},
	    {0.0001, "0.0001"},
	    {0.00001, "1.0e-05"},
	    {1e100, "1.0e+100"},
	    {-2.5e-300, "-2.5e-300"},
	    {0.1 + 0.2, "0.30000000000000004"},
	    {INFINITY, "Infinity"},
	    {-INFINITY, "-Infinity"},
	    {NAN, "NaN"},
	    {5e-324, "5.0e-324"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++) {
		struct text text = {0};

		number_add_float(floats[i].number, &text);
		assert_string_equal(text.data, floats[i].text);
		text_clear(&text);
	}
}

static void test_containers_within_themselves(void **state)
{
	struct synthetic *s = *state;
	uint64_t elements[3] = {3, 0, 5};
	const uint64_t array = visible(s, synthetic_array(s, elements, 3));
	struct access access = ruby_access(&s->ruby);
	const uint64_t words = access_member(&access, array, F_array_heap_ptr);
	char *text;

	assert_false(access.failed);
	synthetic_put_word(s, words + 8, array);
	expect(s, array, "[1, [...], 2]");
	/* An Array says that it has more elements than there is memory. */
	synthetic_set(s, array, F_array_heap_len, UINT64_MAX / 16);
	text = text_of(s, array, NULL);
	assert_in_range(strlen(text), 1, INSPECT_BYTES + 100);
	free(text);
	synthetic_set(s, array, F_array_heap_ptr, NOWHERE - 8);
	expect(s, array, "[(unreadable)]");
}

/* Arrays of the same Array, deeper than is shown, and wider. */
static void test_wide_and_deep(void **state)
{
	struct synthetic *s = *state;
	uint64_t elements[64], array = visible(s, synthetic_string(s, "leaf"));
	char *text;

	for (int level = 0; level < 20; level++) {
		for (size_t i = 0; i < 64; i++)
			elements[i] = array;
		array = visible(s, synthetic_array(s, elements, 64));
	}
	text = text_of(s, array, NULL);
	assert_in_range(strlen(text), 100, INSPECT_BYTES + 100);
	assert_non_null(strstr(text, "[[[[…"));
	free(text);
}

static void test_strings(void **state)
{
	struct synthetic *s = *state;
	const uint64_t string = visible(s, synthetic_string(s, "a\"b\\c\n\x1b \x01#{x} #y"));
	static char long_text[5000];
	char *text;

	expect(s, string, "\"a\\\"b\\\\c\\n\\e \\x01\\#{x} #y\"");
	memset(long_text, 'x', sizeof(long_text) - 1);
	text = text_of(s, visible(s, synthetic_string(s, long_text)), NULL);
	assert_non_null(strstr(text, "xxx\"… (4999 bytes)"));
	free(text);
	synthetic_set(s, string, F_string_len, UINT64_MAX);
	text = text_of(s, string, NULL);
	assert_in_range(strlen(text), 1, 5 * INSPECT_STRING_BYTES);
	free(text);
}

/* A method with two variables, the environment of which is at the address that is returned: its ep. */
static uint64_t make_environment(struct synthetic *s, uint64_t code, uint64_t first, uint64_t second, uint64_t specval)
{
	const uint64_t words = synthetic_allocate(s, 6 * 8), body = synthetic_body(s, code);
	const uint64_t table = synthetic_allocate(s, 2 * 8);
	const uint64_t flags = synthetic_enum(s, E_VM_FRAME_MAGIC_METHOD) | synthetic_enum(s, E_VM_ENV_FLAG_LOCAL) | 1;

	synthetic_put_word(s, table, synthetic_id(s, "first"));
	synthetic_put_word(s, table + 8, synthetic_id(s, "second"));
	synthetic_set(s, body, F_body_local_table, table);
	synthetic_set(s, body, F_body_local_table_size, 2);
	synthetic_put_word(s, words, first);
	synthetic_put_word(s, words + 8, second);
	synthetic_put_word(s, words + 16, 0);
	synthetic_put_word(s, words + 24, specval);
	synthetic_put_word(s, words + 32, flags);
	return words + 32;
}

static void test_locals(void **state)
{
	struct synthetic *s = *state;
	const uint64_t nil = synthetic_enum(s, E_RUBY_Qnil), code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "code");
	const uint64_t ep = make_environment(s, code, 2 * 5 + 1, nil, 0x1001), cfp = synthetic_struct(s, S_cfp);
	const struct frame frame = {.cfp = cfp, .iseq = code, .kind = FRAME_RUBY};
	struct layout_member *has_kw = &s->layout->members[F_body_has_kw];
	const uint64_t flags = synthetic_body(s, code) + has_kw->offset;
	const uint8_t lead = 1, lead_and_block = 0x41;
	struct locals locals;

	synthetic_without(s, F_cfp_flag);
	synthetic_without(s, F_iseq_self);
	synthetic_set(s, cfp, F_cfp_ep, ep);
	assert_true(locals_read(&s->ruby, &frame, false, &locals));
	assert_true(locals.known && !locals.broken && !locals.cut);
	assert_int_equal(locals.count, 2);
	assert_string_equal(locals.of[0].name, "first");
	assert_int_equal(locals.of[0].value, 2 * 5 + 1);
	/* The layout does not tell where the flags of the parameters are, so each may be the block parameter. */
	assert_true(locals.of[0].maybe_block && locals.of[1].maybe_block);
	locals_clear(&locals);
	*has_kw = (struct layout_member){.present = true, .shift = 4, .width = 1, .offset = has_kw->offset, .size = 1};
	synthetic_put(s, flags, &lead_and_block, 1);
	assert_true(locals_read(&s->ruby, &frame, false, &locals));
	assert_true(!locals.of[0].maybe_block && locals.of[1].maybe_block);
	locals_clear(&locals);
	synthetic_put(s, flags, &lead, 1);
	assert_true(locals_read(&s->ruby, &frame, false, &locals));
	assert_true(!locals.of[0].maybe_block && !locals.of[1].maybe_block);
	locals_clear(&locals);
	/* Code that says that it has very many variables. */
	synthetic_set(s, synthetic_body(s, code), F_body_local_table_size, UINT32_MAX);
	assert_true(locals_read(&s->ruby, &frame, false, &locals));
	assert_true(locals.count <= LOCALS_MAX && (locals.cut || locals.broken));
	locals_clear(&locals);
	/* An environment that leads to itself. */
	synthetic_set(s, synthetic_body(s, code), F_body_local_table_size, 2);
	synthetic_set(s, synthetic_body(s, code), F_body_parent_iseq, code);
	synthetic_put_word(s, ep - 8, ep);
	synthetic_put_word(s, ep, 1);
	assert_true(locals_read(&s->ruby, &frame, false, &locals));
	assert_true(locals.broken);
	assert_int_equal(locals.count, 2);
	locals_clear(&locals);
	/* A Ruby that keeps them in another way. */
	synthetic_without(s, F_body_local_table);
	assert_true(locals_read(&s->ruby, &frame, false, &locals));
	assert_false(locals.known);
	locals_clear(&locals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_immediates, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test(test_floats),
	    cmocka_unit_test_setup_teardown(test_containers_within_themselves, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_wide_and_deep, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_strings, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_locals, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
