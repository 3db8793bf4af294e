#include "sampling/stack_copy_record.h"

#include "sampling/stack_copy_parts.h"

/* A member of the execution context, as its offset in the part that is copied. */
static uint32_t in_part(const struct stack_copy *copy, enum layout_member_id id)
{
	return copy->layout->members[id].offset - copy->ec_offset;
}

bool stack_copy_kernel_facts(const struct stack_copy *copy, struct kernel_facts *ret)
{
	*ret = (struct kernel_facts){
	    .collections = copy->collections,
	    .collections_length = (uint32_t)copy->collections_length,
	    .thread_is_ec = !layout_has(copy->layout, F_thread_ec),
	    .thread_word = copy->layout->members[F_thread_ec].offset,
	    .ec_offset = copy->ec_offset,
	    .ec_length = copy->ec_length,
	    .vm_stack = in_part(copy, copy->members.vm_stack),
	    .words = in_part(copy, copy->members.vm_stack_size),
	    .cfp = in_part(copy, copy->members.cfp),
	    .frame_size = (uint32_t)copy->layout->sizes[S_cfp].value,
	    .frame_ep = copy->layout->members[F_cfp_ep].offset,
	};
	return copy->ec_length <= KERNEL_EC_MAX && copy->collections_length <= KERNEL_COLLECTIONS_MAX;
}

/* What is wrong with a record that has no frames. */
static enum reason why_none(const struct kernel_record *record)
{
	if (record->flags & KERNEL_TOO_DEEP)
		return REASON_TOO_DEEP;
	return record->flags & KERNEL_MISSING ? REASON_NOT_RESIDENT : REASON_EC_UNREADABLE;
}

enum copy_result stack_copy_take_record(struct stack_copy *copy, const struct kernel_record *record,
					enum reason *reason)
{
	const uint8_t *ec = (const uint8_t *)(record + 1), *collections = ec + kernel_in_eights(record->ec_length);
	const uint8_t *frames = collections + kernel_in_eights(record->collections_length);
	const uint8_t *piece[STACK_PIECES] = {
	    [PIECE_THREAD] = (const uint8_t *)&record->thread_word,
	    [PIECE_EC] = ec,
	    [PIECE_FRAMES] = frames,
	    [PIECE_VALUES] = frames + record->frames_length,
	    [PIECE_COLLECTIONS] = collections,
	};
	struct stack_extent extent = {.thread = record->thread, .ec = record->ec};
	struct stack_facts facts;
	uint64_t values_end;

	copy->nr_pieces = copy->nr_of_stack = 0;
	copy->beside_data = NULL;
	*reason = REASON_EC_UNREADABLE;
	if (record->ec_length != copy->ec_length)
		return COPY_FAILED;
	/* Without the state of the garbage collector of that moment, nothing would prove the names. */
	*reason = REASON_NOT_RESIDENT;
	if (record->collections_length != copy->collections_length)
		return COPY_FAILED;
	facts = stack_copy_facts_of(copy, ec);
	*reason = REASON_NONE;
	if (facts.vm_stack == 0)
		return COPY_NONE;
	*reason = validate_stack(&facts);
	if (*reason != REASON_NONE)
		return COPY_MOVED;
	extent.vm_stack = facts.vm_stack;
	extent.values_end = facts.vm_stack + record->values_length;
	extent.frames_start = facts.cfp;
	extent.end = facts.vm_stack + facts.words * 8;
	*reason = why_none(record);
	if (record->frames_length != extent.end - facts.cfp)
		return COPY_FAILED;
	values_end = stack_copy_values_end(copy, frames, record->frames_length - facts.frame_size, &facts);
	/* The innermost frames have no environment on the stack, or they are not in order. */
	*reason = REASON_EP_OUTSIDE;
	if (values_end > extent.values_end)
		return COPY_FAILED;
	stack_copy_take_pieces(copy, &extent, &facts, values_end, piece);
	*reason = REASON_NONE;
	return COPY_COVERED;
}
