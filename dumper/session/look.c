#include "session/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/resolve.h"
#include "decode/waits.h"
#include "elapsed.h"
#include "layout/self_test.h"
#include "session/windows.h"
#include "vm/context.h"

/* Of how many frames, in all its stacks, a look tells at most. */
#define MAX_FRAMES 2000000u

static void look_reset(struct look *look)
{
	for (size_t i = 0; i < look->nr_stacks; i++)
		stack_clear(&look->stacks[i]);
	free(look->stacks);
	threads_clear(&look->threads);
	fibers_clear(&look->fibers);
	trace_destroy(look->trace);
	free(look->refused);
	*look = (struct look){.ruby = look->ruby, .found = look->found};
}

static const struct native_thread *native_of(const struct session *session, const struct ruby_thread *thread)
{
	const struct target *target = session->target;

	for (size_t i = 0; thread->pthread != 0 && i < target->nr_threads; i++)
		if (target->threads[i].stopped && target->threads[i].fs_base == thread->pthread)
			return &target->threads[i];
	return NULL;
}

/* Whether that is a native thread of the target: Ruby's own note of it can be that of its parent process. */
static bool has_task(const struct session *session, uint64_t tid)
{
	char path[64];

	if (session->target->kind == TARGET_CORE) {
		for (size_t i = 0; i < session->target->nr_threads; i++)
			if (tid != 0 && (uint64_t)session->target->threads[i].tid == tid)
				return true;
		return false;
	}
	if (session->foreign_pids || tid == 0 || tid > INT32_MAX)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", session->target->pid, (int)tid);
	return access(path, F_OK) == 0;
}

/*
 * The machine code that a JIT makes notes in a frame where it is only before it calls what may ask for it (YJIT:
 * yjit/src/codegen.rs, jit_save_pc; ZJIT: zjit/src/codegen.rs, gen_save_pc_for_gc; MJIT: tool/ruby_vm/views/
 * _mjit_compile_pc_and_sp.erb): of a frame that runs, that may be another place in the same code.
 */
static void forget_line_of_running(struct trace_thread *thread)
{
	struct trace_frame *innermost = thread->frames;

	if (thread->state != STATE_RUNNING || thread->nr_frames == 0 || innermost->kind != TRACE_RUBY ||
	    !innermost->compiled)
		return;
	innermost->has_line = false;
}

static void describe_thread(const struct session *session, struct resolver *resolver, const struct ruby_thread *thread,
			    struct trace_thread *ret)
{
	const struct native_thread *native = native_of(session, thread);
	const struct layout_window *window = NULL;

	ret->id = thread->address;
	ret->ractor = thread->ractor;
	ret->name = resolver_string(resolver, thread->name);
	ret->main = thread->main;
	ret->state = thread->state;
	forget_line_of_running(ret);
	ret->fiber = thread->fiber;
	ret->fiber_state = thread->fiber_state;
	ret->resumed_by = thread->resumed_by;
	if (native)
		ret->tid = native->tid;
	else if (has_task(session, thread->tid))
		ret->tid = (pid_t)thread->tid;
	else if (thread->main)
		ret->tid = session->target->pid;
	if (!session->no_stop && native && thread->state == STATE_RUNNING)
		window = session_window(session, native->ip);
	ret->window = window ? layout_window_specs[window->id].label : NULL;
	/* In a window, whatever else was found is a consequence of that. */
	if (window) {
		ret->reason = REASON_WINDOW;
		ret->verdict = validate_verdict(REASON_WINDOW);
	}
	if (!session->no_stop && ret->verdict == VERDICT_COMPLETE && thread->state == STATE_RUNNING) {
		for (size_t i = 0; i < session->target->nr_threads; i++)
			if (session->target->threads[i].tid == ret->tid && !session->target->threads[i].stopped)
				ret->reason = REASON_NOT_STOPPED;
		ret->verdict = validate_verdict(ret->reason);
	}
}

/*
 * Returns what the self-test has against the layout, malloc'ed; NULL if nothing.
 *   moved  NULL, or for each thread whether its stack is known to have changed while it was copied
 */
static char *run_self_test(const struct session *session, const struct look *look, const bool *moved)
{
	const struct target *target = session->target;
	uint64_t *pthreads = calloc(target->nr_threads + 1, sizeof(*pthreads));
	char *refused;
	struct self_test test = {
	    .ruby = &look->ruby,
	    .version = session->version,
	    .threads = &look->threads,
	    .stacks = look->stacks,
	    .moved = moved,
	    .missing = session->module->mapped.start,
	    .missing_end = session->module->mapped.end,
	    .exact = session->layout.source == LAYOUT_BY_BUILD_ID || session->layout.source == LAYOUT_GENERATED,
	};

	for (size_t i = 0; pthreads && i < target->nr_threads; i++)
		if (target->threads[i].stopped)
			pthreads[test.nr_pthreads++] = target->threads[i].fs_base;
	if (!session->no_stop && test.nr_pthreads == target->nr_threads && target->nr_threads > 0)
		test.pthreads = pthreads;
	refused = self_test_run(&test);
	free(pthreads);
	return refused;
}

/*
 * What a suspended fiber has from its thread.
 *   thread  NULL if that has ended
 */
static void describe_fiber(const struct ruby *ruby, const struct ruby_fiber *fiber, const struct trace_thread *thread,
			   struct trace_thread *ret)
{
	ret->id = fiber->thread;
	ret->state = STATE_SUSPENDED;
	ret->suspended = true;
	ret->fiber = fiber->address;
	ret->fiber_state = fiber->state;
	ret->resumed_by = fiber->resumed_by;
	ret->ended = !thread;
	if (!thread)
		return;
	ret->tid = thread->tid;
	ret->ractor = thread->ractor;
	ret->name = thread->name;
	ret->main = thread->main;
	/* It may have been resumed meanwhile. */
	if (ret->verdict == VERDICT_COMPLETE && thread->reason == REASON_NOT_STOPPED) {
		ret->reason = REASON_NOT_STOPPED;
		ret->verdict = validate_verdict(REASON_NOT_STOPPED);
	}
	/* One that has resumed another waits for that. */
	if (fiber->resuming == 0)
		waits_find(ruby, fiber->thread, ret);
}

/*
 * Walks one stack more, that of the entry `trace->nr_threads`, and finds the names of its frames. Returns false if out
 * of memory.
 */
static bool walk_stack(struct look *look, struct resolver *resolver, uint64_t ec, uint64_t thread, size_t *frames_left,
		       bool in_time)
{
	struct trace_thread *entry = &look->trace->threads[look->trace->nr_threads++];
	struct stack *stack = &look->stacks[look->nr_stacks++];

	if (!in_time) {
		entry->reason = REASON_OUT_OF_TIME;
		entry->verdict = validate_verdict(REASON_OUT_OF_TIME);
		return true;
	}
	if (!stack_walk(&look->ruby, ec, thread, *frames_left, stack) || !resolver_stack(resolver, stack, entry))
		return false;
	*frames_left -= stack->nr_frames;
	return true;
}

/* Room for the stacks and entries of so many. False if out of memory. */
static bool make_room(struct look *look, size_t count)
{
	struct stack *stacks = reallocarray(look->stacks, count + 1, sizeof(*stacks));
	struct trace_thread *entries;

	if (!stacks)
		return false;
	look->stacks = stacks;
	entries = reallocarray(look->trace->threads, count + 1, sizeof(*entries));
	if (!entries)
		return false;
	look->trace->threads = entries;
	memset(&stacks[look->nr_stacks], 0, (count + 1 - look->nr_stacks) * sizeof(*stacks));
	memset(&entries[look->trace->nr_threads], 0, (count + 1 - look->trace->nr_threads) * sizeof(*entries));
	return true;
}

void look_once(const struct session *session, struct look *look, long limit_ns)
{
	struct resolver *resolver = NULL;
	size_t frames_left = MAX_FRAMES;
	struct timespec began;
	struct trace *trace;

	clock_gettime(CLOCK_MONOTONIC, &began);
	look_reset(look);
	look->no_memory = true;
	look->trace = trace = trace_create();
	if (!trace)
		return;
	if (!threads_list(&look->ruby, &look->threads))
		return;
	resolver = resolver_create(&look->ruby, trace);
	if (!resolver || !make_room(look, look->threads.count))
		goto out;
	for (size_t i = 0; i < look->threads.count; i++) {
		const struct ruby_thread *thread = &look->threads.threads[i];
		bool in_time = elapsed_ns(&began) <= limit_ns;

		if (!walk_stack(look, resolver, thread->ec, thread->address, &frames_left, in_time))
			goto out;
		if (in_time)
			describe_thread(session, resolver, thread, &trace->threads[i]);
	}
	/* After them: where there is no room for all stacks, it is the threads' that are read. */
	if (!fibers_list(&look->ruby, &look->threads, &look->found, &look->fibers) ||
	    !make_room(look, look->threads.count + look->fibers.count))
		goto out;
	trace->fibers_missing = look->fibers.missing;
	trace->nr_fibers_missing = look->fibers.nr_missing;
	for (size_t i = 0; i < look->fibers.count; i++) {
		const struct ruby_fiber *fiber = &look->fibers.fibers[i];
		struct trace_thread *entry = &trace->threads[trace->nr_threads];

		if (!walk_stack(look, resolver, fiber->ec, fiber->thread, &frames_left, elapsed_ns(&began) <= limit_ns))
			goto out;
		describe_fiber(&look->ruby, fiber,
			       fiber->thread_index < look->threads.count ? &trace->threads[fiber->thread_index] : NULL,
			       entry);
	}
	trace->gc_running = threads_gc_running(&look->ruby, &trace->gc_known);
	look->refused = run_self_test(session, look, NULL);
	look->no_memory = false;
out:
	resolver_destroy(resolver);
}

/*
 * Whether the suspended fiber of the entry `index` may have been resumed while it was copied. Until 2.4 its state does
 * not tell. It was if it has a resumer, and has itself resumed none (or was left by a transfer, which cannot be told
 * from that); it may have been if its thread is known to have moved.
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

size_t look_mark_moved(const struct session *session, struct look *look)
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
	if (count > 0 && look->refused) {
		free(look->refused);
		look->refused = run_self_test(session, look, moved);
	}
	free(moved);
	return count;
}

bool look_order(struct look *look)
{
	size_t *ranks = calloc(look->trace->nr_threads + 1, sizeof(*ranks));
	bool ordered;

	if (!ranks)
		return false;
	for (size_t i = 0; i < look->trace->nr_threads; i++)
		ranks[i] = i < look->threads.count ? i : look->fibers.fibers[i - look->threads.count].thread_index;
	ordered = trace_order(look->trace, ranks);
	free(ranks);
	return ordered;
}

void look_clear(struct look *look)
{
	look_reset(look);
	heap_clear(&look->found);
}
