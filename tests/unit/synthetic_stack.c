#include "synthetic_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STACK_WORDS = 8192 };

void set_cfp(struct vm_stack *stack, uint64_t cfp)
{
	stack->cfp = cfp;
	synthetic_set(stack->s, stack->ec, F_ec_cfp, cfp);
}

struct vm_stack new_stack(struct synthetic *s)
{
	struct vm_stack stack = {.s = s};
	uint64_t words = STACK_WORDS / 8 * 8, frame = (uint64_t)s->layout->sizes[S_cfp].value;

	stack.thread = synthetic_struct(s, S_thread);
	stack.ec = synthetic_struct(s, S_ec);
	stack.start = stack.free = synthetic_allocate(s, words * 8);
	stack.end = stack.start + words * 8;
	synthetic_set(s, stack.ec, F_ec_thread_ptr, stack.thread);
	synthetic_set(s, stack.ec, F_ec_vm_stack, stack.start);
	synthetic_set(s, stack.ec, F_ec_vm_stack_size, words);
	set_cfp(&stack, stack.end - frame); /* the dummy, full of POISON: nobody may look at it */
	return stack;
}

uint64_t put_env(struct synthetic *s, uint64_t at, uint64_t me_cref, uint64_t specval, uint64_t flags)
{
	synthetic_put_word(s, at, me_cref);
	synthetic_put_word(s, at + 8, specval);
	synthetic_put_word(s, at + 16, flags);
	return at + 16;
}

uint64_t env(struct vm_stack *stack, uint64_t me_cref, uint64_t specval, uint64_t flags)
{
	stack->free += 5 * 8;
	return put_env(stack->s, stack->free - 5 * 8, me_cref, specval, flags);
}

uint64_t local(struct synthetic *s, enum layout_enumerator_id magic)
{
	return synthetic_enum(s, magic) | synthetic_enum(s, E_VM_ENV_FLAG_LOCAL);
}

uint64_t push(struct vm_stack *stack, uint64_t pc, uint64_t iseq, uint64_t ep)
{
	struct synthetic *s = stack->s;

	set_cfp(stack, stack->cfp - (uint64_t)s->layout->sizes[S_cfp].value);
	synthetic_set(s, stack->cfp, F_cfp_pc, pc);
	synthetic_set(s, stack->cfp, F_cfp_iseq, iseq);
	synthetic_set(s, stack->cfp, F_cfp_ep, ep);
	return stack->cfp;
}

uint64_t new_method(struct synthetic *s)
{
	return synthetic_method(s, E_VM_METHOD_TYPE_ISEQ, 0, "m");
}

struct stack walk(const struct vm_stack *stack)
{
	struct stack walked;

	assert_true(stack_walk(&stack->s->ruby, stack->ec, stack->thread, LIMIT, &walked));
	assert_int_equal(walked.ec, stack->ec);
	return walked;
}

void assert_one(const struct vm_stack *stack, enum frame_kind kind, enum reason reason, uint64_t method)
{
	struct stack walked = walk(stack);

	assert_true(walked.started);
	assert_int_equal(walked.nr_frames, 1);
	assert_int_equal(walked.frames[0].cfp, stack->cfp);
	assert_int_equal(walked.frames[0].kind, kind);
	assert_int_equal(walked.frames[0].reason, reason);
	assert_int_equal(walked.reason, reason);
	if (kind != FRAME_UNREADABLE)
		assert_int_equal(walked.frames[0].method, method);
	stack_clear(&walked);
}
