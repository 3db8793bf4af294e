/* The hard checks of stacks and frames, each on its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "check/validate.h"

/* Values that no Ruby has: nothing may be wired in. */
static const struct {
	enum layout_enumerator_id id;
	int64_t value;
} enumerators[] = {
    {E_VM_FRAME_MAGIC_MASK, 0xf0},  {E_VM_FRAME_MAGIC_METHOD, 0x10}, {E_VM_FRAME_MAGIC_BLOCK, 0x20},
    {E_VM_FRAME_MAGIC_CLASS, 0x30}, {E_VM_FRAME_MAGIC_TOP, 0x40},    {E_VM_FRAME_MAGIC_CFUNC, 0x50},
    {E_VM_FRAME_MAGIC_IFUNC, 0x60}, {E_VM_FRAME_MAGIC_EVAL, 0x70},   {E_VM_FRAME_MAGIC_RESCUE, 0x80},
    {E_VM_FRAME_MAGIC_DUMMY, 0x90}, {E_VM_ENV_FLAG_LOCAL, 0x2},	     {E_VM_ENV_FLAG_ESCAPED, 0x4},
};

static struct layout layout;

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(enumerators) / sizeof(enumerators[0]); i++)
		layout.enumerators[enumerators[i].id] =
		    (struct layout_number){.present = true, .value = enumerators[i].value};
	return 0;
}

static void test_stack(void **state)
{
	/* 10 frames of 48 bytes, the last of them the dummy */
	const struct stack_facts right = {.vm_stack = 0x10000, .words = 60, .cfp = 0x10000, .frame_size = 48};
	struct stack_facts facts = right;
	const uint64_t top = 0x10000 + 9 * 48;

	(void)state;
	assert_int_equal(validate_stack(&facts), REASON_NONE);
	facts.cfp = top;
	assert_int_equal(validate_stack(&facts), REASON_NONE);
	facts.cfp = top + 48;
	assert_int_equal(validate_stack(&facts), REASON_CFP_OUTSIDE);
	facts.cfp = 0x10000 - 48;
	assert_int_equal(validate_stack(&facts), REASON_CFP_OUTSIDE);
	facts.cfp = 0x10008;
	assert_int_equal(validate_stack(&facts), REASON_CFP_MISALIGNED);
	facts = right;
	facts.words = 0;
	assert_int_equal(validate_stack(&facts), REASON_STACK_SIZE);
	facts.words = 5;
	assert_int_equal(validate_stack(&facts), REASON_STACK_SIZE);
	facts.words = UINT64_MAX;
	assert_int_equal(validate_stack(&facts), REASON_STACK_SIZE);
	facts = right;
	facts.vm_stack = 0x10004;
	assert_int_equal(validate_stack(&facts), REASON_STACK_SIZE);
	facts.vm_stack = UINT64_MAX - 7;
	assert_int_equal(validate_stack(&facts), REASON_STACK_SIZE);
	facts = (struct stack_facts){
	    .vm_stack = 0x10000, .words = (VALIDATE_FRAMES + 10) * 6, .cfp = 0x10000, .frame_size = 48};
	assert_int_equal(validate_stack(&facts), REASON_TOO_DEEP);
}

static const struct frame_facts method = {
    .vm_stack = 0x10000,
    .stack_end = 0x20000,
    .pc = 0x5000,
    .ep = 0x10040,
    .flags = 0x13,
    .iseq = POINTEE_CODE,
    .me_cref = POINTEE_METHOD,
};

static void assert_frame(struct frame_facts facts, enum reason reason, enum frame_kind kind)
{
	enum frame_kind found;

	assert_int_equal(validate_frame(&layout, &facts, &found), reason);
	assert_int_equal(found, kind);
}

static void test_kinds(void **state)
{
	struct frame_facts facts = method;

	(void)state;
	assert_frame(facts, REASON_NONE, FRAME_RUBY);
	facts.me_cref = POINTEE_NULL;
	assert_frame(facts, REASON_NONE, FRAME_RUBY);
	facts.me_cref = POINTEE_SVAR;
	assert_frame(facts, REASON_NONE, FRAME_RUBY);
	facts.pc = 0; /* a JIT has not set it yet */
	assert_frame(facts, REASON_NONE, FRAME_RUBY);
	facts.flags = 0x43; /* of a file that is being compiled: Ruby itself does not show it */
	assert_frame(facts, REASON_NONE, FRAME_HIDDEN);
	facts.iseq = POINTEE_IFUNC;
	facts.flags = 0x61;
	assert_frame(facts, REASON_NONE, FRAME_HIDDEN);
	/* yjit leaves a stale pc in the frame of a C function */
	facts = method;
	facts.iseq = POINTEE_NULL;
	facts.flags = 0x53;
	assert_frame(facts, REASON_NONE, FRAME_CFUNC);
	facts.flags = 0x93;
	assert_frame(facts, REASON_NONE, FRAME_HIDDEN);
}

static void test_contradictions(void **state)
{
	struct frame_facts facts = method;

	(void)state;
	facts.iseq = POINTEE_IFUNC;
	assert_frame(facts, REASON_NOT_CODE, FRAME_UNREADABLE);
	facts.iseq = POINTEE_OTHER;
	assert_frame(facts, REASON_NOT_CODE, FRAME_UNREADABLE);
	facts = method;
	facts.flags = 0xa3;
	assert_frame(facts, REASON_FRAME_KIND, FRAME_UNREADABLE);
	facts.flags = 0x03;
	assert_frame(facts, REASON_FRAME_KIND, FRAME_UNREADABLE);
	facts = method;
	facts.me_cref = POINTEE_CODE;
	assert_frame(facts, REASON_FRAME_KIND, FRAME_UNREADABLE);
	facts.me_cref = POINTEE_OTHER;
	assert_frame(facts, REASON_FRAME_KIND, FRAME_UNREADABLE);
	facts = method;
	facts.ep = 0x10044;
	assert_frame(facts, REASON_EP_OUTSIDE, FRAME_UNREADABLE);
}

static void test_heap_environment(void **state)
{
	struct frame_facts facts = method;

	(void)state;
	facts.ep = 0x30000;
	assert_frame(facts, REASON_EP_OUTSIDE, FRAME_UNREADABLE);
	facts.flags |= 0x4;
	assert_frame(facts, REASON_EP_OUTSIDE, FRAME_UNREADABLE);
	facts.env = true;
	assert_frame(facts, REASON_NONE, FRAME_RUBY);
	facts.flags &= ~UINT64_C(0x4);
	assert_frame(facts, REASON_EP_OUTSIDE, FRAME_UNREADABLE);
}

/* What programs are told: all of it, by name, for these may not change within a schema. */
static void test_reasons(void **state)
{
	static const struct {
		enum reason reason;
		const char *name, *verdict;
	} expected[] = {
	    {REASON_NONE, NULL, "complete"},
	    {REASON_EC_UNREADABLE, "ec-unreadable", "unreadable"},
	    {REASON_EC_FOREIGN, "ec-foreign", "torn"},
	    {REASON_STACK_SIZE, "stack-size", "torn"},
	    {REASON_CFP_OUTSIDE, "cfp-outside", "torn"},
	    {REASON_CFP_MISALIGNED, "cfp-misaligned", "torn"},
	    {REASON_TOO_DEEP, "too-deep", "truncated"},
	    {REASON_MOVED, "moved", "torn"},
	    {REASON_WINDOW, "window", "torn"},
	    {REASON_NOT_STOPPED, "not-stopped", "torn"},
	    {REASON_REFUSED, "refused", "unreadable"},
	    {REASON_NOT_IDENTIFIED, "not-identified", "unreadable"},
	    {REASON_OUT_OF_TIME, "out-of-time", "unreadable"},
	    {REASON_COMPACTED, "compacted", "unreadable"},
	    {REASON_COLLECTED, "collected", "unreadable"},
	    {REASON_LOST, "lost", "unreadable"},
	    {REASON_NOT_RESIDENT, "not-resident", "unreadable"},
	    {REASON_NOT_SAMPLED, "not-sampled", "unreadable"},
	    {REASON_FRAME_UNREADABLE, "frame-unreadable", "truncated"},
	    {REASON_EP_OUTSIDE, "ep-outside", "torn"},
	    {REASON_ENV_UNREADABLE, "env-unreadable", "truncated"},
	    {REASON_FRAME_KIND, "frame-kind", "torn"},
	    {REASON_NOT_CODE, "not-code", "torn"},
	    {REASON_CODE_UNREADABLE, "code-unreadable", "truncated"},
	    {REASON_METHOD_UNREADABLE, "method-unreadable", "truncated"},
	    {REASON_NO_METHOD, "no-method", "torn"},
	    {REASON_METHOD_OTHER, "method-other", "torn"},
	    {REASON_CALL_SITE, "call-site", "torn"},
	    {REASON_NO_NAME, "no-name", "truncated"},
	    {REASON_PC_OUTSIDE, "pc-outside", "complete"},
	};

	(void)state;
	assert_int_equal(sizeof(expected) / sizeof(expected[0]), REASONS);
	for (enum reason reason = REASON_NONE; reason < REASONS; reason++) {
		assert_int_equal(expected[reason].reason, reason);
		assert_string_equal(validate_verdict_name(validate_verdict(reason)), expected[reason].verdict);
		if (reason == REASON_NONE) {
			assert_null(validate_reason_name(reason));
			assert_null(validate_reason_text(reason));
			continue;
		}
		assert_string_equal(validate_reason_name(reason), expected[reason].name);
		assert_non_null(validate_reason_text(reason));
		for (enum reason other = REASON_NONE + 1; other < reason; other++) {
			assert_string_not_equal(validate_reason_name(reason), validate_reason_name(other));
			assert_string_not_equal(validate_reason_text(reason), validate_reason_text(other));
		}
	}
}

/* The largest that is let through, and the next. */
static void test_limits(void **state)
{
	struct stack_facts facts = {.vm_stack = 0x10000, .words = VALIDATE_STACK_WORDS, .frame_size = 48};

	(void)state;
	facts.cfp = facts.vm_stack + facts.words * 8 - 48 * UINT64_C(2);
	assert_int_equal(validate_stack(&facts), REASON_NONE);
	facts.words++;
	assert_int_equal(validate_stack(&facts), REASON_STACK_SIZE);
	facts.words = (VALIDATE_FRAMES + 1) * UINT64_C(6);
	facts.cfp = facts.vm_stack;
	assert_int_equal(validate_stack(&facts), REASON_NONE);
	facts.words += 6;
	assert_int_equal(validate_stack(&facts), REASON_TOO_DEEP);
	/* Up to the end of the address space, and beyond. */
	facts = (struct stack_facts){.vm_stack = UINT64_MAX - 7 - 96, .words = 12, .frame_size = 48};
	facts.cfp = facts.vm_stack;
	assert_int_equal(validate_stack(&facts), REASON_NONE);
	facts.vm_stack += 8;
	facts.cfp = facts.vm_stack;
	assert_int_equal(validate_stack(&facts), REASON_STACK_SIZE);
	facts = (struct stack_facts){.vm_stack = 0x10000, .words = 6, .cfp = 0x10000, .frame_size = 48};
	assert_int_equal(validate_stack(&facts), REASON_NONE); /* the dummy alone */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stack),	   cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_contradictions), cmocka_unit_test(test_heap_environment),
	    cmocka_unit_test(test_reasons),	   cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
