#include "check/validate.h"

#include <stddef.h>

static const struct {
	const char *name, *text;
	enum verdict verdict;
} reasons[REASONS] = {
    [REASON_NONE] = {NULL, NULL, VERDICT_COMPLETE},
    [REASON_EC_UNREADABLE] = {"ec-unreadable", "the thread's execution context cannot be read", VERDICT_UNREADABLE},
    [REASON_EC_FOREIGN] = {"ec-foreign", "the execution context belongs to another thread", VERDICT_TORN},
    [REASON_STACK_SIZE] = {"stack-size", "the size of the VM stack is impossible", VERDICT_TORN},
    [REASON_CFP_OUTSIDE] = {"cfp-outside", "the control frame pointer is outside of the VM stack", VERDICT_TORN},
    [REASON_CFP_MISALIGNED] = {"cfp-misaligned", "the control frame pointer is between two frames", VERDICT_TORN},
    [REASON_TOO_DEEP] = {"too-deep", "the stack has more frames than rbdump reads", VERDICT_TRUNCATED},
    [REASON_MOVED] = {"moved", "the stack changed while it was copied", VERDICT_TORN},
    [REASON_WINDOW] = {"window", "the thread was stopped while its stack was being changed", VERDICT_TORN},
    [REASON_NOT_STOPPED] = {"not-stopped", "the native thread did not stop in time", VERDICT_TORN},
    [REASON_REFUSED] = {"refused", "the thread could not be stopped: it has another tracer", VERDICT_UNREADABLE},
    [REASON_NOT_IDENTIFIED] = {"not-identified",
			       "the native thread is not known, or another thread was stopped by mistake",
			       VERDICT_UNREADABLE},
    [REASON_OUT_OF_TIME] = {"out-of-time", "there was no time left to read the stack", VERDICT_UNREADABLE},
    [REASON_COMPACTED] = {"compacted", "Ruby may have moved objects before the names of the stack's frames were read",
			  VERDICT_UNREADABLE},
    [REASON_COLLECTED] = {"collected",
			  "a garbage collection began before the code and the names of the stack's frames were read",
			  VERDICT_UNREADABLE},
    [REASON_LOST] =
	{"lost",
	 "rbdump had no room for the stack, or the program ended before the names of the stack's frames were found",
	 VERDICT_UNREADABLE},
    [REASON_NOT_RESIDENT] = {"not-resident", "a page of the stack was not in memory when the kernel copied the stack",
			     VERDICT_UNREADABLE},
    [REASON_NOT_SAMPLED] = {"not-sampled",
			    "rbdump has no copy of the stack that the thread had at the time of the sample",
			    VERDICT_UNREADABLE},
    [REASON_FRAME_UNREADABLE] = {"frame-unreadable", "a control frame cannot be read", VERDICT_TRUNCATED},
    [REASON_EP_OUTSIDE] = {"ep-outside", "a frame's environment is neither on the stack nor on the heap", VERDICT_TORN},
    [REASON_ENV_UNREADABLE] = {"env-unreadable", "a frame's environment cannot be read", VERDICT_TRUNCATED},
    [REASON_FRAME_KIND] = {"frame-kind", "a frame's kind is not known", VERDICT_TORN},
    [REASON_NOT_CODE] = {"not-code", "a frame's iseq pointer does not point to code", VERDICT_TORN},
    [REASON_CODE_UNREADABLE] = {"code-unreadable", "a frame's code cannot be read", VERDICT_TRUNCATED},
    [REASON_METHOD_UNREADABLE] = {"method-unreadable", "a frame's method entry cannot be read", VERDICT_TRUNCATED},
    [REASON_NO_METHOD] = {"no-method", "a frame belongs to a method, but has no method entry", VERDICT_TORN},
    [REASON_METHOD_OTHER] = {"method-other", "a frame's code is not the code of its method entry", VERDICT_TORN},
    [REASON_CALL_SITE] = {"call-site", "the innermost frame does not match the call that its caller was making",
			  VERDICT_TORN},
    [REASON_PC_OUTSIDE] = {"pc-outside", "a frame's pc is outside of the frame's code, so the line is not known",
			   VERDICT_COMPLETE},
    [REASON_NO_NAME] = {"no-name", "the name of a C function cannot be read", VERDICT_TRUNCATED},
};

const char *validate_reason_text(enum reason reason)
{
	return reasons[reason].text;
}

const char *validate_reason_name(enum reason reason)
{
	return reasons[reason].name;
}

enum verdict validate_verdict(enum reason reason)
{
	return reasons[reason].verdict;
}

const char *validate_verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
	    [VERDICT_COMPLETE] = "complete",
	    [VERDICT_TRUNCATED] = "truncated",
	    [VERDICT_TORN] = "torn",
	    [VERDICT_UNREADABLE] = "unreadable",
	};

	return names[verdict];
}

enum reason validate_stack(const struct stack_facts *facts)
{
	uint64_t end, top;

	if (facts->words == 0 || facts->words > VALIDATE_STACK_WORDS || facts->vm_stack % 8 != 0 ||
	    facts->vm_stack > UINT64_MAX - facts->words * 8 || facts->words * 8 < facts->frame_size)
		return REASON_STACK_SIZE;
	/* The oldest frame is a dummy, end - 1 (vm.c, rb_ec_initialize_vm_stack): it never returns. */
	end = facts->vm_stack + facts->words * 8;
	top = end - facts->frame_size;
	if (facts->cfp < facts->vm_stack || facts->cfp > top)
		return REASON_CFP_OUTSIDE;
	if ((end - facts->cfp) % facts->frame_size != 0)
		return REASON_CFP_MISALIGNED;
	if ((top - facts->cfp) / facts->frame_size > VALIDATE_FRAMES)
		return REASON_TOO_DEEP;
	return REASON_NONE;
}

static bool known_magic(const struct layout *layout, uint64_t magic)
{
	static const enum layout_enumerator_id magics[] = {
	    E_VM_FRAME_MAGIC_METHOD, E_VM_FRAME_MAGIC_BLOCK, E_VM_FRAME_MAGIC_CLASS,  E_VM_FRAME_MAGIC_TOP,
	    E_VM_FRAME_MAGIC_CFUNC,  E_VM_FRAME_MAGIC_IFUNC, E_VM_FRAME_MAGIC_EVAL,   E_VM_FRAME_MAGIC_RESCUE,
	    E_VM_FRAME_MAGIC_DUMMY,  E_VM_FRAME_MAGIC_PROC,  E_VM_FRAME_MAGIC_LAMBDA, E_VM_FRAME_MAGIC_FINISH,
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (layout->enumerators[magics[i]].present && magic == (uint64_t)layout->enumerators[magics[i]].value)
			return true;
	return false;
}

/*
 * Whether the code of a JIT may make frames of that kind. It does not set their pc, which is 0 if a C function's
 * frame was in that memory before (yjit/src/codegen.rs, gen_push_frame, 3.2.11; zjit/src/codegen.rs, 4.0.5). The
 * interpreter itself sets the pc of all frames, except if no code is to be shown (vm.c, rb_vm_call_cfunc;
 * vm_insnhelper.c, rb_vm_push_frame_fname).
 */
static bool is_jit_pushed(const struct layout *layout, uint64_t magic)
{
	return magic == (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_METHOD].value ||
	       magic == (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_BLOCK].value;
}

enum reason validate_frame(const struct layout *layout, const struct frame_facts *facts, enum frame_kind *ret)
{
	uint64_t magic = facts->flags & (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_MASK].value;
	bool on_stack = facts->ep >= facts->vm_stack && facts->ep < facts->stack_end;
	const struct layout_number *escaped_flag = &layout->enumerators[E_VM_ENV_FLAG_ESCAPED];
	bool escaped = !escaped_flag->present || facts->flags & (uint64_t)escaped_flag->value;

	*ret = FRAME_UNREADABLE;
	if (facts->ep % 8 != 0 || (!on_stack && !(escaped && facts->env)))
		return REASON_EP_OUTSIDE;
	if (!known_magic(layout, magic))
		return REASON_FRAME_KIND;
	if (facts->me_cref == POINTEE_OTHER || facts->me_cref == POINTEE_CODE || facts->me_cref == POINTEE_IFUNC)
		return REASON_FRAME_KIND;

	/* vm_backtrace.c, rb_ec_partial_backtrace_object() and, in 2.7, backtrace_each(). */
	if (facts->iseq == POINTEE_NULL) {
		*ret =
		    magic == (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_CFUNC].value ? FRAME_CFUNC : FRAME_HIDDEN;
		return REASON_NONE;
	}
	if (facts->pc == 0 && !(facts->iseq == POINTEE_CODE && is_jit_pushed(layout, magic))) {
		*ret = FRAME_HIDDEN;
		return REASON_NONE;
	}
	if (facts->iseq != POINTEE_CODE)
		return REASON_NOT_CODE;
	*ret = FRAME_RUBY;
	return REASON_NONE;
}
