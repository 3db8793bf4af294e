/* The walk over control frames: which frames there are, of which kind each is, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "synthetic_stack.h"

/* Of a stack that cannot be walked. */
static void assert_refused(const struct vm_stack *stack, enum reason reason)
{
	struct stack walked = walk(stack);

	assert_int_equal(walked.reason, reason);
	assert_int_equal(walked.nr_frames, 0);
	stack_clear(&walked);
}

static void test_innermost_first(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t outer = synthetic_imemo(s, S_iseq, E_imemo_iseq), inner = synthetic_imemo(s, S_iseq, E_imemo_iseq);
	uint64_t cfunc = new_method(s), method = new_method(s), cfps[3];
	struct stack walked;

	cfps[0] = push(&stack, PC, outer, env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_TOP)));
	/* A pc in the frame of a C function is stale. */
	cfps[1] = push(&stack, PC + 8, 0, env(&stack, cfunc, 0, local(s, E_VM_FRAME_MAGIC_CFUNC)));
	cfps[2] = push(&stack, PC + 16, inner, env(&stack, method, 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	walked = walk(&stack);
	assert_int_equal(walked.reason, REASON_NONE);
	assert_int_equal(walked.nr_frames, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(walked.frames[i].cfp, cfps[2 - i]);
	assert_int_equal(walked.frames[0].kind, FRAME_RUBY);
	assert_int_equal(walked.frames[0].iseq, inner);
	assert_int_equal(walked.frames[0].pc, PC + 16);
	assert_int_equal(walked.frames[0].method, method);
	assert_int_equal(walked.frames[1].kind, FRAME_CFUNC);
	assert_int_equal(walked.frames[1].method, cfunc);
	assert_int_equal(walked.frames[2].kind, FRAME_RUBY);
	assert_int_equal(walked.frames[2].iseq, outer);
	assert_int_equal(walked.frames[2].method, 0);
	stack_clear(&walked);
	assert_int_equal(walked.nr_frames, 0);
}

static void test_no_frames(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	struct stack walked = walk(&stack);

	assert_true(walked.started);
	assert_int_equal(walked.reason, REASON_NONE);
	assert_int_equal(walked.nr_frames, 0);
	stack_clear(&walked);
	synthetic_set(s, stack.ec, F_ec_vm_stack, 0); /* a thread that has not begun */
	synthetic_set(s, stack.ec, F_ec_cfp, 0);
	walked = walk(&stack);
	assert_false(walked.started);
	assert_int_equal(walked.reason, REASON_NONE);
	assert_int_equal(walked.nr_frames, 0);
}

static void test_stacks_refused(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s), right;

	push(&stack, PC, synthetic_imemo(s, S_iseq, E_imemo_iseq), env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_TOP)));
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	right = stack;
	stack.thread += 8;
	assert_refused(&stack, REASON_EC_FOREIGN);
	stack = right;
	stack.ec = NOWHERE;
	assert_refused(&stack, REASON_EC_UNREADABLE);
	stack.ec = 0;
	assert_refused(&stack, REASON_EC_UNREADABLE);
	stack = right;
	set_cfp(&stack, stack.end);
	assert_refused(&stack, REASON_CFP_OUTSIDE);
	set_cfp(&stack, stack.start - 8);
	assert_refused(&stack, REASON_CFP_OUTSIDE);
	set_cfp(&stack, 0);
	assert_refused(&stack, REASON_CFP_OUTSIDE);
	set_cfp(&stack, right.cfp - 8);
	assert_refused(&stack, REASON_CFP_MISALIGNED);
	set_cfp(&stack, right.cfp);
	synthetic_set(s, stack.ec, F_ec_vm_stack_size, 0);
	assert_refused(&stack, REASON_STACK_SIZE);
	synthetic_set(s, stack.ec, F_ec_vm_stack_size, VALIDATE_STACK_WORDS + 1);
	assert_refused(&stack, REASON_STACK_SIZE);
	synthetic_set(s, stack.ec, F_ec_vm_stack_size, UINT64_C(1) << 61);
	assert_refused(&stack, REASON_STACK_SIZE);
	synthetic_set(s, stack.ec, F_ec_vm_stack_size, 1);
	assert_refused(&stack, REASON_STACK_SIZE);
}

/* Hostile: a stack that claims as many frames as there may be, none of which is there. */
static void test_too_deep(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t frame = (uint64_t)s->layout->sizes[S_cfp].value;
	struct stack walked;

	synthetic_set(s, stack.ec, F_ec_vm_stack, NOWHERE);
	for (uint64_t frames = LIMIT; frames <= VALIDATE_FRAMES + 1; frames += VALIDATE_FRAMES + 1 - LIMIT) {
		synthetic_set(s, stack.ec, F_ec_vm_stack_size, (frames + 1) * frame / 8);
		set_cfp(&stack, NOWHERE);
		walked = walk(&stack);
		assert_int_equal(walked.reason, frames == LIMIT ? REASON_FRAME_UNREADABLE : REASON_TOO_DEEP);
		assert_int_equal(walked.nr_frames, LIMIT);
		assert_int_equal(walked.frames[LIMIT - 1].reason, REASON_FRAME_UNREADABLE);
		assert_int_equal(walked.frames[LIMIT - 1].cfp, NOWHERE + (LIMIT - 1) * frame);
		stack_clear(&walked);
	}
}

static void test_page_lost_in_the_middle(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t iseq = synthetic_imemo(s, S_iseq, E_imemo_iseq);
	uint64_t ep = env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_TOP));
	size_t unreadable = 0;
	struct stack walked;

	for (size_t i = 0; i < 120; i++)
		push(&stack, PC, iseq, ep);
	synthetic_unmap(s, stack.cfp + (stack.end - stack.cfp) / 2);
	walked = walk(&stack);
	assert_int_equal(walked.reason, REASON_FRAME_UNREADABLE);
	assert_int_equal(walked.nr_frames, 120);
	for (size_t i = 0; i < 120; i++) {
		if (walked.frames[i].kind == FRAME_RUBY)
			continue;
		assert_int_equal(walked.frames[i].kind, FRAME_UNREADABLE);
		assert_int_equal(walked.frames[i].reason, REASON_FRAME_UNREADABLE);
		unreadable++;
	}
	assert_in_range(unreadable, 1, 119);
	assert_int_equal(walked.frames[0].kind, FRAME_RUBY);
	assert_int_equal(walked.frames[119].kind, FRAME_RUBY);
	stack_clear(&walked);
}

/* The first thing found wrong is the stack's, whatever comes after it. */
static void test_first_reason(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t cfunc = local(s, E_VM_FRAME_MAGIC_CFUNC);
	struct stack walked;

	push(&stack, PC, 0, env(&stack, 0, 0, cfunc));
	push(&stack, PC, NOWHERE, env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_METHOD)));
	push(&stack, 0, 0, env(&stack, new_method(s), 0, cfunc));
	walked = walk(&stack);
	assert_int_equal(walked.nr_frames, 3);
	assert_int_equal(walked.frames[0].kind, FRAME_CFUNC);
	assert_int_equal(walked.frames[1].reason, REASON_NOT_CODE);
	assert_int_equal(walked.frames[2].reason, REASON_NO_METHOD);
	assert_int_equal(walked.reason, REASON_NOT_CODE);
	stack_clear(&walked);
}

static void test_hidden(void **state)
{
	static const enum layout_enumerator_id magics[] = {E_VM_FRAME_MAGIC_IFUNC, E_VM_FRAME_MAGIC_DUMMY,
							   E_VM_FRAME_MAGIC_TOP};
	struct synthetic *s = *state;
	uint64_t ifunc = synthetic_imemo(s, S_iseq, E_imemo_ifunc), code = synthetic_imemo(s, S_iseq, E_imemo_iseq);
	struct vm_stack stack;

	/* Whatever the kind, a frame without pc is none that Ruby shows: a C block, or one that marks a start. */
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		stack = new_stack(s);
		push(&stack, 0, i == 0 ? ifunc : code, env(&stack, 0, 0, local(s, magics[i])));
		assert_one(&stack, FRAME_HIDDEN, REASON_NONE, 0);
		stack = new_stack(s);
		push(&stack, 0, 0, env(&stack, 0, 0, local(s, magics[i])));
		assert_one(&stack, FRAME_HIDDEN, REASON_NONE, 0);
	}
	stack = new_stack(s);
	push(&stack, PC, ifunc, env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_IFUNC)));
	assert_one(&stack, FRAME_UNREADABLE, REASON_NOT_CODE, 0);
}

static void test_contradictions(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), method = local(s, E_VM_FRAME_MAGIC_METHOD);
	struct vm_stack stack = new_stack(s);

	push(&stack, PC, synthetic_string(s, "no code"), env(&stack, 0, 0, method));
	assert_one(&stack, FRAME_UNREADABLE, REASON_NOT_CODE, 0);
	stack = new_stack(s);
	push(&stack, PC, code + 1, env(&stack, 0, 0, method));
	assert_one(&stack, FRAME_UNREADABLE, REASON_NOT_CODE, 0);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, code, 0, method));
	assert_one(&stack, FRAME_UNREADABLE, REASON_FRAME_KIND, 0);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, synthetic_string(s, "no method"), 0, method));
	assert_one(&stack, FRAME_UNREADABLE, REASON_FRAME_KIND, 0);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_MASK)));
	assert_one(&stack, FRAME_UNREADABLE, REASON_FRAME_KIND, 0);
	stack = new_stack(s);
	push(&stack, PC, code, put_env(s, stack.start + 4, 0, 0, method));
	assert_one(&stack, FRAME_UNREADABLE, REASON_EP_OUTSIDE, 0);
	stack = new_stack(s);
	push(&stack, PC, code, 0);
	assert_one(&stack, FRAME_UNREADABLE, REASON_ENV_UNREADABLE, 0);
	stack = new_stack(s);
	push(&stack, PC, code, NOWHERE + 64);
	assert_one(&stack, FRAME_UNREADABLE, REASON_ENV_UNREADABLE, 0);
	stack = new_stack(s);
	push(&stack, PC, code, env(&stack, NOWHERE, 0, method));
	assert_one(&stack, FRAME_UNREADABLE, REASON_ENV_UNREADABLE, 0);
}

/* ZJIT of head: what a frame runs, and where, is in a struct that jit_return leads to, by way of the native stack. */
static void test_zjit(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), stale = synthetic_imemo(s, S_iseq, E_imemo_iseq);
	uint64_t native = synthetic_allocate(s, 16), frame = synthetic_struct(s, S_zjit_frame), cfp;
	struct stack walked;

	synthetic_with(s, F_zjit_frame_iseq);
	synthetic_put_word(s, native, frame);
	synthetic_set(s, frame, F_zjit_frame_pc, PC + 8);
	synthetic_set(s, frame, F_zjit_frame_iseq, code);
	cfp = push(&stack, PC, stale, env(&stack, 0, 0, local(s, E_VM_FRAME_MAGIC_BLOCK)));
	synthetic_set(s, cfp, F_cfp_jit_return, native + 8);
	for (enum zjit zjit = ZJIT_UNKNOWN; zjit <= ZJIT_ON; zjit++) {
		s->ruby.zjit = zjit;
		walked = walk(&stack);
		assert_int_equal(walked.nr_frames, 1);
		assert_int_equal(walked.frames[0].kind, FRAME_RUBY);
		assert_int_equal(walked.frames[0].iseq, zjit == ZJIT_OFF ? stale : code);
		assert_int_equal(walked.frames[0].pc, zjit == ZJIT_OFF ? PC : PC + 8);
		assert_true(walked.frames[0].jit);
		stack_clear(&walked);
	}
	/* YJIT's code goes on where jit_return points: what is before that is no pointer. */
	synthetic_put_word(s, native, 0x3de8c189);
	assert_one(&stack, FRAME_UNREADABLE, REASON_FRAME_UNREADABLE, 0);
	s->ruby.zjit = ZJIT_UNKNOWN;
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	synthetic_put_word(s, native, stale); /* an object, and no such frame */
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	synthetic_set(s, cfp, F_cfp_jit_return, NOWHERE);
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	synthetic_set(s, cfp, F_cfp_jit_return, 0); /* the interpreter's own */
	s->ruby.zjit = ZJIT_ON;
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
}

/* A C function that ZJIT's code has called leaves the iseq as it was. */
static void test_zjit_c_function(void **state)
{
	struct synthetic *s = *state;
	struct vm_stack stack = new_stack(s);
	uint64_t method = new_method(s), stale = synthetic_imemo(s, S_iseq, E_imemo_iseq), cfp;

	synthetic_with(s, F_zjit_frame_iseq);
	cfp = push(&stack, PC, stale, env(&stack, method, 0, local(s, E_VM_FRAME_MAGIC_CFUNC)));
	synthetic_set(s, cfp, F_cfp_jit_return, 1);
	assert_one(&stack, FRAME_CFUNC, REASON_NONE, method);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_innermost_first, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_frames, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_stacks_refused, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_too_deep, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_page_lost_in_the_middle, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_first_reason, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_hidden, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_contradictions, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_zjit, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_zjit_c_function, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
