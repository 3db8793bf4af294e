#include "experiment/naive_sources.h"

#include "base/clock.h"
#include "sampling/sampler_parts.h"
#include "sampling/stack_copy_parts.h"
#include "sampling/stack_objects.h"
#include "sampling/stopped.h"
#include "session/windows.h"

/*
 * Reads one piece after the other, each in a system call of its own. Each piece tells where the next one is.
 */
static enum copy_result copy_naively(struct stack_copy *copy, struct stack_extent *extent, enum reason *reason)
{
	const uint8_t *piece[STACK_PIECES];
	struct iovec remote[ALL_PIECES];
	struct stack_facts facts;
	uint64_t values_end;

	*reason = REASON_EC_UNREADABLE;
	copy->nr_pieces = copy->nr_of_stack = 0;
	copy->beside_data = NULL;
	stack_copy_lay_out(copy, extent, remote);
	if (!stack_copy_make_room(copy, 8 + copy->ec_length) ||
	    !stack_copy_read(copy, &remote[PIECE_THREAD], copy->stack))
		return COPY_FAILED;
	extent->ec = stack_copy_ec_of(copy, extent, copy->stack);
	stack_copy_lay_out(copy, extent, remote);
	if (!stack_copy_read(copy, &remote[PIECE_EC], copy->stack + 8))
		return COPY_FAILED;
	facts = stack_copy_facts_of(copy, copy->stack + 8);
	*reason = REASON_NONE;
	if (facts.vm_stack == 0)
		return COPY_NONE;
	*reason = validate_stack(&facts);
	if (*reason != REASON_NONE)
		return COPY_MOVED;
	extent->vm_stack = extent->values_end = facts.vm_stack;
	extent->end = facts.vm_stack + facts.words * 8;
	extent->frames_start = facts.cfp;
	*reason = REASON_TOO_DEEP;
	if (extent->end - facts.cfp > STACK_COPY_MAX)
		return COPY_FAILED;
	*reason = REASON_EC_UNREADABLE;
	stack_copy_lay_out(copy, extent, remote);
	if (!stack_copy_make_room(copy, stack_copy_length(copy, extent)) ||
	    !stack_copy_read(copy, &remote[PIECE_FRAMES], copy->stack + 8 + copy->ec_length))
		return COPY_FAILED;
	values_end = stack_copy_values_end(copy, copy->stack + 8 + copy->ec_length,
					   (size_t)(extent->end - facts.frame_size - facts.cfp), &facts);
	extent->values_end = values_end;
	*reason = REASON_TOO_DEEP;
	if (stack_copy_length(copy, extent) > STACK_COPY_MAX)
		return COPY_FAILED;
	*reason = REASON_EC_UNREADABLE;
	stack_copy_lay_out(copy, extent, remote);
	if (!stack_copy_make_room(copy, stack_copy_length(copy, extent)))
		return COPY_FAILED;
	piece[PIECE_THREAD] = copy->stack;
	piece[PIECE_EC] = piece[PIECE_THREAD] + 8;
	piece[PIECE_FRAMES] = piece[PIECE_EC] + copy->ec_length;
	piece[PIECE_VALUES] = piece[PIECE_FRAMES] + remote[PIECE_FRAMES].iov_len;
	piece[PIECE_COLLECTIONS] = NULL;
	if (!stack_copy_read(copy, &remote[PIECE_VALUES],
			     copy->stack + 8 + copy->ec_length + remote[PIECE_FRAMES].iov_len))
		return COPY_FAILED;
	stack_copy_take_pieces(copy, extent, &facts, values_end, piece);
	*reason = REASON_NONE;
	return COPY_COVERED;
}

static void take_naive(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	enum copy_result result;
	struct timespec began;

	(void)seen;
	sample->effort.tries = 1;
	placement_avoid(&sampler->placement, subject->tid, &subject->task);
	clock_gettime(CLOCK_MONOTONIC, &began);
	result = copy_naively(sample->copy, &subject->extent, &sample->reason);
	sample->began_ns = ns_of(&began);
	sample->copied = result == COPY_COVERED;
	sample->no_stack = result == COPY_NONE;
	sample->ec = subject->extent.ec;
	if (sample->copied)
		stack_objects_copy(sample->copy, COPY_CHECK_ALL, NULL);
}

static void take_once(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	(void)seen;
	sample->effort.tries = 1;
	placement_avoid(&sampler->placement, subject->tid, &subject->task);
	if (sampler_copy(subject, sample, COPY_ONCE) == COPY_COVERED)
		stack_objects_copy(sample->copy, COPY_CHECK_ALL, NULL);
}

/* Copies a stack as it is. Notes whether the thread is in a torn window, but accepts the copy also then. */
static bool copy_stopped(struct sampler *sampler, struct tracee *tracee, struct subject *subject, struct sample *sample)
{
	const bool covered = sampler_copy(subject, sample, COPY_ONCE) == COPY_COVERED;

	if (!stopped_read_registers(tracee, subject, sample))
		return false;
	sample->stop.window = session_window(sampler->session, tracee->registers.rip);
	return covered;
}

static void take_paused(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	placement_stay_off(&sampler->placement, subject->tid, &subject->task);
	sample->effort.tries = 1;
	stopped_take(sampler, subject, seen, copy_stopped, sample);
}

const struct source source_unpaused_naive = {.name = "unpaused-naive", .unchecked = true, .take = take_naive};
const struct source source_unpaused_once = {.name = "unpaused-once", .unchecked = true, .take = take_once};
const struct source source_paused_naive = {
    .name = "paused-naive", .pauses = true, .unchecked = true, .take = take_paused};
