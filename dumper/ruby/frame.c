#include "ruby/frame.h"

#include <stdlib.h>

#include "ruby/checked_code.h"
#include "ruby/code.h"
#include "ruby/context.h"
#include "ruby/environment.h"
#include "ruby/jit_frame.h"

/* How many enclosing environments are followed: blocks nested deeper than this do not parse. */
#define MAX_NESTING 4096

/*
 * How many are followed for all frames of a stack together. A deep stack of 12,000 frames may have 40 for each frame. More,
 * as in memory that leads in circles, would take seconds.
 */
#define ENVIRONMENTS_MAX (1u << 19)

/* A word of an environment. An environment on the stack changes as soon as the thread goes on. */
static uint64_t env_word(struct access *access, const struct stack_facts *facts, uint64_t ep, int index)
{
	const bool on_stack = ep - facts->vm_stack < facts->words * 8;
	const enum memory_kind kind = memory_reads(access->memory, on_stack ? MEMORY_CHANGES : MEMORY_LASTS);
	const uint64_t word = access_word(access, ep + (uint64_t)(int64_t)(index * 8));

	memory_reads(access->memory, kind);
	return word;
}

static enum pointee classify(const struct ruby *ruby, struct access *access, uint64_t value)
{
	const enum pointee known = ruby->checked ? checked_code_pointee(ruby->checked, value) : POINTEE_OTHER;

	if (value == 0)
		return POINTEE_NULL;
	if (known != POINTEE_OTHER)
		return known;
	if (value_is_object(value))
		value = value_object(access, value); /* an iseq may have been moved */
	if (code_is_at(access, value))
		return POINTEE_CODE;
	if (value_is_imemo(access, value, E_imemo_ment))
		return POINTEE_METHOD;
	if (value_is_imemo(access, value, E_imemo_cref))
		return POINTEE_CREF;
	if (value_is_imemo(access, value, E_imemo_svar))
		return POINTEE_SVAR;
	if (value_is_imemo(access, value, E_imemo_ifunc))
		return POINTEE_IFUNC;
	return POINTEE_OTHER;
}

/* check_method_entry() of vm_insnhelper.c: the method entry that a me_cref slot leads to, 0 if none. */
static uint64_t method_of_slot(const struct ruby *ruby, struct access *access, uint64_t value, bool may_be_svar)
{
	switch (classify(ruby, access, value)) {
	case POINTEE_METHOD:
		/* One that is known has not moved. */
		return ruby->checked && checked_code_pointee(ruby->checked, value) == POINTEE_METHOD
			   ? value
			   : value_object(access, value);
	case POINTEE_SVAR:
		if (!may_be_svar)
			return 0;
		value = access_member(access, value_object(access, value), F_svar_cref_or_me);
		return method_of_slot(ruby, access, value, false);
	default:
		return 0;
	}
}

/* What an environment contains. */
struct env {
	uint64_t ep;	   /* its address; if it is just being moved to the heap, its new address */
	uint64_t flags;	   /* VM_ENV_FLAG_, and since 2.4 the kind of frame */
	uint64_t me_cref;  /* a method entry, or what stands for it */
	uint64_t previous; /* the enclosing environment, unless it is local */
	bool local;
};

/* 2.3: two words. The second is the previous ep or, with a tag, a block (vm_core.h, VM_ENVVAL_BLOCK_PTR_FLAG). */
static struct env read_env_of_two_words(struct access *access, const struct stack_facts *facts, uint64_t ep)
{
	uint64_t word = env_word(access, facts, ep, 0);

	return (struct env){
	    .ep = ep,
	    .flags = word,
	    .me_cref = env_word(access, facts, ep, -1),
	    .previous = environment_previous(word),
	    .local = word & access_enum(access, E_VM_ENV_FLAG_LOCAL),
	};
}

/*
 * While an environment is being moved to the heap, its flags slot on the stack is overwritten with a pointer to the
 * rb_env_t (vm.c, vm_make_env_each): the slots are then at env->ep.
 */
static struct env read_env(struct access *access, const struct stack_facts *facts, uint64_t ep)
{
	struct env env = {.ep = ep};

	/* Up to 2.2 the frame itself has its method entry: enclosing environments are not needed. */
	if (layout_has(access->layout, F_cfp_me)) {
		env.flags = env_word(access, facts, ep, 0);
		return env;
	}
	if (layout_has(access->layout, F_cfp_flag))
		return read_env_of_two_words(access, facts, ep);
	env.flags = env_word(access, facts, ep, ENVIRONMENT_FLAGS);
	if (!environment_has_flags(env.flags) && layout_has(access->layout, F_env_ep) &&
	    value_is_imemo(access, env.flags, E_imemo_env)) {
		env.ep = access_member(access, env.flags, F_env_ep);
		env.flags = env_word(access, facts, env.ep, ENVIRONMENT_FLAGS);
	}
	env.me_cref = env_word(access, facts, env.ep, ENVIRONMENT_ME_CREF);
	env.previous = environment_previous(env_word(access, facts, env.ep, ENVIRONMENT_SPECVAL));
	env.local = env.flags & access_enum(access, E_VM_ENV_FLAG_LOCAL);
	return env;
}

/*
 * Whether the word after a heap environment's slots is its object: an imemo_env, up to 2.3 a T_DATA (vm.c,
 * env_alloc()).
 */
static bool has_env_object(struct access *access, const struct stack_facts *facts, uint64_t ep)
{
	uint64_t object = env_word(access, facts, ep, ENVIRONMENT_ENV);

	if (!layout_has(access->layout, F_cfp_flag))
		return value_is_imemo(access, object, E_imemo_env);
	return value_is_object(object) && access->layout->enumerators[E_RUBY_T_DATA].present &&
	       value_type(access, object) == access_enum(access, E_RUBY_T_DATA);
}

/*
 * rb_vm_frame_method_entry(): follows the enclosing environments up to and including the local one.
 *   left  how many more may be followed for this stack
 */
static uint64_t method_of_frame(const struct ruby *ruby, struct access *access, const struct stack_facts *facts,
				uint64_t ep, size_t *left)
{
	for (int i = 0; i < MAX_NESTING && !access->failed; i++) {
		struct env env = read_env(access, facts, ep);
		uint64_t method = method_of_slot(ruby, access, env.me_cref, env.local);

		if (*left == 0)
			break;
		--*left;
		if (method != 0 || env.local)
			return method;
		ep = env.previous;
	}
	/* There may be one further out. */
	access_fail(access, ep);
	return 0;
}

/*
 * Whether a frame and its method entry have the same code (vm_insnhelper.c, vm_call_iseq_setup_normal: both are of
 * the same callable; iseq.c, set_relations: code within a method knows the method's). True if the definition cannot
 * be read, or is not one of code (refined since, eval.c, rb_add_refined_method_entry; define_method).
 */
static bool is_code_of_method(const struct access *from, uint64_t method, uint64_t iseq, bool own)
{
	struct access access = *from;
	uint64_t definition = access_member(&access, method, F_ment_def), code;
	uint64_t type = access_member(&access, definition, F_mdef_type);

	if (access.failed || type != access_enum(&access, E_VM_METHOD_TYPE_ISEQ) ||
	    !layout_has(access.layout, F_mdef_iseq))
		return access.failed || type != access_enum(&access, E_VM_METHOD_TYPE_CFUNC);
	code = value_object(&access, access_member(&access, definition, F_mdef_iseq));
	iseq = value_object(&access, iseq);
	if (!own)
		iseq = value_object(&access, access_member(&access, code_body(&access, iseq), F_body_local_iseq));
	return access.failed || code == iseq;
}

/* Whether code lies within a method: then its environment must lead to a method entry. */
static bool is_code_in_method(const struct access *from, uint64_t iseq)
{
	struct access access = *from;
	uint64_t body = code_body(&access, value_object(&access, iseq));
	uint64_t local = value_object(&access, access_member(&access, body, F_body_local_iseq));
	uint64_t type = access_member(&access, code_body(&access, local), F_body_type);

	return !access.failed && type == access_enum(&access, E_ISEQ_TYPE_METHOD);
}

/* Whether flags have a bit, if this Ruby has that bit. */
static bool has_flag(const struct layout_number *bit, uint64_t flags)
{
	return bit->present && flags & (uint64_t)bit->value;
}

/* What contradicts that a frame's code belongs to its method entry; REASON_NONE if nothing does. */
static enum reason check_code(const struct ruby *ruby, const struct access *access, const struct frame *frame)
{
	const bool is_ruby = frame->kind == FRAME_RUBY;

	if (frame->method == 0 && frame->kind == FRAME_CFUNC)
		return REASON_NO_METHOD;
	if (ruby->unchecked || !is_ruby ||
	    (ruby->checked && checked_code_has(ruby->checked, frame->iseq, frame->method, frame->own_method)))
		return REASON_NONE;
	if (frame->method != 0)
		return is_code_of_method(access, frame->method, frame->iseq, frame->own_method) ? REASON_NONE
												: REASON_METHOD_OTHER;
	return !layout_has(ruby->layout, F_cfp_me) && (frame->own_method || is_code_in_method(access, frame->iseq))
		   ? REASON_NO_METHOD
		   : REASON_NONE;
}

/* Checks a frame by that to which its words lead. `method` is the one of the frame itself, which it has up to Ruby 2.2. */
static void check_frame(const struct ruby *ruby, const struct stack *stack, struct frame_facts facts, uint64_t method,
			size_t *left, struct frame *ret)
{
	struct access access = ruby_access(ruby);
	struct env env;
	uint64_t magic;

	ret->reason = REASON_ENV_UNREADABLE;
	env = read_env(&access, &stack->facts, facts.ep);
	facts.ep = env.ep;
	if (!layout_has(ruby->layout, F_cfp_flag))
		facts.flags = env.flags;
	facts.me_cref = classify(ruby, &access, env.me_cref);
	if (facts.ep < facts.vm_stack || facts.ep >= facts.stack_end)
		facts.env = has_env_object(&access, &stack->facts, facts.ep);
	if (access.failed)
		return;

	ret->reason = REASON_NOT_CODE;
	facts.iseq = classify(ruby, &access, ret->iseq);
	if (access.failed)
		return;

	ret->reason = validate_frame(ruby->layout, &facts, &ret->kind);
	if (ret->kind != FRAME_RUBY && ret->kind != FRAME_CFUNC)
		return;
	ret->method =
	    layout_has(ruby->layout, F_cfp_me) ? method : method_of_frame(ruby, &access, &stack->facts, facts.ep, left);
	magic = facts.flags & access_enum(&access, E_VM_FRAME_MAGIC_MASK);
	ret->finish = has_flag(&ruby->layout->enumerators[E_VM_FRAME_FLAG_FINISH], facts.flags);
	ret->own_method = magic == access_enum(&access, E_VM_FRAME_MAGIC_METHOD) ||
			  magic == access_enum(&access, E_VM_FRAME_MAGIC_CFUNC);
	ret->reason = access.failed ? REASON_METHOD_UNREADABLE : check_code(ruby, &access, ret);
	if (ret->reason != REASON_NONE)
		ret->kind = FRAME_UNREADABLE;
}

/* Reads a frame, which changes as soon as the thread goes on, and checks it. `left`: see method_of_frame(). */
static void read_frame(const struct ruby *ruby, const struct stack *stack, uint64_t cfp, size_t *left,
		       struct frame *ret)
{
	struct access access = ruby_access(ruby);
	const struct jit_frame running = jit_frame_read(ruby, &access, cfp);
	struct frame_facts facts = {
	    .vm_stack = stack->facts.vm_stack,
	    .stack_end = stack->facts.vm_stack + stack->facts.words * 8,
	    .pc = running.pc,
	    .ep = access_member(&access, cfp, F_cfp_ep),
	};
	enum memory_kind kind;
	uint64_t method = 0;

	*ret = (struct frame){
	    .cfp = cfp,
	    .pc = running.pc,
	    .iseq = running.iseq,
	    .kind = FRAME_UNREADABLE,
	    .jit = running.jit,
	    .reason = REASON_FRAME_UNREADABLE,
	};
	if (layout_has(ruby->layout, F_cfp_flag))
		facts.flags = access_member(&access, cfp, F_cfp_flag);
	if (layout_has(ruby->layout, F_cfp_me))
		method = access_member(&access, cfp, F_cfp_me);
	if (access.failed)
		return;
	kind = memory_reads(ruby->memory, MEMORY_LASTS);
	check_frame(ruby, stack, facts, method, left, ret);
	memory_reads(ruby->memory, kind);
}

bool stack_walk(const struct ruby *ruby, uint64_t ec, uint64_t thread, size_t limit, struct stack *ret)
{
	const struct context_members members = context_members(ruby->layout);
	struct access access = ruby_access(ruby);
	size_t left = ENVIRONMENTS_MAX;
	uint64_t end, count;
	bool is_own;

	*ret = (struct stack){.ec = ec};
	ret->facts = (struct stack_facts){
	    .vm_stack = access_member(&access, ec, members.vm_stack),
	    .words = access_member(&access, ec, members.vm_stack_size),
	    .cfp = access_member(&access, ec, members.cfp),
	    .frame_size = access_sizeof(&access, S_cfp),
	};
	is_own = context_is_of(&access, ec, thread);
	if (access.failed) {
		ret->reason = REASON_EC_UNREADABLE;
		return true;
	}
	if (!is_own) {
		ret->reason = REASON_EC_FOREIGN;
		return true;
	}
	/* A thread that has not begun to run, or has ended, has no stack (vm.c, thread.c: since 2.7). */
	if (ret->facts.vm_stack == 0)
		return true;
	ret->started = true;
	ret->reason = validate_stack(&ret->facts);
	if (ret->reason != REASON_NONE && ret->reason != REASON_TOO_DEEP)
		return true;

	end = ret->facts.vm_stack + ret->facts.words * 8 - ret->facts.frame_size;
	count = (end - ret->facts.cfp) / ret->facts.frame_size;
	if (count > limit) {
		count = limit;
		ret->reason = REASON_TOO_DEEP;
	}
	ret->frames = calloc(count + 1, sizeof(*ret->frames));
	if (!ret->frames)
		return false;
	for (uint64_t cfp = ret->facts.cfp; ret->nr_frames < count && !memory_is_over(ruby->memory);
	     cfp += ret->facts.frame_size) {
		const struct frame *known =
		    ruby->known ? known_stack_frame(ruby->known, cfp, ret->facts.frame_size) : NULL;
		struct frame *frame = &ret->frames[ret->nr_frames++];

		if (known)
			*frame = *known;
		else
			read_frame(ruby, ret, cfp, &left, frame);
		if (frame->reason != REASON_NONE && ret->reason == REASON_NONE)
			ret->reason = frame->reason;
	}
	return true;
}

void stack_clear(struct stack *stack)
{
	free(stack->frames);
	stack->frames = NULL;
	stack->nr_frames = 0;
}
