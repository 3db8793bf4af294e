/* What of a look may have changed while it was read: see look.h. */
#include <stdlib.h>
#include <string.h>

#include "ruby/collections.h"
#include "ruby/context.h"
#include "ruby/frame.h"
#include "session/look.h"
#include "session/look_parts.h"

/* How long a second read of the list of threads may take. */
#define LIST_NS 1000000000L

/*
 * Whether the suspended fiber of the entry `index` may have been resumed while it was copied. Up to 2.4 its state does not
 * tell. It was resumed if another fiber has resumed it, and it has itself resumed none (or was left by a transfer, which
 * looks the same). It may have been resumed if its thread is known to have moved.
 */
static bool may_have_been_resumed(const struct session *session, const struct look *look, size_t index,
				  const bool *moved)
{
	const struct ruby_fiber *fiber;

	if (index < look->threads.count || layout_has(session->layout.layout, F_thread_ec))
		return false;
	fiber = &look->fibers.fibers[index - look->threads.count];
	return fiber->thread_index < look->threads.count &&
	       (moved[fiber->thread_index] || (fiber->resumed_by != 0 && fiber->resuming == 0));
}

bool look_list_now(const struct session *session, const struct look *look, struct ruby_threads *ret)
{
	struct ruby ruby = look->ruby;
	bool enough;

	ruby.memory = memory_create(target_read_pages, session->target, SESSION_PAGES);
	if (!ruby.memory)
		return false;
	memory_limit(ruby.memory, LIST_NS);
	enough = threads_list(&ruby, ret);
	memory_destroy(ruby.memory);
	return enough;
}

size_t look_mark_moved(const struct session *session, struct look *look, const struct ruby_threads *later)
{
	const struct layout *layout = session->layout.layout;
	bool *moved = calloc(look->trace->nr_threads + 1, sizeof(*moved));
	size_t count = 0;

	if (!moved) {
		look->no_memory = true;
		return 0;
	}
	for (size_t i = 0; i < look->trace->nr_threads; i++) {
		const struct stack *stack = &look->stacks[i];
		const struct stack_facts *facts = &stack->facts;
		struct trace_thread *thread = &look->trace->threads[i];

		if (thread->reason == REASON_OUT_OF_TIME)
			continue;
		/* It was caught while it moved. */
		if (thread->reason == REASON_CALL_SITE) {
			moved[i] = true;
			count++;
			continue;
		}
		/* One that runs, and is not what its thread runs: the thread was in another when it was copied. */
		moved[i] = (thread->suspended && strcmp(thread->fiber_state, "resumed") == 0 && !thread->ended) ||
			   may_have_been_resumed(session, look, i, moved) ||
			   memory_has_changed(session->memory, stack->ec, (size_t)context_size(layout));
		if (stack->started && stack->nr_frames > 0 && !moved[i])
			moved[i] = memory_has_changed(session->memory, facts->cfp,
						      facts->vm_stack + facts->words * 8 - facts->cfp);
		if (!moved[i])
			continue;
		count++;
		thread->reason = REASON_MOVED;
		thread->verdict = validate_verdict(REASON_MOVED);
	}
	if (count > 0 && look->refused)
		look_test_layout(session, look, LOOK_NS / TEST_SHARE);
	free(moved);
	/* If a thread ends or begins while the list is copied, the copy can look complete and be incomplete. */
	if (look->threads.missing != LIST_OUT_OF_TIME && !threads_are_same(&look->threads, later))
		look->trace->threads_missing = LIST_BROKEN;
	count += look->trace->threads_missing == LIST_BROKEN;
	count += look->trace->fibers_missing == LIST_BROKEN;
	return count;
}

size_t look_mark_compacted(struct look *look)
{
	for (size_t i = 0; i < look->trace->nr_threads; i++) {
		struct trace_thread *thread = &look->trace->threads[i];

		look_forget_stack(thread, thread->reason == REASON_OUT_OF_TIME ? REASON_OUT_OF_TIME : REASON_COMPACTED);
		thread->name = NULL;
	}
	return look->trace->nr_threads;
}

/* The name of a thread, or of the thread of a fiber, a VALUE. */
static uint64_t name_of(const struct look *look, size_t index)
{
	const size_t nr_threads = look->threads.count;

	if (index >= nr_threads)
		index = look->fibers.fibers[index - nr_threads].thread_index;
	return index < nr_threads ? look->threads.threads[index].name : 0;
}

/* Whether all that the names of an entry were read from are old objects. */
static bool is_of_old_objects(const struct look *look, size_t index)
{
	const struct stack *stack = &look->stacks[index];
	const uint64_t name = name_of(look, index);
	struct access access = ruby_access(&look->ruby);

	if (value_is_object(name) &&
	    (!collections_is_old(look->ruby.layout, access_member(&access, name, F_basic_flags)) || access.failed))
		return false;
	for (size_t i = 0; i < stack->nr_frames; i++)
		if (!collections_are_old(&look->ruby, stack->frames[i].kind == FRAME_RUBY ? stack->frames[i].iseq : 0,
					 stack->frames[i].method))
			return false;
	return true;
}

size_t look_mark_collected(struct look *look, bool old_stay)
{
	const enum memory_kind kind = memory_reads(look->ruby.memory, MEMORY_LASTS);
	size_t count = 0;

	for (size_t i = 0; i < look->trace->nr_threads; i++) {
		struct trace_thread *thread = &look->trace->threads[i];

		if ((thread->nr_frames == 0 && !thread->name) || (old_stay && is_of_old_objects(look, i)))
			continue;
		look_forget_stack(thread, thread->reason == REASON_OUT_OF_TIME ? REASON_OUT_OF_TIME : REASON_COLLECTED);
		thread->name = NULL;
		count++;
	}
	memory_reads(look->ruby.memory, kind);
	return count;
}
