#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture.h"
#include "decode/literals.h"
#include "decode/resolve.h"
#include "decode/waits.h"
#include "layout/self_test.h"
#include "session_roots.h"
#include "target/diagnose.h"
#include "target/live.h"
#include "target/ruby_file.h"
#include "vm/context.h"
#include "vm/fibers.h"
#include "vm/roots_file.h"

/* How often a paused target is looked at until one look found all it wanted, and passed the self-test. */
#define PAUSED_TRIES 4

/* In how many looks, of those, fibers that were made after the search for them are looked for again. */
#define SEARCHED_TRIES 2

/* How long a target goes on between two pauses, at least. */
#define RETRY_NS 2000000L

/* How many layouts that say they are for this Ruby are tried. */
#define KEPT_TRIES 8

/* How often a running target is looked at before it is paused. */
#define LEARNING_TRIES 8

/*
 * How much a look may take, whatever the target says: of frames in all its stacks, and of time; and of time while the
 * target is stopped. What is left out then is marked.
 */
#define MAX_FRAMES 2000000u
#define LOOK_NS	   5000000000L
#define CHASE_NS   100000000L

/*
 * Between two ranges of one window the compiler has put instructions of the code around it: a thread that is stopped
 * there is still in the middle. So many bytes at most are taken for such.
 */
#define WINDOW_GAP 64u

/* How long a running target is tried until no stack moved during a look. */
#define UNPAUSED_NS 200000000L

/* One look at a target through one layout: everything that was read in it, and what came of it. */
struct look {
	struct ruby ruby;
	struct heap_finds found; /* by the last search for fibers: it outlives a look */
	struct ruby_threads threads;
	struct ruby_fibers fibers;
	struct stack *stacks; /* one for each thread, then one for each fiber */
	size_t nr_stacks;
	struct trace *trace; /* its threads in the same order */
	char *refused;	     /* what the self-test has against the layout; NULL if nothing */
	bool no_memory;
};

static long elapsed_ns(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - since->tv_sec) * 1000000000L + (now.tv_nsec - since->tv_nsec);
}

static void look_clear(struct look *look)
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

bool session_has_windows(const struct session *session)
{
	const struct layout *layout = session->layout.layout;

	return layout->nr_windows > 0 && layout->build_id && session->module->build_id &&
	       strcmp(layout->build_id, session->module->build_id) == 0;
}

const struct layout_window *session_window(const struct session *session, uint64_t ip)
{
	const struct layout *layout = session->layout.layout;
	const struct layout_window *innermost = NULL;
	uint64_t address = ip - session->module->bias, length = UINT64_MAX;

	if (!session_has_windows(session))
		return NULL;
	for (size_t i = 0; i < layout->nr_windows; i++) {
		const struct layout_window *window = &layout->windows[i];
		uint64_t high = window->high;

		if (i + 1 < layout->nr_windows && window[1].id == window->id && window[1].low > high &&
		    window[1].low - high <= WINDOW_GAP && strcmp(window[1].function, window->function) == 0)
			high = window[1].low;
		/* One that was inlined into another lies within it. */
		if (address >= window->low && address < high && high - window->low < length) {
			innermost = window;
			length = high - window->low;
		}
	}
	return innermost;
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

/* Reads everything that is wanted through the memory, once. */
static void look_once(const struct session *session, struct look *look, long limit_ns)
{
	struct resolver *resolver = NULL;
	size_t frames_left = MAX_FRAMES;
	struct timespec began;
	struct trace *trace;

	clock_gettime(CLOCK_MONOTONIC, &began);
	look_clear(look);
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

struct chase {
	const struct session *session;
	struct look *look;
};

static void chase(void *context)
{
	const struct chase *chase = context;

	look_once(chase->session, chase->look, CHASE_NS);
}

/*
 * Looks at the running target, to learn which pages there are to copy. One that moves is looked at until that brings
 * nothing new: each look sees it in another method.
 */
static struct error *learn_pages(const struct session *session, struct look *look)
{
	struct error *error = NULL;
	size_t known;
	int tries = 0;

	do {
		known = memory_pages(session->memory);
		error = capture_unpaused(session->memory);
		if (!error)
			look_once(session, look, LOOK_NS);
	} while (!error && memory_pages(session->memory) > known && ++tries < LEARNING_TRIES);
	return error;
}

/*
 * Searches the heap of a Ruby that has no list of its fibers, while the target goes on. *searched receives whether that
 * was wanted at all.
 */
static struct error *search_heap(const struct session *session, struct look *look, bool *searched)
{
	uint64_t type = look->fibers.type;

	*searched = type != 0;
	if (type == 0)
		return NULL;
	heap_clear(&look->found);
	if (!heap_find(&look->ruby, target_read_pages, session->target, type, &look->found))
		return error_no_memory();
	return NULL;
}

static struct error *look_paused(const struct session *session, struct look *look)
{
	struct chase chased = {session, look};
	struct error *error = learn_pages(session, look);
	double pause_us = 0, pauses_us = 0;
	unsigned int pauses = 0;
	bool searched = false;

	if (!error)
		error = search_heap(session, look, &searched);
	if (!error && searched)
		error = learn_pages(session, look);
	while (!error && pauses < PAUSED_TRIES) {
		/* The first time only what is known is copied, which is all there is to do unless the target has
		   moved on. */
		error = capture_paused(session->target, session->memory, pauses > 0 ? chase : NULL, &chased, &pause_us);
		if (error)
			break;
		pauses++;
		pauses_us += pause_us;
		look_once(session, look, LOOK_NS);
		if (look->no_memory)
			return error_no_memory();
		/* Of fibers that were made after the search some are missed. */
		searched = false;
		if (look->fibers.missing == FIBERS_MISSED && pauses < SEARCHED_TRIES)
			error = search_heap(session, look, &searched);
		if (memory_missed(session->memory) == 0 && !look->refused && !searched)
			break;
		/* Let it get somewhere else. */
		nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
	}
	if (error)
		return error;
	look->trace->pauses = pauses;
	look->trace->pause_us = pauses_us;
	return NULL;
}

/* A core stands still: one look does. If Ruby's file is missing, it tells which of its literals are wanted. */
static struct error *look_at_core(const struct session *session, struct look *look)
{
	const struct module_segment *mapped = &session->module->mapped;
	struct literals literals = {0};
	struct error *error;
	bool searched;

	look_once(session, look, LOOK_NS);
	error = search_heap(session, look, &searched);
	if (error)
		return error;
	if (searched)
		look_once(session, look, LOOK_NS);
	if (!look->no_memory && session->module->fd < 0) {
		if (literals_find(&look->ruby, look->stacks, look->nr_stacks, mapped->start, mapped->end, &literals)) {
			memory_overlay(session->memory, literals.pieces, literals.count, 0, 0);
			look_once(session, look, LOOK_NS);
			memory_overlay(session->memory, NULL, 0, 0, 0);
		} else {
			look->no_memory = true;
		}
		literals_clear(&literals);
	}
	return look->no_memory ? error_no_memory() : NULL;
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

/*
 * Marks the threads whose execution context or control frames are no longer what was copied, and tests the layout on
 * the others. Returns how many have moved.
 */
static size_t mark_moved(const struct session *session, struct look *look)
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

static struct error *look_unpaused(const struct session *session, struct look *look)
{
	struct timespec began;
	bool fitted = false, searched;
	struct error *error;
	size_t moved;

	look_once(session, look, LOOK_NS);
	error = search_heap(session, look, &searched);
	if (error)
		return error;
	if (searched)
		look_once(session, look, LOOK_NS);
	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		error = capture_unpaused(session->memory);
		if (error)
			return error;
		look_once(session, look, LOOK_NS);
		if (!look->no_memory)
			moved = mark_moved(session, look);
		if (look->no_memory)
			return error_no_memory();
		fitted |= !look->refused;
	} while ((moved > 0 || look->refused || look->fibers.missing == FIBERS_BROKEN) &&
		 elapsed_ns(&began) < UNPAUSED_NS);
	/* A layout that fitted once is right: what did not fit in the last look was moving. */
	if (fitted) {
		free(look->refused);
		look->refused = NULL;
	}
	return NULL;
}

/* Puts each fiber behind its thread. False if out of memory. */
static bool order_trace(struct look *look)
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

/*
 * Looks through the layout at hand. *refused receives a malloc'ed sentence if the self-test has something against it;
 * then there is no trace.
 */
static struct error *look_through(struct session *session, struct trace **ret, char **refused)
{
	const struct layout *layout = session->layout.layout;
	const enum lifetime before = session_lifetime(session, &session->module_roots, 0);
	struct look look = {.ruby = {.layout = layout}};
	struct access access;
	struct roots roots;
	bool searched;
	struct error *error = session_find_roots(session, &roots, &searched);

	*ret = NULL;
	*refused = NULL;
	if (error)
		return error;
	if (roots.current_vm == 0) {
		error = session_no_stacks(session, &roots, before, 0);
		if (error)
			return error;
		*refused = strdup("no VM that it fits was found in the process's data");
		return *refused ? NULL : error_no_memory();
	}
	memory_destroy(session->memory);
	session->memory = memory_create(target_read_pages, session->target, SESSION_PAGES);
	if (!session->memory)
		return error_no_memory();
	access = access_begin(session->memory, layout);
	look.ruby.memory = session->memory;
	look.ruby.symbols = roots.global_symbols;
	look.ruby.operators = roots.operators;
	look.ruby.object_class = roots.object_class;
	look.ruby.vm = access_word(&access, roots.current_vm);
	look.ruby.zjit = roots_zjit(&roots, session->memory);
	if (access.failed && session->target->kind == TARGET_CORE) {
		*refused = strdup("the core does not have the memory that leads to the VM");
		return *refused ? NULL : error_no_memory();
	}
	if (access.failed || look.ruby.vm == 0) {
		error = session_no_stacks(session, &roots, before, 0);
		if (error)
			return error;
		return error_create(EXIT_FAILED,
				    "process %d has no Ruby VM (yet, or any more): it %s just starting or ending%s",
				    session->target->pid, session->target->kind == TARGET_CORE ? "was" : "is",
				    session->target->kind == TARGET_CORE ? "" : "; try again");
	}
	if (session->target->kind == TARGET_CORE)
		error = look_at_core(session, &look);
	else
		error = session->no_stop ? look_unpaused(session, &look) : look_paused(session, &look);
	if (!error && look.refused)
		error = session_no_stacks(session, &roots, before, look.ruby.vm);
	if (!error && look.refused) {
		*refused = look.refused;
		look.refused = NULL;
	} else if (!error && !order_trace(&look)) {
		error = error_no_memory();
	} else if (!error) {
		if (searched && session->target->kind == TARGET_LIVE)
			roots_file_write(session->module, &session->module_roots, &roots);
		session->ruby = look.ruby;
		*ret = look.trace;
		look.trace = NULL;
	}
	look_clear(&look);
	heap_clear(&look.found);
	return error;
}

static struct error *refuse(const struct session *session, const char *found, const char *refused)
{
	const char *build_id = session->module->build_id ? session->module->build_id : "none";

	if (session->layout.source == LAYOUT_GENERATED || session->layout.source == LAYOUT_BY_BUILD_ID)
		return error_create(
		    EXIT_NO_RUBY,
		    "%s does not fit process %d: self-test: %s; since it was made for this very Ruby (%s, "
		    "build-id %s), this rbdump does not understand that Ruby",
		    found, session->target->pid, refused, session->version, build_id);
	return error_create(EXIT_NO_RUBY,
			    "%s does not fit process %d: self-test: %s; make the layout of this Ruby with `rbdump "
			    "--gen-offsets` from its debug info (build-id %s)",
			    found, session->target->pid, refused, build_id);
}

/* No layout at all: what was looked for, and what would help. */
static struct error *no_layout(const struct session *session, const struct layout_wish *wish,
			       const struct error *why_not_made)
{
	const char *build_id = session->module->build_id;
	char newest[32];

	if (session->version[0] == '\0')
		return error_create(EXIT_NO_RUBY,
				    "the core does not tell which Ruby it is of: %s (build-id %s) is not here, and no "
				    "layout has that build-id; give the file that ran behind the core, or "
				    "--ruby-version X.Y.Z, or --offsets FILE",
				    session->module->path, build_id ? build_id : "not known");
	bool of_series = layout_find_newest(wish, newest, sizeof(newest));

	return error_create(
	    EXIT_NO_RUBY,
	    "there is no layout for Ruby %s (%s, build-id %s), and none could be made: %s; install the debug "
	    "symbols of that package, or run `rbdump --gen-offsets` on a build with debug info and the same "
	    "version%s%s",
	    session->version, session->module->path, build_id ? build_id : "none", why_not_made->message,
	    of_series ? "; of its series, there are layouts up to " : "", of_series ? newest : "");
}

static struct error *generate(struct session *session, const struct layout_wish *wish)
{
	char root[64] = "";

	layout_found_clear(&session->layout);
	if (session->module->fd < 0)
		return error_create(EXIT_NO_RUBY, "%s is not here, or not the one that ran", session->module->path);
	if (session->target->kind == TARGET_LIVE)
		snprintf(root, sizeof(root), "/proc/%d/root", session->target->pid);
	return layout_find_generate(wish, session->module->fd, session->module->path, root, &session->layout);
}

/*
 * Looks through the layout in session->layout; one that the self-test refuses is an error. *refusal receives the error
 * of the first layout that was refused, and *ret the trace of one that was not.
 */
static struct error *try_layout(struct session *session, const char *name, struct error **refusal, struct trace **ret)
{
	char *refused = NULL;
	struct error *error;

	if (session->version[0] == '\0')
		snprintf(session->version, sizeof(session->version), "%s", session->layout.layout->version);
	error = look_through(session, ret, &refused);
	if (!error && refused && !*refusal)
		*refusal = refuse(session, name, refused);
	free(refused);
	return error;
}

/* Tries to make a layout and to look through it; *why receives why it could not be made. */
static struct error *try_generated(struct session *session, const struct layout_wish *wish, struct error **why,
				   struct error **refusal, struct trace **ret)
{
	*why = generate(session, wish);
	return *why ? NULL : try_layout(session, "the layout made from its debug info", refusal, ret);
}

/*
 * Whether one that is made now may know more than the layout at hand. One for the version only is second to one that
 * can be made of the file's own debug info: that has the torn windows, too. One that was made for this very build, by
 * an rbdump that did not look for all that this one reads, is second to any.
 */
static bool is_second(const struct session *session)
{
	const struct layout *layout = session->layout.layout;

	if (session->layout.source == LAYOUT_BY_VERSION)
		return module_has_debug_info(session->module);
	return layout->asked && strcmp(layout->asked, LAYOUT_FIELDS_ASKED) != 0;
}

/* Finds a layout that passes the self-test, and the trace that was seen through it; one that is made is kept. */
static struct error *find_and_look(struct session *session, struct trace **ret)
{
	struct layout_wish wish = {session->version[0] ? session->version : NULL, SESSION_ARCH,
				   session->module->build_id};
	struct error *error = NULL, *refusal = NULL, *why = NULL;
	bool generated = false;
	unsigned int tried = 0;

	if (session->offsets) {
		error = layout_find_given(session->offsets, &wish, &session->layout);
		if (!error)
			error = try_layout(session, session->offsets, &refusal, ret);
		return error || *ret ? error : refusal;
	}
	while (!error && !*ret && tried < KEPT_TRIES) {
		layout_found_clear(&session->layout);
		if (!layout_find_kept(&wish, tried, &session->layout))
			break;
		if (!generated && is_second(session)) {
			generated = true;
			error = try_generated(session, &wish, &why, &refusal, ret);
			continue;
		}
		tried++;
		error = try_layout(session, session->layout.file, &refusal, ret);
	}
	if (!error && !*ret && !generated)
		error = try_generated(session, &wish, &why, &refusal, ret);
	if (!error && !*ret && !refusal)
		error = why ? no_layout(session, &wish, why) : error_no_memory();
	error_destroy(why);
	if (error || *ret) {
		error_destroy(refusal);
		return error;
	}
	return refusal;
}

/* A NUL-terminated string of the target. */
static void read_string(struct memory *memory, uint64_t address, char *buffer, size_t size)
{
	size_t length = 0;

	if (address != 0)
		while (length < size - 1 && memory_read(memory, address + length, buffer + length, 1) &&
		       buffer[length] != '\0')
			length++;
	buffer[length] = '\0';
}

static bool in_other_pid_namespace(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &theirs) != 0 || stat("/proc/self/ns/pid", &ours) != 0 || theirs.st_ino != ours.st_ino;
}

/*
 * Looking for debug info can take long: a server may be asked for it, and a file of the target's own may be anything.
 * Nothing is held up by that but rbdump itself; and it does not wait for ever.
 */
#define TIME_LIMIT_S 120

static void out_of_time(int signal)
{
	static const char message[] =
	    "rbdump: nothing to show after two minutes; looking for debug info takes too long\n";
	ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)signal;
	(void)written;
	_exit(EXIT_FAILED);
}

/*
 * Checks what a core says of its version, and what the user says. A core says nothing if the file is missing that the
 * string is in.
 */
static struct error *settle_version(struct session *session, const char *given)
{
	if (!given)
		return NULL;
	if (session->version[0] != '\0' && strcmp(session->version, given) != 0)
		return error_create(EXIT_FAILED, "the core is of Ruby %s, not of %s", session->version, given);
	snprintf(session->version, sizeof(session->version), "%s", given);
	return NULL;
}

/*
 * Goes on from a target that is open.
 *   ruby_version  what the user says of a core; NULL
 */
static struct error *open_session(struct session *session, const char *ruby_version, struct trace **trace)
{
	struct error *error = module_find_ruby(session->target, &session->module);

	if (error)
		return error;
	roots_from_module(session->module, &session->module_roots);
	session->memory = memory_create(target_read_pages, session->target, SESSION_PAGES);
	if (!session->memory)
		return error_no_memory();
	read_string(session->memory, session->module_roots.version, session->version, sizeof(session->version));
	read_string(session->memory, session->module_roots.description, session->description,
		    sizeof(session->description));
	if (session->version[0] == '\0')
		ruby_file_version(session->description, session->version, sizeof(session->version));
	if (session->target->kind == TARGET_CORE)
		error = settle_version(session, ruby_version);
	else if (session->version[0] == '\0')
		error = diagnose_refusal("/proc", session->target->pid, EPERM);
	if (!error)
		error = find_and_look(session, trace);
	if (!error && !*trace)
		error = error_no_memory();
	return error;
}

/* Hands a session over, or closes it if there was an error. */
static struct error *finish(struct session *session, struct error *error, struct session **ret)
{
	if (error)
		session_close(session);
	else
		*ret = session;
	return error;
}

struct error *session_open(pid_t pid, const struct session_options *options, struct session **ret, struct trace **trace)
{
	struct session *session = calloc(1, sizeof(*session));
	struct error *error;

	*trace = NULL;
	if (!session)
		return error_no_memory();
	session->no_stop = options->no_stop;
	session->offsets = options->offsets;
	signal(SIGALRM, out_of_time);
	alarm(TIME_LIMIT_S);
	error = live_open(pid, &session->target);
	if (!error) {
		session->foreign_pids = in_other_pid_namespace(session->target->pid);
		error = open_session(session, NULL, trace);
	}
	alarm(0);
	return finish(session, error, ret);
}

struct error *session_open_core(const struct session_core_options *options, struct session **ret, struct trace **trace)
{
	struct session *session = calloc(1, sizeof(*session));
	struct error *error;

	*trace = NULL;
	if (!session)
		return error_no_memory();
	session->offsets = options->offsets;
	/* However long it takes to unpack one: its length is limited. */
	error = core_open(&options->core, &session->target);
	if (!error) {
		signal(SIGALRM, out_of_time);
		alarm(TIME_LIMIT_S);
		error = open_session(session, options->ruby_version, trace);
		alarm(0);
	}
	return finish(session, error, ret);
}

void session_close(struct session *session)
{
	if (!session)
		return;
	layout_found_clear(&session->layout);
	memory_destroy(session->memory);
	module_close(session->module);
	target_close(session->target);
	free(session);
}
