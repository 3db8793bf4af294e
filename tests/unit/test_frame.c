/* The walk over control frames: which frames there are, which method each runs, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ruby/frame.h"
#include "synthetic.h"

#define NOWHERE (SYNTHETIC_BASE + SYNTHETIC_SIZE)
#define PC	UINT64_C(0x5550)

enum { STACK_WORDS = 4096, LIMIT = 1000 };

/* A VM stack: environments grow from its start, frames from its end. */
struct vm_stack {
	struct synthetic *s;
	uint64_t ec, thread, start, end, free, cfp;
};

static void set_cfp(struct vm_stack *stack, uint64_t cfp)
{
	stack->cfp = cfp;
	synthetic_set(stack->s, stack->ec, F_ec_cfp, cfp);
}

static struct vm_stack new_stack(struct synthetic *s)
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

/* Three words, and the next, which only a heap environment uses. Returns where the flags are. */
static uint64_t put_env(struct synthetic *s, uint64_t at, uint64_t me_cref, uint64_t specval, uint64_t flags)
{
	synthetic_put_word(s, at, me_cref);
	synthetic_put_word(s, at + 8, specval);
	synthetic_put_word(s, at + 16, flags);
	return at + 16;
}

static uint64_t env(struct vm_stack *stack, uint64_t me_cref, uint64_t specval, uint64_t flags)
{
	stack->free += 5 * 8;
	return put_env(stack->s, stack->free - 5 * 8, me_cref, specval, flags);
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

static uint64_t local(struct synthetic *s, enum layout_enumerator_id magic)
{
	return synthetic_enum(s, magic) | synthetic_enum(s, E_VM_ENV_FLAG_LOCAL);
}

static uint64_t push(struct vm_stack *stack, uint64_t pc, uint64_t iseq, uint64_t ep)
{
	struct synthetic *s = stack->s;

	set_cfp(stack, stack->cfp - (uint64_t)s->layout->sizes[S_cfp].value);
	synthetic_set(s, stack->cfp, F_cfp_pc, pc);
	synthetic_set(s, stack->cfp, F_cfp_iseq, iseq);
	synthetic_set(s, stack->cfp, F_cfp_ep, ep);
	return stack->cfp;
}

static uint64_t new_method(struct synthetic *s)
{
	return synthetic_method(s, E_VM_METHOD_TYPE_ISEQ, 0, "m");
}

static struct stack walk(const struct vm_stack *stack)
{
	struct stack walked;

	assert_true(stack_walk(&stack->s->ruby, stack->ec, stack->thread, LIMIT, &walked));
	assert_int_equal(walked.ec, stack->ec);
	return walked;
}

/* Of a stack with one frame: what that is. */
static void assert_one(const struct vm_stack *stack, enum frame_kind kind, enum reason reason, uint64_t method)
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
	assert_one(&stack, FRAME_RUBY, REASON_NONE, 0);
	stack = new_stack(s);
	one = env(&stack, 0, 0, synthetic_enum(s, E_VM_FRAME_MAGIC_CFUNC));
	synthetic_put_word(s, one - 8, one);
	push(&stack, 0, 0, one);
	assert_one(&stack, FRAME_UNREADABLE, REASON_NO_METHOD, 0);
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
	    cmocka_unit_test_setup_teardown(test_innermost_first, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_frames, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_stacks_refused, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_too_deep, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_page_lost_in_the_middle, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_first_reason, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_c_functions, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_method_other, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_hidden, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_contradictions, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_blocks, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_svar, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_escaped, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_forwarded, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_circle, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_moved, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_zjit, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_zjit_c_function, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_two_words, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_method_in_frame, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
