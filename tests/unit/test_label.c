/* Names and labels of frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/label.h"
#include "synthetic.h"

static void assert_labels(struct synthetic *s, uint64_t code_address, uint64_t method_address, const char *label,
			  const char *name)
{
	struct access access = ruby_access(&s->ruby);
	struct text text = {0};
	struct method method;
	struct code code;

	if (method_address != 0)
		assert_true(method_read(&access, method_address, &method));
	if (code_address != 0) {
		assert_true(code_read(&access, code_address, &code));
		label_of_code(&s->ruby, &access, &code, method_address ? &method : NULL, &text);
	} else {
		label_of_method(&s->ruby, &access, &method, &text);
	}
	assert_string_equal(text.data, label);
	text_clear(&text);
	if (code_address != 0)
		name_of_code(&s->ruby, &access, &code, method_address ? &method : NULL, &text);
	else
		name_of_method(&s->ruby, &access, &method, &text);
	assert_string_equal(text.data, name);
	assert_false(access.failed);
	text_clear(&text);
}

static uint64_t inner_code(struct synthetic *s, enum layout_enumerator_id type, const char *label, uint64_t parent,
			   uint64_t local)
{
	uint64_t code = synthetic_code(s, type, label);

	synthetic_set(s, synthetic_body(s, code), F_body_parent_iseq, parent);
	synthetic_set(s, synthetic_body(s, code), F_body_local_iseq, local);
	return code;
}

static void test_labels(void **state)
{
	struct synthetic *s = *state;
	uint64_t method =
	    synthetic_method(s, E_VM_METHOD_TYPE_ISEQ, synthetic_class(s, E_RUBY_T_CLASS, "Foo", true), "alias");
	uint64_t cfunc =
	    synthetic_method(s, E_VM_METHOD_TYPE_CFUNC, synthetic_class(s, E_RUBY_T_CLASS, "Array", true), "each");
	uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "bar"), one, two, rescue;

	one = inner_code(s, E_ISEQ_TYPE_BLOCK, "block in bar", code, code);
	rescue = inner_code(s, E_ISEQ_TYPE_RESCUE, "rescue in block in bar", one, code);
	two = inner_code(s, E_ISEQ_TYPE_BLOCK, "block (2 levels) in bar", rescue, code);
	assert_labels(s, code, method, "Foo#bar", "Foo#bar");
	assert_labels(s, one, method, "block in Foo#bar", "block in Foo#bar");
	assert_labels(s, rescue, method, "block in Foo#bar", "block in Foo#bar");
	assert_labels(s, two, method, "block (2 levels) in Foo#bar", "block (2 levels) in Foo#bar");
	assert_labels(s, 0, cfunc, "Array#each", "Array#each");
	assert_labels(s, synthetic_code(s, E_ISEQ_TYPE_MAIN, "<main>"), 0, "<main>", "<main>");
	/* Only a method's own label is qualified, not that of a body that runs within it. */
	assert_labels(s, synthetic_code(s, E_ISEQ_TYPE_CLASS, "<class:Foo>"), method, "<class:Foo>", "<class:Foo>");
	assert_labels(s, inner_code(s, E_ISEQ_TYPE_EVAL, "eval", code, code), method, "Foo#bar", "Foo#bar");
	/* Before 3.4 Ruby prints what the code says. */
	synthetic_without(s, F_location_cme);
	assert_labels(s, code, method, "bar", "Foo#bar");
	assert_labels(s, two, method, "block (2 levels) in bar", "block (2 levels) in Foo#bar");
	assert_labels(s, rescue, method, "rescue in block in bar", "block in Foo#bar");
	assert_labels(s, 0, cfunc, "each", "Array#each");
}

/* Methods that are written in Ruby and shown as if in C are labelled by the method, whatever code runs. */
static void test_c_trace(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "each");
	uint64_t address =
	    synthetic_method(s, E_VM_METHOD_TYPE_ISEQ, synthetic_class(s, E_RUBY_T_CLASS, "Array", true), "each");
	uint64_t block = inner_code(s, E_ISEQ_TYPE_BLOCK, "block in each", code, code);
	struct access access = ruby_access(&s->ruby);
	struct method method;
	struct code read;

	synthetic_set(s, access_member(&access, address, F_ment_def), F_mdef_iseq, code);
	assert_true(method_read(&access, address, &method));
	assert_false(method.acts_as_cfunc);
	assert_labels(s, block, address, "block in Array#each", "block in Array#each");
	synthetic_set(s, synthetic_body(s, code), F_body_builtin_attrs,
		      synthetic_enum(s, E_BUILTIN_ATTR_C_TRACE) | 0x3);
	access = ruby_access(&s->ruby);
	assert_true(method_read(&access, address, &method));
	assert_true(method.acts_as_cfunc);
	assert_true(code_read(&access, code, &read));
	assert_true(code_acts_as_cfunc(&access, &read));
	assert_labels(s, block, address, "Array#each", "block in Array#each");
	synthetic_without_enumerator(s, E_BUILTIN_ATTR_C_TRACE);
	assert_false(code_acts_as_cfunc(&access, &read));
	assert_true(method_read(&access, address, &method));
	assert_false(method.acts_as_cfunc);
	access = ruby_access(&s->ruby);
	assert_false(method_read(&access, NOWHERE, &method));
}

static void test_hidden_callers(void **state)
{
	struct synthetic *s = *state;
	struct code code = {.type = synthetic_enum(s, E_ISEQ_TYPE_RESCUE)};

	assert_true(code_hides_caller(s->layout, &code));
	code.type = synthetic_enum(s, E_ISEQ_TYPE_ENSURE);
	assert_true(code_hides_caller(s->layout, &code));
	code.type = synthetic_enum(s, E_ISEQ_TYPE_BLOCK);
	assert_false(code_hides_caller(s->layout, &code));
	code.type = synthetic_enum(s, E_ISEQ_TYPE_RESCUE);
	s->layout->functions[P_is_rescue_or_ensure_frame] = false;
	assert_false(code_hides_caller(s->layout, &code));
}

static void assert_no_label(struct synthetic *s, uint64_t address)
{
	struct access access = ruby_access(&s->ruby);
	struct text text = {0};
	struct code code;

	assert_true(code_read(&access, address, &code));
	label_of_code(&s->ruby, &access, &code, NULL, &text);
	assert_true(access.failed);
	text_clear(&text);
}

/* Hostile: code of that type in a ring, which encloses itself and a block; its local code is nowhere. */
static void assert_ring_fails(struct synthetic *s, enum layout_enumerator_id type, size_t length)
{
	uint64_t ring[3];

	for (size_t i = 0; i < length; i++)
		ring[i] = inner_code(s, type, "ring", 0, 0);
	for (size_t i = 0; i < length; i++)
		synthetic_set(s, synthetic_body(s, ring[i]), F_body_parent_iseq, ring[(i + 1) % length]);
	assert_no_label(s, inner_code(s, E_ISEQ_TYPE_BLOCK, "block", ring[0], 0));
	if (type != E_ISEQ_TYPE_METHOD)
		assert_no_label(s, ring[0]);
}

static void test_labels_without_end(void **state)
{
	struct synthetic *s = *state;
	uint64_t block = synthetic_code(s, E_ISEQ_TYPE_BLOCK, "<compiled>");
	struct access access = ruby_access(&s->ruby);
	struct text text = {0};
	struct code code;

	for (size_t length = 1; length <= 3; length++) {
		assert_ring_fails(s, E_ISEQ_TYPE_BLOCK, length);
		assert_ring_fails(s, E_ISEQ_TYPE_ENSURE, length);
		assert_ring_fails(s, E_ISEQ_TYPE_EVAL, length);
		assert_ring_fails(s, E_ISEQ_TYPE_METHOD, length);
	}
	/* A block that is compiled alone is its own local code. */
	access = ruby_access(&s->ruby);
	assert_true(code_read(&access, block, &code));
	label_of_code(&s->ruby, &access, &code, NULL, &text);
	assert_false(access.failed);
	assert_string_equal(text.data, "block in <compiled>");
	text_clear(&text);
}

#define MODERN(test) cmocka_unit_test_setup_teardown(test, synthetic_set_up, synthetic_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    MODERN(test_labels),
	    MODERN(test_c_trace),
	    MODERN(test_hidden_callers),
	    MODERN(test_labels_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
