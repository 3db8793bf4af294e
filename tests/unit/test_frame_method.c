/*
 * Which method a control frame runs: the one of its own environment or of an enclosing one, on the stack or on the
 * heap, or the one that older Rubies keep elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "synthetic_stack.h"

/* How many frames a stack has that leads in circles; each could be followed 4096 times. */
enum { DEEP = 200 };

static void test_c_functions(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t cfunc = local(s, E_VM_FRAME_MAGIC_CFUNC), cref = synthetic_imemo(s, S_svar, E_imemo_cref);

	push(&stack, 0, 0, env(&stack, 0, 0, cfunc));
	assert_one(&stack, FRAME_UNREADABLE, REASON_NO_METHOD, 0);
	stack = new_stack(s);
	push(&stack, 0, 0, env(&stack, cref, 0, cfunc));
	assert_one(&stack, FRAME_UNREADABLE, REASON_NO_METHOD, 0);
}

/* A frame in the making may have the method entry of the one that was there before. */
static void test_method_other(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), other = synthetic_imemo(s, S_iseq, E_imemo_iseq);
	uint64_t method = new_method(s), cfunc = synthetic_method(s, E_VM_METHOD_TYPE_CFUNC, 0, "c"), definition;
	struct access access = ruby_access(&s->ruby);

	definition = access_member(&access, method, F_ment_def);
	synthetic_set(s, definition, F_mdef_iseq, other);
	push(&stack, PC, code, env(&stack, method, 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	assert_one(&stack, FRAME_UNREADABLE, REASON_METHOD_OTHER, 0);
	synthetic_set(s, definition, F_mdef_iseq, code);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, method, 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	/* That of a C function is none for Ruby code. */
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, cfunc, 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	assert_one(&stack, FRAME_UNREADABLE, REASON_METHOD_OTHER, 0);
	/* A block has the method entry of what it is in. */
	stack = new_stack(s);
	synthetic_set(s, definition, F_mdef_iseq, other);
	push(&stack, PC, code, env(&stack, method, 0, local(s, E_VM_FRAME_MAGIC_BLOCK)));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	/* A method's frame without a method entry. */
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	assert_one(&stack, FRAME_UNREADABLE, REASON_NO_METHOD, 0);
	/* A definition that cannot be read says nothing. */
	stack = new_stack(s);
	synthetic_set(s, method, F_ment_def, NOWHERE);
	push(&stack, PC, code, env(&stack, method, 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
}

/* A block's method is that of the method that it is written in, or its own where a method was made of it. */
static void test_blocks(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), block = synthetic_enum(s, E_VM_FRAME_MAGIC_BLOCK);
	uint64_t cref = synthetic_imemo(s, S_svar, E_imemo_cref), outer = new_method(s), own = new_method(s), ep;
	struct vm_stack stack = new_stack(s);

	/* The way up carries a tag in its low bits. */
	ep = env(&stack, outer, 0, local(s, E_VM_FRAME_MAGIC_METHOD));
	ep = env(&stack, 0, ep | 1, block);
	ep = env(&stack, cref, ep | 3, block);
	push(&stack, PC, code, ep);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, outer);
	stack = new_stack(s);
	ep = env(&stack, outer, 0, local(s, E_VM_FRAME_MAGIC_METHOD));
	ep = env(&stack, own, ep, block);
	ep = env(&stack, 0, ep, block);
	push(&stack, PC, code, ep);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, own);
	/* At the top, there is none; what lies beyond the local environment is not looked at. */
	stack = new_stack(s);
	ep = env(&stack, outer, 0, local(s, E_VM_FRAME_MAGIC_METHOD));
	ep = env(&stack, cref, ep, local(s, E_VM_FRAME_MAGIC_TOP));
	ep = env(&stack, 0, ep, block);
	push(&stack, PC, code, ep);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, 0, NOWHERE + 64, block));
	assert_one(&stack, FRAME_UNREADABLE, REASON_METHOD_UNREADABLE, 0);
}

static uint64_t new_svar(struct synthetic *s, uint64_t cref_or_me)
{
	uint64_t svar = synthetic_imemo(s, S_svar, E_imemo_svar);

	synthetic_set(s, svar, F_svar_cref_or_me, cref_or_me);
	return svar;
}

/* A method that has used =~ keeps its entry behind an svar; in a block's environment one means nothing. */
static void test_svar(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), block = synthetic_enum(s, E_VM_FRAME_MAGIC_BLOCK);
	uint64_t method = local(s, E_VM_FRAME_MAGIC_METHOD), right = new_method(s), wrong = new_method(s),
		 top = local(s, E_VM_FRAME_MAGIC_TOP), ep;
	struct vm_stack stack = new_stack(s);

	push(&stack, PC, code, env(&stack, new_svar(s, right), 0, method));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, right);
	stack = new_stack(s);
	ep = env(&stack, new_svar(s, right), 0, method);
	push(&stack, PC, code, env(&stack, new_svar(s, wrong), ep, block));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, right);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, new_svar(s, synthetic_imemo(s, S_svar, E_imemo_cref)), 0, top));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, new_svar(s, 0), 0, top));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	/* Hostile: svars behind svars, in a circle too. */
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, new_svar(s, new_svar(s, wrong)), 0, top));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	ep = new_svar(s, 0);
	synthetic_set(s, ep, F_svar_cref_or_me, ep);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, ep, 0, top));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
}

/* On the heap, with the rb_env_t that it belongs to. */
static uint64_t heap_env(struct synthetic *s, uint64_t me_cref, uint64_t specval, uint64_t flags, uint64_t *object)
{
	uint64_t at = synthetic_allocate(s, 4 * 8);

	*object = synthetic_imemo(s, S_env, E_imemo_env);
	synthetic_set(s, *object, F_env_ep, at + 16);
	synthetic_put_word(s, at + 24, *object);
	return put_env(s, at, me_cref, specval, flags | synthetic_enum(s, E_VM_ENV_FLAG_ESCAPED));
}

static void test_escaped(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), method = new_method(s), object, ep;
	uint64_t flags = local(s, E_VM_FRAME_MAGIC_METHOD);
	struct vm_stack stack = new_stack(s);

	ep = heap_env(s, method, 0, flags, &object);
	push(&stack, PC, code, ep);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	/* Neither the flag nor the object alone will do. */
	synthetic_put_word(s, ep, flags);
	assert_one(&stack, FRAME_UNREADABLE, REASON_EP_OUTSIDE, 0);
	synthetic_put_word(s, ep, flags | synthetic_enum(s, E_VM_ENV_FLAG_ESCAPED));
	synthetic_put_word(s, ep + 8, code);
	assert_one(&stack, FRAME_UNREADABLE, REASON_EP_OUTSIDE, 0);
	synthetic_put_word(s, ep + 8, NOWHERE);
	assert_one(&stack, FRAME_UNREADABLE, REASON_ENV_UNREADABLE, 0);
	/* A block on the stack of a method whose environment is on the heap. */
	stack = new_stack(s);
	ep = heap_env(s, method, 0, flags, &object);
	push(&stack, PC, code, env(&stack, 0, ep | 1, synthetic_enum(s, E_VM_FRAME_MAGIC_BLOCK)));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
}

/* The slots have moved to the heap; on the stack a pointer to the rb_env_t stands where the flags were. */
static void test_forwarded(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), right = new_method(s), stale = new_method(s), object;
	struct vm_stack stack = new_stack(s);
	struct stack walked;
	uint64_t ep;

	ep = heap_env(s, right, 0, local(s, E_VM_FRAME_MAGIC_METHOD), &object);
	push(&stack, PC, code, env(&stack, stale, 0, object));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, right);
	stack = new_stack(s);
	ep = env(&stack, stale, 0, object);
	push(&stack, PC, code, env(&stack, 0, ep, synthetic_enum(s, E_VM_FRAME_MAGIC_BLOCK)));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, right);
	/* Hostile: it leads to one that has moved again, which is no flags, whatever bits the address has. */
	ep = heap_env(s, right, 0, 1, &object);
	synthetic_put_word(s, ep, object);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, stale, 0, object));
	walked = walk(&stack);
	assert_int_equal(walked.frames[0].kind, FRAME_UNREADABLE);
	assert_int_equal(validate_verdict(walked.reason), VERDICT_TORN);
	stack_clear(&walked);
	/* A Ruby that has no such struct. */
	heap_env(s, right, 0, local(s, E_VM_FRAME_MAGIC_METHOD), &object);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, stale, 0, object));
	synthetic_without(s, F_env_ep);
	assert_one(&stack, FRAME_UNREADABLE, REASON_FRAME_KIND, 0);
}

/* Hostile: environments that enclose each other. The fixture ends a test that does not end. */
static void test_circle(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), block = synthetic_enum(s, E_VM_FRAME_MAGIC_BLOCK);
	struct vm_stack stack = new_stack(s);
	uint64_t one, two;

	one = env(&stack, 0, 0, block);
	two = env(&stack, 0, one, block);
	synthetic_put_word(s, one - 8, two);
	push(&stack, PC, code, one);
	assert_one(&stack, FRAME_UNREADABLE, REASON_METHOD_UNREADABLE, 0);
	stack = new_stack(s);
	one = env(&stack, 0, 0, synthetic_enum(s, E_VM_FRAME_MAGIC_CFUNC));
	synthetic_put_word(s, one - 8, one);
	push(&stack, 0, 0, one);
	assert_one(&stack, FRAME_UNREADABLE, REASON_METHOD_UNREADABLE, 0);
}

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Hostile: each frame of a deep stack is in such a circle. All of them together take no longer than a moment. */
static void test_many_circles(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), block = synthetic_enum(s, E_VM_FRAME_MAGIC_BLOCK);
	struct vm_stack stack = new_stack(s);
	uint64_t one = env(&stack, synthetic_imemo(s, S_svar, E_imemo_cref), 0, block);
	struct stack walked;
	double before;

	synthetic_put_word(s, one - 8, one);
	/* The outermost frame is right, but so many environments were followed before that it is not known. */
	push(&stack, PC, code, env(&stack, new_method(s), 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	for (int i = 0; i < DEEP; i++)
		push(&stack, PC, code, one);
	before = cpu_seconds();
	walked = walk(&stack);
	assert_true(cpu_seconds() - before < 1);
	assert_int_equal(walked.nr_frames, DEEP + 1);
	for (int i = 0; i <= DEEP; i++)
		assert_int_equal(walked.frames[i].reason, REASON_METHOD_UNREADABLE);
	stack_clear(&walked);
}

/* In the middle of compaction. */
static void test_moved(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), method = new_method(s);
	uint64_t flags = local(s, E_VM_FRAME_MAGIC_METHOD);
	struct vm_stack stack = new_stack(s);

	push(&stack, PC, synthetic_moved(s, code), env(&stack, method, 0, flags));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, synthetic_moved(s, method), 0, flags));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, synthetic_moved(s, new_svar(s, synthetic_moved(s, method))), 0, flags));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	stack = new_stack(s);
	push(&stack, PC, synthetic_moved(s, NOWHERE), env(&stack, method, 0, flags));
	assert_one(&stack, FRAME_UNREADABLE, REASON_NOT_CODE, 0);
}

/* 2.3: the kind is in the frame; an environment has two words, the second of which is the enclosing one or a block. */
static void test_two_words(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), method = new_method(s), at, outer;
	uint64_t local_flag = synthetic_enum(s, E_VM_ENV_FLAG_LOCAL);
	struct vm_stack stack;

	synthetic_with(s, F_cfp_flag);
	synthetic_without_enumerator(s, E_VM_ENV_FLAG_ESCAPED);
	stack = new_stack(s);
	at = env(&stack, 0, method, SYNTHETIC_BASE | local_flag | 1);
	synthetic_set(s, push(&stack, PC, code, at), F_cfp_flag, synthetic_enum(s, E_VM_FRAME_MAGIC_METHOD));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);

	/* A block's leads to the method's, which is on the heap, before the object that it belongs to. */
	stack = new_stack(s);
	outer = put_env(s, synthetic_allocate(s, 4 * 8), 0, method, local_flag | 1);
	synthetic_put_word(s, outer + 8, synthetic_object(s, S_typed_data, synthetic_enum(s, E_RUBY_T_DATA)));
	at = env(&stack, 0, 0, outer | 1);
	synthetic_set(s, push(&stack, PC, code, at), F_cfp_flag, synthetic_enum(s, E_VM_FRAME_MAGIC_BLOCK));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	synthetic_set(s, stack.cfp, F_cfp_ep, outer);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	synthetic_put_word(s, outer + 8, method);
	assert_one(&stack, FRAME_UNREADABLE, REASON_EP_OUTSIDE, 0);
}

/* Until 2.2: the method entry is in the frame, code is no object but belongs to one, and nothing is climbed. */
static void test_method_in_frame(void **state)
{
	struct synthetic *s = *state;
	uint64_t code, object, method = new_method(s), c_function = synthetic_method(s, E_VM_METHOD_TYPE_CFUNC, 0, "c");
	uint64_t cfp, at;
	struct vm_stack stack;

	synthetic_with(s, F_cfp_flag);
	synthetic_with(s, F_cfp_me);
	synthetic_with(s, F_iseq_self);
	synthetic_without_enumerator(s, E_RUBY_T_IMEMO);
	synthetic_without_enumerator(s, E_VM_ENV_FLAG_ESCAPED);
	code = synthetic_struct(s, S_iseq);
	object = synthetic_object(s, S_typed_data, synthetic_enum(s, E_RUBY_T_DATA));
	synthetic_set(s, code, F_iseq_self, object);
	synthetic_set(s, object, F_typed_data_data, code);

	stack = new_stack(s);
	at = env(&stack, NOWHERE, NOWHERE, 1);
	cfp = push(&stack, PC, code, at);
	synthetic_set(s, cfp, F_cfp_flag, synthetic_enum(s, E_VM_FRAME_MAGIC_METHOD));
	synthetic_set(s, cfp, F_cfp_me, method);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, method);
	synthetic_set(s, cfp, F_cfp_me, 0);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	synthetic_set(s, object, F_typed_data_data, code + 8);
	assert_one(&stack, FRAME_UNREADABLE, REASON_NOT_CODE, 0);
	/* The node of a block that is written in C. */
	synthetic_set(s, cfp, F_cfp_pc, 0);
	assert_one(&stack, FRAME_HIDDEN, REASON_NONE, 0);

	synthetic_set(s, cfp, F_cfp_iseq, 0);
	synthetic_set(s, cfp, F_cfp_flag, synthetic_enum(s, E_VM_FRAME_MAGIC_CFUNC));
	synthetic_set(s, cfp, F_cfp_me, c_function);
	assert_one(&stack, FRAME_CFUNC, REASON_NONE, c_function);
	synthetic_set(s, cfp, F_cfp_me, 0);
	assert_one(&stack, FRAME_UNREADABLE, REASON_NO_METHOD, 0);
	synthetic_set(s, cfp, F_cfp_flag, synthetic_enum(s, E_VM_FRAME_MAGIC_FINISH));
	assert_one(&stack, FRAME_HIDDEN, REASON_NONE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_c_functions, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_method_other, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_blocks, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_svar, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_escaped, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_forwarded, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_circle, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_many_circles, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_moved, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_two_words, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_method_in_frame, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
