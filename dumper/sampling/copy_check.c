#include "sampling/copy_check.h"

#include "base/clock.h"
#include "ruby/checked_code.h"
#include "ruby/frame.h"

/* How much of the code is kept: 16 MiB. */
#define CODE_PAGES 4096u

/*
 * The code that was read is read again after CODE_AGE_NS. Before a stack is rejected because of code that was read more
 * than CODE_REJECTS_NS ago, the code is read again, too: a program that loads code may have made new code at an address
 * where there was something else.
 */
#define CODE_AGE_NS	250000000L
#define CODE_REJECTS_NS 10000000L

bool copy_check_renew(struct copy_check *check)
{
	struct memory *memory = memory_create(target_read_pages, check->target, CODE_PAGES);

	if (!memory)
		return false;
	memory_destroy(check->memory);
	check->memory = check->ruby.memory = memory;
	clock_gettime(CLOCK_MONOTONIC, &check->read);
	return true;
}

bool copy_check_init(struct copy_check *check, const struct ruby *ruby, struct target *target)
{
	*check = (struct copy_check){.target = target, .ruby = *ruby};
	return copy_check_renew(check);
}

void copy_check_clear(struct copy_check *check)
{
	memory_destroy(check->memory);
	*check = (struct copy_check){0};
}

/* What is wrong with a stack of which at most `frames` frames were walked. If it has more frames, that is not an error. */
static enum reason reason_of(const struct stack *stack, size_t frames)
{
	if (stack->reason != REASON_TOO_DEEP || frames == COPY_CHECK_ALL)
		return stack->reason;
	for (size_t i = 0; i < stack->nr_frames; i++)
		if (stack->frames[i].reason != REASON_NONE)
			return stack->frames[i].reason;
	return REASON_NONE;
}

/*
 * Checks the innermost `frames` frames of a covered copy once. All that is read outside of the copy is code, which does
 * not change.
 */
static enum reason check_once(struct copy_check *check, const struct stack_copy *copy, size_t frames,
			      struct stack *walked)
{
	enum reason reason = REASON_EC_UNREADABLE;

	check->call_site = CALL_SITE_UNDECIDED;

	stack_copy_lay(copy, check->memory);
	if (stack_walk(&check->ruby, stack_copy_context(copy), stack_copy_thread(copy), frames, walked))
		reason = reason_of(walked, frames);
	/* Only the innermost frame can be one that is being made. */
	if (reason == REASON_NONE && walked->nr_frames > 1 &&
	    !(check->ruby.checked && walked->frames[1].kind == FRAME_RUBY &&
	      checked_code_has_call(check->ruby.checked, walked->frames[1].pc, walked->frames[0].method)))
		check->call_site = call_site_judge(&check->ruby, &walked->frames[1], &walked->frames[0]);
	if (check->call_site == CALL_SITE_CONTRADICTS)
		reason = REASON_CALL_SITE;
	memory_overlay(check->memory, NULL, 0, 0, 0);
	return reason;
}

/* Code is read again before the snapshot is full: with a full snapshot, there would be no call-site evidence. */
enum reason copy_check_run(struct copy_check *check, const struct stack_copy *copy, size_t frames, struct stack *walked)
{
	enum reason reason;
	bool unreadable;

	if (memory_pages(check->memory) >= CODE_PAGES / 2 || elapsed_ns(&check->read) > CODE_AGE_NS)
		copy_check_renew(check);
	reason = check_once(check, copy, frames, walked);
	unreadable = validate_verdict(reason) == VERDICT_TRUNCATED;
	if (reason != REASON_NONE && (unreadable || elapsed_ns(&check->read) > CODE_REJECTS_NS) &&
	    copy_check_renew(check)) {
		stack_clear(walked);
		reason = check_once(check, copy, frames, walked);
	}
	return reason;
}
