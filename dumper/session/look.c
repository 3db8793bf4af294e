#include "session/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addresses.h"
#include "ruby/call_site.h"
#include "ruby/collections.h"
#include "ruby/context.h"
#include "ruby/resolve.h"
#include "ruby/self_test.h"
#include "ruby/waits.h"
#include "session/look_parts.h"
#include "session/waits.h"
#include "session/windows.h"
#include "target/core.h"
#include "target/stopping.h"
#include "trace/wait_graph.h"

/* The most frames, in all stacks, of a look. */
#define MAX_FRAMES 2000000u

static void look_reset(struct look *look)
{
	for (size_t i = 0; i < look->nr_stacks; i++)
		stack_clear(&look->stacks[i]);
	free(look->stacks);
	threads_clear(&look->threads);
	address_map_clear(&look->natives_by_pointer);
	address_map_clear(&look->natives_by_tid);
	address_map_clear(&look->tids_by_inner);
	fibers_clear(&look->fibers);
	trace_destroy(look->trace);
	error_destroy(look->refused);
	*look = (struct look){.ruby = look->ruby, .found = look->found};
}

/*
 * Whether the thread pointer of a native thread is not known: gdb before 8 wrote 0 for it into a core (it did not read
 * fs_base: gdb/amd64-linux-nat.c).
 */
static bool has_no_pointer(const struct target *target, const struct native_thread *native)
{
	return !target->operations->runs && native->fs_base == 0;
}

/* Prepares look-ups of the threads of a target that has another pid namespace. False if there is not enough memory. */
static bool index_inner_tids(const struct session *session, struct look *look)
{
	const pid_t pid = session->target->pid;
	bool enough = true;
	size_t count;
	pid_t *tids = live_list_threads(pid, &count);

	for (size_t i = 0; enough && i < count; i++)
		enough =
		    address_map_add(&look->tids_by_inner, (uint64_t)live_inner_id(pid, tids[i]), (uint64_t)tids[i]);
	free(tids);
	address_map_sort(&look->tids_by_inner);
	return enough;
}

/* Prepares look-ups of the native threads of the target. False if there is not enough memory. */
static bool index_natives(const struct session *session, struct look *look)
{
	const struct target *target = session->target;
	bool enough = true;

	for (size_t i = 0; enough && i < target->nr_threads; i++) {
		const struct native_thread *native = &target->threads[i];

		if (native->refused)
			look->unstopped = REASON_REFUSED;
		else if (!native->stopped && look->unstopped == REASON_NONE)
			look->unstopped = REASON_NOT_STOPPED;
		enough = address_map_add(&look->natives_by_tid, (uint64_t)native->tid, i) &&
			 (!native->stopped || has_no_pointer(target, native) ||
			  address_map_add(&look->natives_by_pointer, native->fs_base, i));
	}
	address_map_sort(&look->natives_by_tid);
	address_map_sort(&look->natives_by_pointer);
	/* If the target is stopped, thread pointers identify the threads instead. */
	if (enough && session->foreign_pids && session->no_stop)
		enough = index_inner_tids(session, look);
	return enough;
}

/*
 * The native thread without a known pointer that runs on the stack that contains a pthread_t: glibc puts the pthread_t
 * into the thread's stack, above all frames (nptl/allocatestack.c, TLS_TCB_AT_TP), and a page that is not mapped
 * separates the stack from the next one. This is not so for the program's first thread, nor while a thread runs on
 * another stack, that of a fiber or a signal: then returns NULL. Also returns NULL if there are two such native
 * threads.
 */
static const struct native_thread *native_on_stack_of(const struct target *target, const struct ruby_thread *thread)
{
	const struct native_thread *found = NULL;
	uint64_t start, end;

	if (!target->operations->find_mapping || thread->main ||
	    !target->operations->find_mapping(target, thread->pthread, &start, &end))
		return NULL;
	for (size_t i = 0; i < target->nr_threads; i++) {
		const struct native_thread *native = &target->threads[i];

		if (!has_no_pointer(target, native) || native->sp < start || native->sp >= thread->pthread)
			continue;
		if (found)
			return NULL;
		found = native;
	}
	return found;
}

/* The native thread of a Ruby thread; NULL if it has none, or if that is not known. */
static const struct native_thread *native_of(const struct session *session, const struct look *look,
					     const struct ruby_thread *thread)
{
	const uint64_t *index =
	    thread->pthread != 0 ? address_map_find(&look->natives_by_pointer, thread->pthread) : NULL;

	if (index)
		return &session->target->threads[*index];
	return thread->pthread != 0 ? native_on_stack_of(session->target, thread) : NULL;
}

/*
 * The torn window in which a thread may be if its native thread is not known: the window of any native thread that it
 * can be. The thread has the GVL, and only a thread that has the GVL is in a window.
 */
static const struct layout_window *window_of_unknown(const struct session *session)
{
	const struct layout_window *window = NULL;

	for (size_t i = 0; i < session->target->nr_threads && !window; i++)
		if (has_no_pointer(session->target, &session->target->threads[i]))
			window = session_window(session, session->target->threads[i].ip);
	return window;
}

/*
 * Whether a tid that Ruby has noted is that of a native thread of the target: it can be a tid of the target's parent
 * process. If the target was stopped, its native threads are known; to ask the kernel about each of thousands would
 * take long while the target is stopped.
 */
static bool has_task(const struct session *session, const struct look *look, uint64_t tid)
{
	const struct target *target = session->target;
	char path[64];

	if (tid == 0 || tid > INT32_MAX || session->foreign_pids)
		return false;
	if (target->nr_threads > 0)
		return address_map_find(&look->natives_by_tid, tid) != NULL;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", target->pid, (int)tid);
	return access(path, F_OK) == 0;
}

/* The tid, in rbdump's pid namespace, of the native thread that Ruby has noted; 0 if that is not one of the target. */
static pid_t noted_task(const struct session *session, const struct look *look, uint64_t tid)
{
	const uint64_t *ours = tid != 0 ? address_map_find(&look->tids_by_inner, tid) : NULL;

	if (ours)
		return (pid_t)*ours;
	return has_task(session, look, tid) ? (pid_t)tid : 0;
}

/*
 * Drops the line of a running frame of a JIT. The machine code of a JIT saves the pc in the frame only before it calls
 * code that may need the pc (YJIT: yjit/src/codegen.rs, jit_save_pc; ZJIT: zjit/src/codegen.rs, gen_save_pc_for_gc;
 * MJIT: tool/ruby_vm/views/_mjit_compile_pc_and_sp.erb). So the saved pc of a running frame may be another place in its
 * code.
 */
static void forget_line_of_running(struct trace_thread *thread)
{
	struct trace_frame *innermost = thread->frames;

	if (thread->state != STATE_RUNNING || thread->nr_frames == 0 || innermost->kind != TRACE_RUBY ||
	    !innermost->compiled)
		return;
	innermost->has_line = false;
}

/* The count of CPUs of a native thread that was not stopped because it slept (struct trace_thread); otherwise 0. */
static uint64_t switches_of(const struct session *session, const struct look *look, pid_t tid)
{
	const uint64_t *index = address_map_find(&look->natives_by_tid, (uint64_t)tid);
	const struct native_thread *native = index ? &session->target->threads[*index] : NULL;

	return native && (native->asleep || !native->stopped) ? native->switches : 0;
}

/* All that is known of a thread without its stack. */
static void describe_thread(const struct session *session, const struct look *look, struct resolver *resolver,
			    const struct ruby_thread *thread, struct trace_thread *ret)
{
	const struct native_thread *native = native_of(session, look, thread);
	const pid_t noted = native ? 0 : noted_task(session, look, thread->tid);

	ret->id = thread->address;
	ret->ractor = thread->ractor;
	ret->name = resolver_string(resolver, thread->name);
	ret->main = thread->main;
	ret->state = thread->state;
	ret->fiber = thread->fiber;
	ret->fiber_state = thread->fiber_state;
	ret->resumed_by = thread->resumed_by;
	if (native)
		ret->tid = native->tid;
	else if (noted != 0)
		ret->tid = noted;
	else if (thread->main)
		ret->tid = session->target->pid;
	ret->switches = switches_of(session, look, ret->tid);
}

/*
 * Why a thread may have gone on while it was copied; REASON_NONE if it has not. The pthread_t of a native thread that
 * did not stop is not known. Its tid can be compared only if Ruby notes tids (since 3.1) and the target is in rbdump's
 * own pid namespace. Otherwise it can be the native thread of any Ruby thread whose native thread is not among those
 * that have stopped. With M:N threads it may also have begun to run a Ruby thread that had no native thread.
 */
static enum reason reason_unstopped(const struct session *session, const struct look *look,
				    const struct ruby_thread *thread)
{
	const struct native_thread *native = session->target->threads;
	const uint64_t *index;

	if (session->no_stop || look->unstopped == REASON_NONE || native_of(session, look, thread))
		return REASON_NONE;
	index = has_task(session, look, thread->tid) ? address_map_find(&look->natives_by_tid, thread->tid) : NULL;
	native = native && index ? native + *index : NULL;
	if (native && native->stopped)
		return REASON_NONE;
	if (native ? native->refused : look->unstopped == REASON_REFUSED)
		return REASON_REFUSED;
	/* A native thread that has not stopped in time sleeps in the kernel, unless its Ruby thread is running. */
	return thread->state == STATE_RUNNING ? REASON_NOT_STOPPED : REASON_NONE;
}

void look_forget_stack(struct trace_thread *thread, enum reason reason)
{
	thread->nr_frames = 0;
	thread->waits_in = thread->waits_for = NULL;
	thread->wait = (struct trace_wait){.holder_entry = WAIT_NO_ENTRY};
	thread->nr_holds = 0;
	thread->reason = reason;
	thread->verdict = validate_verdict(reason);
}

/*
 * Whether the innermost frame cannot be what its caller calls, because it is left from an earlier call. Up to 2.7 a
 * frame is published before it is whole. The instruction pointer would tell that, but it is not known without a stop,
 * and has no meaning without windows, which only a layout of exactly this build has.
 */
static bool contradicts_its_caller(const struct session *session, const struct look *look, const struct stack *stack)
{
	enum call_site_verdict verdict;
	enum memory_kind kind;

	if ((!session->no_stop && session_has_windows(session)) || stack->nr_frames < 2)
		return false;
	kind = memory_reads(look->ruby.memory, MEMORY_LASTS);
	verdict = call_site_judge(&look->ruby, &stack->frames[1], &stack->frames[0]);
	memory_reads(look->ruby.memory, kind);
	return verdict == CALL_SITE_CONTRADICTS;
}

/* Judges a stack by how its thread was stopped, and where. */
static void judge_thread(const struct session *session, const struct look *look, const struct ruby_thread *thread,
			 const struct stack *stack, struct trace_thread *ret)
{
	const struct native_thread *native = native_of(session, look, thread);
	const enum reason unstopped = reason_unstopped(session, look, thread);
	const struct layout_window *window = NULL;

	forget_line_of_running(ret);
	if (ret->verdict == VERDICT_COMPLETE && contradicts_its_caller(session, look, stack)) {
		ret->reason = REASON_CALL_SITE;
		ret->verdict = validate_verdict(REASON_CALL_SITE);
	}
	if (session->no_stop || ret->reason == REASON_OUT_OF_TIME)
		return;
	if (unstopped == REASON_REFUSED)
		look_forget_stack(ret, REASON_REFUSED);
	if (unstopped == REASON_REFUSED || thread->state != STATE_RUNNING)
		return;
	window = native ? session_window(session, native->ip) : window_of_unknown(session);
	/* If the thread is in a window or ran on, all other findings are a consequence of that. */
	if (window) {
		ret->window = layout_window_specs[window->id].label;
		ret->reason = REASON_WINDOW;
	} else if (unstopped != REASON_NONE) {
		ret->reason = unstopped;
	}
	ret->verdict = validate_verdict(ret->reason);
}

void look_test_layout(const struct session *session, struct look *look, long limit_ns)
{
	bool *moved = calloc(look->trace->nr_threads + 1, sizeof(*moved));
	const struct target *target = session->target;
	struct addresses pthreads = {0};
	size_t stopped = 0;
	bool enough = moved != NULL;
	struct self_test test = {
	    .ruby = &look->ruby,
	    .version = session->version_source == VERSION_FITS || session->layout.source == LAYOUT_NEAREST
			   ? NULL
			   : session->version,
	    .threads = &look->threads,
	    .stacks = look->stacks,
	    .moved = moved,
	    .missing = session->module->mapped.start,
	    .missing_end = session->module->mapped.end,
	    .strict = session->layout.source == LAYOUT_NEAREST,
	    .exact = session->layout.source == LAYOUT_BY_BUILD_ID || session->layout.source == LAYOUT_GENERATED,
	};

	for (size_t i = 0; enough && i < look->trace->nr_threads; i++) {
		enum reason reason = look->trace->threads[i].reason;

		moved[i] = reason == REASON_MOVED || reason == REASON_CALL_SITE || reason == REASON_NOT_STOPPED ||
			   reason == REASON_REFUSED;
	}
	for (size_t i = 0; enough && i < target->nr_threads; i++) {
		if (!target->threads[i].stopped || has_no_pointer(target, &target->threads[i]))
			continue;
		stopped++;
		enough = addresses_add(&pthreads, target->threads[i].fs_base);
	}
	addresses_sort(&pthreads);
	if (!session->no_stop && stopped == target->nr_threads && stopped > 0)
		test.pthreads = &pthreads;
	error_destroy(look->refused);
	look->refused = NULL;
	memory_limit(look->ruby.memory, limit_ns);
	if (enough)
		look->refused = self_test_run(&test);
	look->no_memory |= !enough || look->refused == error_no_memory();
	look->untested = memory_is_over(look->ruby.memory);
	memory_limit(look->ruby.memory, 0);
	addresses_clear(&pthreads);
	free(moved);
}

/*
 * Fills in what a suspended fiber has from its thread.
 *   thread  NULL if the thread has ended
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
	if (ret->reason != REASON_OUT_OF_TIME && thread->reason == REASON_REFUSED)
		look_forget_stack(ret, REASON_REFUSED);
	/* A fiber that has resumed another one waits for that fiber. */
	else if (fiber->resuming == 0)
		waits_find(ruby, fiber->thread, ret);
}

/*
 * Walks one more stack, for the entry `trace->nr_threads`, and finds the names of its frames. If there was not enough
 * time, the stack has no frames. Returns false if there is not enough memory.
 */
static bool walk_stack(struct look *look, struct resolver *resolver, uint64_t ec, uint64_t thread, size_t *frames_left)
{
	struct trace_thread *entry = &look->trace->threads[look->trace->nr_threads++];
	struct stack *stack = &look->stacks[look->nr_stacks++];
	struct memory *memory = look->ruby.memory;

	if (!memory_is_over(memory) &&
	    (!stack_walk(&look->ruby, ec, thread, *frames_left, stack) || !resolver_stack(resolver, stack, entry)))
		return false;
	*frames_left -= stack->nr_frames;
	if (!memory_is_over(memory))
		return true;
	stack_clear(stack);
	*stack = (struct stack){.ec = ec};
	look_forget_stack(entry, REASON_OUT_OF_TIME);
	return true;
}

/* Makes room for `count` stacks and entries. False if there is not enough memory. */
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

/* Reads threads, fibers and their stacks. False if there is not enough memory. */
static bool read_stacks(const struct session *session, struct look *look, struct resolver *resolver)
{
	struct trace *trace = look->trace;
	size_t frames_left = MAX_FRAMES, nr_threads = look->threads.count, missed;

	if (!index_natives(session, look) || !make_room(look, nr_threads))
		return false;
	/* First the facts that take few reads, so that they are known even of threads for which there is no time. */
	for (size_t i = 0; i < nr_threads; i++)
		describe_thread(session, look, resolver, &look->threads.threads[i], &trace->threads[i]);
	for (size_t i = 0; i < nr_threads; i++) {
		const struct ruby_thread *thread = &look->threads.threads[i];

		if (!walk_stack(look, resolver, thread->ec, thread->address, &frames_left))
			return false;
		judge_thread(session, look, thread, &look->stacks[i], &trace->threads[i]);
	}
	/* Fibers come after threads: if there is no room for all stacks, those of threads are read. */
	missed = memory_missed(look->ruby.memory);
	if (!fibers_list(&look->ruby, &look->threads, &look->found, &look->fibers) ||
	    !make_room(look, nr_threads + look->fibers.count))
		return false;
	/* What was not copied in time may have been a fiber. */
	if (look->fibers.missing == LIST_COMPLETE && memory_missed(look->ruby.memory) > missed)
		look->fibers.missing = LIST_BROKEN;
	for (size_t i = 0; i < look->fibers.count; i++) {
		const struct ruby_fiber *fiber = &look->fibers.fibers[i];
		struct trace_thread *entry = &trace->threads[trace->nr_threads];

		if (!walk_stack(look, resolver, fiber->ec, fiber->thread, &frames_left))
			return false;
		describe_fiber(&look->ruby, fiber,
			       fiber->thread_index < nr_threads ? &trace->threads[fiber->thread_index] : NULL, entry);
	}
	trace->threads_missing = look->threads.missing;
	trace->fibers_missing = look->fibers.missing;
	trace->nr_fibers_missing = look->fibers.nr_missing;
	trace->gc_running = threads_gc_running(&look->ruby, &trace->gc_known);
	return true;
}

/* Finds out what the entries wait for. look_order() finds the deadlocks: a look can be within the pause. */
static bool read_waits(const struct session *session, struct look *look)
{
	look->trace->waits_of_one_moment = !session->no_stop;
	return session_waits_read(&look->ruby, look->trace, look->stacks, look->threads.count);
}

void look_once(const struct session *session, struct look *look, long limit_ns)
{
	const long test_ns = limit_ns / TEST_SHARE;
	struct resolver *resolver = NULL;

	look_reset(look);
	memory_limit(look->ruby.memory, limit_ns - test_ns);
	look->trace = trace_create();
	if (look->trace && threads_list(&look->ruby, &look->threads))
		resolver = resolver_create(&look->ruby, look->trace);
	look->no_memory = !resolver || !read_stacks(session, look, resolver) || !read_waits(session, look);
	resolver_destroy(resolver);
	if (!look->no_memory)
		look_test_layout(session, look, test_ns);
	memory_limit(look->ruby.memory, 0);
}

void look_move(struct look *from, struct look *to)
{
	struct heap_finds found = to->found;

	look_reset(to);
	*to = *from;
	to->found = found;
	*from = (struct look){.ruby = from->ruby, .found = from->found};
}

bool look_order(struct look *look)
{
	size_t *ranks = calloc(look->trace->nr_threads + 1, sizeof(*ranks));
	bool ordered;

	if (!ranks)
		return false;
	for (size_t i = 0; i < look->trace->nr_threads; i++)
		ranks[i] = i < look->threads.count ? i : look->fibers.fibers[i - look->threads.count].thread_index;
	ordered = trace_order(look->trace, ranks) && wait_graph_find(look->trace);
	free(ranks);
	return ordered;
}

void look_clear(struct look *look)
{
	look_reset(look);
	heap_clear(&look->found);
}
