/* Call-site evidence: what is decided, and what is left open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ruby/call_site.h"
#include "synthetic.h"

#define PACKED	   UINT64_C(1)
#define FLAG_SHIFT 16
#define ID_SHIFT   32

/* A method of Ruby code, called by its own name. */
struct method {
	uint64_t id, entry, definition, code;
};

/* A caller at a send without a block, what it found there last, and another method. */
struct scene {
	struct synthetic *s;
	struct method found, other;
	uint64_t operands, call_data, start; /* start: of the code of `other` */
	struct frame caller, callee;
};

static struct method new_method(struct synthetic *s, enum layout_enumerator_id type, const char *name)
{
	struct method method = {.entry = synthetic_method(s, type, 0, name)};
	struct access access = ruby_access(&s->ruby);

	method.definition = access_member(&access, method.entry, F_ment_def);
	method.id = access_member(&access, method.definition, F_mdef_original_id);
	method.code = synthetic_code(s, E_ISEQ_TYPE_METHOD, name);
	assert_false(access.failed);
	synthetic_set(s, method.entry, F_ment_called_id, method.id);
	synthetic_set(s, method.definition, F_mdef_iseq, method.code);
	return method;
}

/* Call data as since 3.0: a packed name, and a cache. */
static uint64_t new_call_data(struct synthetic *s, uint64_t id, uint64_t flags, uint64_t entry)
{
	uint64_t call_data = synthetic_struct(s, S_call_data),
		 cache = synthetic_imemo(s, S_call_cache, E_imemo_callcache);

	synthetic_set(s, cache, F_call_cache_cme, entry);
	synthetic_set(s, call_data, F_call_data_ci, id << ID_SHIFT | flags << FLAG_SHIFT | PACKED);
	synthetic_set(s, call_data, F_call_data_cc, cache);
	return call_data;
}

/* Where code begins. */
static uint64_t start_of(struct synthetic *s, uint64_t code)
{
	struct access access = ruby_access(&s->ruby);
	uint64_t start = access_member(&access, synthetic_body(s, code), F_body_iseq_encoded);

	assert_false(access.failed);
	return start;
}

static struct scene new_scene(void **state)
{
	struct synthetic *s = *state;
	struct scene scene = {.s = s};

	synthetic_without(s, F_call_data_ci_mid);
	synthetic_without(s, F_call_data_ci_flag);
	synthetic_without(s, F_call_data_cc_me);
	synthetic_without(s, F_body_ci_kw_size);
	scene.found = new_method(s, E_VM_METHOD_TYPE_ISEQ, "found");
	scene.other = new_method(s, E_VM_METHOD_TYPE_ISEQ, "other");
	scene.call_data = new_call_data(s, scene.found.id, 0, scene.found.entry);
	/* An instruction, its call data, and the next instruction. */
	scene.operands = synthetic_allocate(s, 8 * 8);
	synthetic_put_word(s, scene.operands + 8 * 4, scene.call_data);
	scene.caller = (struct frame){.kind = FRAME_RUBY, .pc = scene.operands + 8 * 5};
	scene.start = start_of(s, scene.other.code);
	scene.callee = (struct frame){.kind = FRAME_RUBY,
				      .own_method = true,
				      .method = scene.other.entry,
				      .iseq = scene.other.code,
				      .pc = scene.start + 8};
	return scene;
}

static void assert_verdict(const struct scene *scene, enum call_site_verdict verdict)
{
	assert_int_equal(call_site_judge(&scene->s->ruby, &scene->caller, &scene->callee), verdict);
}

static void test_agrees(void **state)
{
	struct scene scene = new_scene(state);

	scene.callee.method = scene.found.entry;
	assert_verdict(&scene, CALL_SITE_AGREES);
}

static void test_contradicts(void **state)
{
	struct scene scene = new_scene(state);

	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
}

/* send with a block, or room for one: the call data is the last operand but one. */
static void test_with_block(void **state)
{
	struct scene scene = new_scene(state);

	synthetic_put_word(scene.s, scene.operands + 8 * 3, scene.call_data);
	synthetic_put_word(scene.s, scene.operands + 8 * 4, 0);
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_put_word(scene.s, scene.operands + 8 * 4, synthetic_code(scene.s, E_ISEQ_TYPE_BLOCK, "block"));
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	scene.callee.method = scene.found.entry;
	assert_verdict(&scene, CALL_SITE_AGREES);
}

static void test_no_send(void **state)
{
	struct scene scene = new_scene(state);

	synthetic_put_word(scene.s, scene.operands + 8 * 4, 0x1234);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_put_word(scene.s, scene.operands + 8 * 4, SYNTHETIC_BASE + SYNTHETIC_SIZE);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	scene.caller.pc = 8;
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

/* Blocks, code within methods, and frames that could not be read say nothing. */
static void test_frames_of_other_kinds(void **state)
{
	struct scene scene = new_scene(state), block = scene, without = scene, hidden = scene;

	block.callee.own_method = false;
	assert_verdict(&block, CALL_SITE_UNDECIDED);
	without.callee.method = 0;
	assert_verdict(&without, CALL_SITE_UNDECIDED);
	hidden.caller.kind = FRAME_HIDDEN;
	assert_verdict(&hidden, CALL_SITE_UNDECIDED);
}

/* What a C function calls is the first frame of a vm_exec(), or that of another C function. */
static void test_called_from_c(void **state)
{
	struct scene scene = new_scene(state);

	scene.caller.kind = FRAME_CFUNC;
	/* It has not run yet: the flag may be still to come. */
	scene.callee.pc = scene.start;
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	scene.callee.pc = scene.start + 8;
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	scene.callee.finish = true;
	assert_verdict(&scene, CALL_SITE_AGREES);
	scene.callee.finish = false;
	scene.callee.kind = FRAME_CFUNC;
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	scene.callee.kind = FRAME_RUBY;
	synthetic_without_enumerator(scene.s, E_VM_FRAME_FLAG_FINISH);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

/* An instruction for an operator calls hash, coerce and others, without a frame of its own. */
static void test_called_for_an_operator(void **state)
{
	struct scene scene = new_scene(state);
	struct synthetic *s = scene.s;
	uint64_t sent = synthetic_enum(s, E_tLAST_OP_ID);

	/* Not for a name; but if C has called it, it is not what was sent. */
	scene.callee.pc = scene.start;
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	scene.callee.finish = true;
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	scene.callee.finish = false;
	synthetic_set(s, scene.found.entry, F_ment_called_id, sent);
	synthetic_put_word(s, scene.operands + 8 * 4, new_call_data(s, sent, 0, scene.found.entry));
	/* It has not run yet: the flag may be still to come. */
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	scene.callee.pc = scene.start + 8;
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	scene.callee.finish = true;
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	/* A C function has no such flag. */
	scene.callee.finish = false;
	scene.callee.kind = FRAME_CFUNC;
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_without_enumerator(s, E_tLAST_OP_ID);
	scene.callee.kind = FRAME_RUBY;
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

/* What is given as a block is asked for to_proc. */
static void test_called_for_a_block(void **state)
{
	struct scene scene = new_scene(state);

	scene.callee.kind = FRAME_CFUNC;
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_put_word(scene.s, scene.operands + 8 * 3, scene.call_data);
	synthetic_put_word(scene.s, scene.operands + 8 * 4, synthetic_code(scene.s, E_ISEQ_TYPE_BLOCK, "block"));
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_put_word(scene.s, scene.operands + 8 * 4, 0);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

/* What was found by another name (alias), or is no plain method (send, method_missing), decides nothing. */
static void test_what_was_found(void **state)
{
	struct scene scene = new_scene(state);

	synthetic_set(scene.s, scene.found.entry, F_ment_called_id, scene.other.id + 1);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_set(scene.s, scene.found.entry, F_ment_called_id, scene.found.id);
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_set(scene.s, scene.found.definition, F_mdef_type, 1);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

/* A method that has other names may have been called by one. */
static void test_callee_with_other_names(void **state)
{
	struct scene scene = new_scene(state);

	synthetic_set(scene.s, scene.other.definition, F_mdef_alias_count, 1);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_set(scene.s, scene.other.definition, F_mdef_alias_count, 0);
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_set(scene.s, scene.other.entry, F_ment_called_id, synthetic_enum(scene.s, E_idMethodMissing));
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

static void test_callee_with_other_entries(void **state)
{
	struct scene scene = new_scene(state);

	synthetic_without(scene.s, F_mdef_alias_count);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_with(scene.s, F_mdef_reference_count);
	synthetic_set(scene.s, scene.other.definition, F_mdef_reference_count, 2);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_set(scene.s, scene.other.definition, F_mdef_reference_count, 1);
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
}

/* The method found may have given its place to another. */
static void test_tail_calls(void **state)
{
	struct scene scene = new_scene(state);
	struct synthetic *s = scene.s;
	uint64_t body = synthetic_body(s, scene.found.code), size = (uint64_t)s->layout->sizes[S_call_data].value;
	uint64_t tail = UINT64_C(1) << synthetic_enum(s, E_VM_CALL_TAILCALL_bit);
	uint64_t calls = synthetic_allocate(s, 2 * size), info = synthetic_imemo(s, S_call_info, E_imemo_callinfo);

	synthetic_set(s, body, F_body_call_data, calls);
	synthetic_set(s, body, F_body_ci_size, 2);
	synthetic_set(s, calls, F_call_data_ci, PACKED | (tail - 1) << FLAG_SHIFT);
	synthetic_set(s, calls + size, F_call_data_ci, PACKED | tail << 1 << FLAG_SHIFT);
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_set(s, calls + size, F_call_data_ci, PACKED | tail << FLAG_SHIFT);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_set(s, calls + size, F_call_data_ci, info);
	synthetic_set(s, info, F_call_info_flag, tail - 1);
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_set(s, info, F_call_info_flag, tail);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	/* Calls that cannot be read, or are too many to be true. */
	synthetic_set(s, info, F_call_info_flag, 0);
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	synthetic_set(s, body, F_body_ci_size, UINT32_MAX);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
	synthetic_set(s, body, F_body_ci_size, 2);
	synthetic_set(s, body, F_body_call_data, SYNTHETIC_BASE + SYNTHETIC_SIZE);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

/* A C function has no code, and puts nothing in its place. */
static void test_c_function(void **state)
{
	struct scene scene = new_scene(state);

	scene.found = new_method(scene.s, E_VM_METHOD_TYPE_CFUNC, "in C");
	synthetic_set(scene.s, scene.found.definition, F_mdef_iseq, 0);
	synthetic_put_word(scene.s, scene.operands + 8 * 4,
			   new_call_data(scene.s, scene.found.id, 0, scene.found.entry));
	assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	scene.callee.method = scene.found.entry;
	assert_verdict(&scene, CALL_SITE_AGREES);
}

/* Without what a layout must say for it, nothing is decided. */
static void test_unknown_members(void **state)
{
	static const enum layout_member_id needed[] = {
	    F_ment_called_id, F_mdef_iseq,     F_body_call_data, F_body_ci_size,   F_call_data_ci,
	    F_call_data_cc,   F_call_info_mid, F_call_info_flag, F_call_cache_cme,
	};
	struct scene scene = new_scene(state);

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		struct layout_member *member = &scene.s->layout->members[needed[i]], before = *member;

		synthetic_without(scene.s, needed[i]);
		assert_verdict(&scene, CALL_SITE_UNDECIDED);
		*member = before;
		assert_verdict(&scene, CALL_SITE_CONTRADICTS);
	}
	synthetic_without_enumerator(scene.s, E_VM_CALL_TAILCALL_bit);
	assert_verdict(&scene, CALL_SITE_UNDECIDED);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, synthetic_set_up, synthetic_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_agrees),
	    TEST(test_contradicts),
	    TEST(test_with_block),
	    TEST(test_no_send),
	    TEST(test_frames_of_other_kinds),
	    TEST(test_called_from_c),
	    TEST(test_called_for_an_operator),
	    TEST(test_called_for_a_block),
	    TEST(test_what_was_found),
	    TEST(test_callee_with_other_names),
	    TEST(test_callee_with_other_entries),
	    TEST(test_tail_calls),
	    TEST(test_c_function),
	    TEST(test_unknown_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
