/* The references of internal objects and of code: those that are given, and memory that cannot be right. */
#include "ruby/imemo_refs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "given_refs.h"
#include "synthetic.h"

static struct given refs_in(struct synthetic *s, uint64_t object, uint64_t steps)
{
	struct given given = {.count = 0};
	struct object_refs refs = {.layout = s->layout};
	const struct object_slot slot = {object, s->bytes + (object - SYNTHETIC_BASE), 1024};
	struct access access = ruby_access(&s->ruby);
	struct refs_walk walk = {&refs, &access, &slot, slot_flags(s->layout, &slot), given_note, &given, steps};

	assert_true(ivars_read(&s->ruby, &refs.ivars));
	given.all = imemo_refs(&walk);
	ivars_clear(&refs.ivars);
	return given;
}

static struct given refs_of(struct synthetic *s, uint64_t object)
{
	return refs_in(s, object, 1000);
}

static bool gives(const struct given *given, uint64_t target, enum ref_label label, enum ref_certainty certainty)
{
	for (size_t i = 0; i < given->count; i++)
		if (given->refs[i].target == target && given->refs[i].label == label &&
		    given->refs[i].certainty == certainty)
			return true;
	return false;
}

static uint64_t word_at_member(struct synthetic *s, uint64_t object, enum layout_member_id id)
{
	struct access access = ruby_access(&s->ruby);

	return access_member(&access, object, id);
}

static void test_cref(void **state)
{
	struct synthetic *s = *state;
	uint64_t cref = synthetic_imemo(s, S_cref, E_imemo_cref), klass = synthetic_string(s, "");
	struct given given;

	synthetic_set(s, cref, F_cref_klass, klass);
	synthetic_set(s, cref, F_cref_refinements, synthetic_enum(s, E_RUBY_Qnil));
	given = refs_of(s, cref);
	assert_true(given.all);
	assert_int_equal(given.count, 1);
	assert_true(gives(&given, klass, REF_PART, REF_EXACT));
	synthetic_without(s, F_cref_klass);
	assert_false(refs_of(s, cref).all);
}

static uint64_t environment(struct synthetic *s, uint64_t specval, uint64_t flags)
{
	uint64_t env = synthetic_imemo(s, S_env, E_imemo_env), values = synthetic_allocate(s, 5 * 8);

	synthetic_put_word(s, values, SYNTHETIC_BASE + 8);
	synthetic_put_word(s, values + 8, 1);
	synthetic_put_word(s, values + 16, specval);
	synthetic_put_word(s, values + 24, flags | 1);
	synthetic_put_word(s, values + 32, env);
	synthetic_set(s, env, F_env_values, values);
	synthetic_set(s, env, F_env_size, 4);
	synthetic_set(s, env, F_env_ep, values + 24);
	return env;
}

static void test_environment(void **state)
{
	struct synthetic *s = *state;
	uint64_t outer = environment(s, 0, synthetic_enum(s, E_VM_ENV_FLAG_LOCAL));
	uint64_t ep = word_at_member(s, outer, F_env_ep), inner = environment(s, ep | 1, 0);
	struct given given = refs_of(s, outer);

	assert_true(given.all);
	assert_int_equal(given.count, 1);
	assert_true(gives(&given, SYNTHETIC_BASE + 8, REF_VARIABLE, REF_EXACT));
	given = refs_of(s, inner);
	assert_true(given.all && gives(&given, outer, REF_PART, REF_EXACT));
	synthetic_set(s, inner, F_env_size, UINT64_MAX);
	assert_false(refs_of(s, inner).all);
	synthetic_set(s, inner, F_env_ep, 0);
	assert_true(refs_of(s, inner).all);
}

/* Lists that lead to themselves. */
static void test_endless(void **state)
{
	struct synthetic *s = *state;
	uint64_t buffer = synthetic_imemo(s, S_tmpbuf, E_imemo_tmpbuf);
	uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m");
	uint64_t list = synthetic_struct(s, S_hook_list), hook = synthetic_struct(s, S_hook);

	synthetic_set(s, buffer, F_tmpbuf_next, buffer);
	assert_false(refs_of(s, buffer).all);
	assert_true(refs_of(s, code).all);
	synthetic_set(s, list, F_hook_list_hooks, hook);
	synthetic_set(s, code, F_iseq_hooks, list);
	assert_true(refs_of(s, code).all);
	synthetic_set(s, hook, F_hook_next, hook);
	assert_false(refs_of(s, code).all);
}

static void test_marked_words(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m"), body = synthetic_body(s, code);
	uint64_t words = word_at_member(s, body, F_body_iseq_encoded), list = synthetic_allocate(s, 16);
	struct given given;

	synthetic_put_word(s, words + 69 * 8, list);
	synthetic_put_word(s, list, 0);
	synthetic_put_word(s, list + 8, 1 << (69 - 64));
	synthetic_set(s, body, F_body_mark_bits, list);
	given = refs_of(s, code);
	assert_true(given.all && gives(&given, list, REF_CODE, REF_EXACT));
	/* Behind the end of the code. */
	synthetic_put_word(s, list + 8, UINT64_C(1) << 40);
	assert_false(refs_of(s, code).all);
	/* A few words: the bits themselves are there. */
	synthetic_set(s, body, F_body_iseq_size, 10);
	synthetic_put_word(s, words + 3 * 8, list);
	synthetic_set(s, body, F_body_mark_bits, 1 << 3);
	given = refs_of(s, code);
	assert_true(given.all && gives(&given, list, REF_CODE, REF_EXACT));
	assert_false(refs_in(s, code, 0).all);
}

/* 2.6 to 3.1. */
static void test_words(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m"), body = synthetic_body(s, code);
	uint64_t once = synthetic_code(s, E_ISEQ_TYPE_PLAIN, "once"), cache = synthetic_struct(s, S_is_entry);
	uint64_t words = word_at_member(s, body, F_body_iseq_encoded), string = synthetic_string(s, "");
	struct given given;

	synthetic_without(s, F_body_mark_bits);
	for (int i = 0; i < 100; i++)
		synthetic_put_word(s, words + (uint64_t)i * 8, 1);
	synthetic_put_word(s, words + 8, string);
	synthetic_put_word(s, words + 3 * 8, once);
	synthetic_put_word(s, words + 4 * 8, cache);
	synthetic_set(s, cache, F_is_entry_once, body);
	synthetic_set(s, body, F_body_is_entries, cache);
	synthetic_set(s, body, F_body_is_size, 1);
	given = refs_of(s, code);
	assert_true(given.all && !gives(&given, string, REF_CODE, REF_CONSERVATIVE));
	synthetic_set(s, code, F_basic_flags,
		      word_at_member(s, code, F_basic_flags) | synthetic_enum(s, E_ISEQ_MARKABLE_ISEQ));
	given = refs_of(s, code);
	assert_true(given.all && gives(&given, string, REF_CODE, REF_CONSERVATIVE));
	assert_true(gives(&given, once, REF_CODE, REF_CONSERVATIVE) && gives(&given, body, REF_CODE, REF_EXACT));
	assert_false(gives(&given, cache, REF_CODE, REF_CONSERVATIVE));
	assert_false(refs_in(s, code, 50).all);
}

/* A just-in-time compiler marks objects that are not known. */
static void test_compiled(void **state)
{
	static const enum layout_member_id members[] = {F_body_mjit_unit, F_body_yjit_payload, F_body_rjit_blocks,
							F_body_zjit_payload};
	struct synthetic *s = *state;
	uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m"), body = synthetic_body(s, code);

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		synthetic_set(s, body, members[i], body);
		assert_false(refs_of(s, code).all);
		synthetic_set(s, body, members[i], 0);
		assert_true(refs_of(s, code).all);
	}
}

static void test_call_cache(void **state)
{
	struct synthetic *s = *state;
	uint64_t cache = synthetic_imemo(s, S_call_cache, E_imemo_callcache), flags;
	uint64_t klass = synthetic_string(s, ""), method = synthetic_string(s, "");
	struct given given;

	synthetic_set(s, cache, F_call_cache_klass, klass);
	synthetic_set(s, cache, F_call_cache_cme, method);
	given = refs_of(s, cache);
	assert_true(given.all && given.count == 0);
	flags = word_at_member(s, cache, F_basic_flags);
	synthetic_set(s, cache, F_basic_flags, flags | synthetic_enum(s, E_VM_CALLCACHE_SUPER));
	given = refs_of(s, cache);
	assert_true(given.all && given.count == 1 && gives(&given, method, REF_PART, REF_EXACT));
	s->layout->functions[P_rb_imemo_mark_and_move] = s->layout->functions[P_rb_cc_table_mark] = true;
	given = refs_of(s, cache);
	assert_true(given.all && given.count == 2 && gives(&given, klass, REF_PART, REF_EXACT));
	s->layout->functions[P_rb_cc_table_mark] = false;
	synthetic_set(s, cache, F_call_cache_klass, synthetic_enum(s, E_RUBY_Qnil));
	given = refs_of(s, cache);
	assert_true(given.all && given.count == 0);
	synthetic_without_enumerator(s, E_VM_CALLCACHE_SUPER);
	s->layout->functions[P_rb_imemo_mark_and_move] = false;
	synthetic_set(s, cache, F_basic_flags, flags);
	given = refs_of(s, cache);
	assert_true(given.all && given.count == 1 && gives(&given, method, REF_PART, REF_EXACT));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, synthetic_set_up, synthetic_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_cref),  TEST(test_environment), TEST(test_endless),    TEST(test_marked_words),
	    TEST(test_words), TEST(test_compiled),    TEST(test_call_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
