#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/code.h"
#include "ruby/context.h"
#include "ruby/environment.h"
#include "ruby/heap_roots_parts.h"

/* How many frames are read in all, and of one stack. */
#define FRAMES_MAX (1u << 20)
#define DEPTH_MAX  100000u

/* The largest native stack that is looked at. */
#define NATIVE_MAX (UINT64_C(256) << 20)

/*
 * A function that calls no other one may use so many bytes below the stack pointer (System V ABI for AMD64, 3.2.2). A
 * fiber that is left has its registers there (coroutine/amd64/Context.S).
 */
#define RED_ZONE 128

static bool is_on_stack(const struct stack *stack, uint64_t address)
{
	return address - stack->facts.vm_stack < stack->facts.words * 8;
}

/* How many local variables a frame has; 0 if that is not known. */
static uint64_t count_locals(struct access *access, const struct frame *frame)
{
	if (frame->kind != FRAME_RUBY || !layout_has(access->layout, F_body_local_table_size))
		return 0;
	return access_member(access, code_body(access, value_object(access, frame->iseq)), F_body_local_table_size);
}

/*
 * Where the local variables of a frame are. If its environment was moved to the heap, only copies of them are left on
 * the stack. They begin behind what the older frame uses (vm_insnhelper.c, vm_push_frame).
 */
static struct heap_stack_words words_of(const struct ruby *ruby, const struct stack *stack, size_t index)
{
	struct access access = ruby_access(ruby);
	const struct frame *frame = &stack->frames[index];
	const uint64_t ep = access_member(&access, frame->cfp, F_cfp_ep);
	const uint64_t count = count_locals(&access, frame);
	uint64_t start = ep - ENVIRONMENT_BEFORE - count * 8;

	/* Up to 2.3 an environment has other words behind the variables. */
	if (!access.failed && !layout_has(ruby->layout, F_cfp_flag) && is_on_stack(stack, ep) &&
	    count <= stack->facts.words && is_on_stack(stack, start))
		return (struct heap_stack_words){start, count};
	access = ruby_access(ruby);
	start = stack->facts.vm_stack;
	if (index + 1 < stack->nr_frames && layout_has(ruby->layout, F_cfp_sp))
		start = access_member(&access, stack->frames[index + 1].cfp, F_cfp_sp);
	return (struct heap_stack_words){!access.failed && is_on_stack(stack, start) ? start : 0, 0};
}

static bool add_stack(struct heap_roots *roots, const struct heap_stack *from, uint64_t ec, uint64_t thread,
		      size_t *left)
{
	struct heap_stack stack = *from;

	if (!stack_walk(roots->ruby, ec, thread, *left < DEPTH_MAX ? *left : DEPTH_MAX, &stack.walked))
		return false;
	stack.words = calloc(stack.walked.nr_frames + 1, sizeof(*stack.words));
	if (!stack.words || !array_make_room(roots->stacks, roots->stacks_capacity, roots->nr_stacks + 1)) {
		free(stack.words);
		stack_clear(&stack.walked);
		return false;
	}
	for (size_t i = 0; i < stack.walked.nr_frames; i++)
		stack.words[i] = words_of(roots->ruby, &stack.walked, i);
	*left -= stack.walked.nr_frames;
	roots->stacks[roots->nr_stacks++] = stack;
	return true;
}

/*
 * The Fiber that must be alive so that the stack of a fiber is looked at; 0 if there is none. A thread keeps the fiber
 * that it began with, and those that have resumed the one that runs (vm.c, thread_mark; cont.c, fiber_mark).
 */
static uint64_t holder_of(struct heap_roots *roots, const struct ruby_fiber *fiber)
{
	struct access access = ruby_access(roots->ruby);
	uint64_t self;

	if (strcmp(fiber->state, "resumed") == 0 || !layout_has(roots->ruby->layout, F_fiber_self))
		return 0;
	if (layout_has(roots->ruby->layout, F_thread_root_fiber) &&
	    access_member(&access, fiber->thread, F_thread_root_fiber) == fiber->address)
		return 0;
	self = access_member(&access, fiber->address, F_fiber_self);
	return access.failed || !value_is_object(self) ? 0 : self;
}

static bool list_fibers(struct heap_roots *roots, memory_source *source, void *context, struct ruby_fibers *ret)
{
	struct heap_finds found = {0};
	bool enough = fibers_list(roots->ruby, &roots->threads, &found, ret);
	const uint64_t type = enough ? ret->type : 0;

	if (type == 0)
		return enough;
	fibers_clear(ret);
	enough = heap_find(roots->ruby, source, context, type, &found) &&
		 fibers_list(roots->ruby, &roots->threads, &found, ret);
	heap_clear(&found);
	return enough;
}

static bool add_fibers(struct heap_roots *roots, const struct ruby_fibers *fibers, size_t *left)
{
	const struct context_members members = context_members(roots->ruby->layout);

	roots->incomplete |= fibers->missing != LIST_COMPLETE;
	for (size_t i = 0; i < fibers->count; i++) {
		const struct ruby_fiber *fiber = &fibers->fibers[i];
		const struct heap_stack stack = {
		    .thread = fiber->thread_index,
		    .fiber = fiber->address,
		    .holder = holder_of(roots, fiber),
		};

		if (!layout_has(roots->ruby->layout, members.in_fiber) ||
		    !add_stack(roots, &stack, fiber->ec, fiber->thread, left))
			return false;
	}
	return true;
}

bool roots_read_stacks(struct heap_roots *roots, memory_source *source, void *context)
{
	const struct ruby_threads *threads = &roots->threads;
	struct ruby_fibers fibers;
	size_t left = FRAMES_MAX;
	bool enough;

	for (size_t i = 0; i < threads->count; i++) {
		const struct heap_stack stack = {.thread = i};

		if (threads->threads[i].ec != 0 &&
		    !add_stack(roots, &stack, threads->threads[i].ec, threads->threads[i].address, &left))
			return false;
	}
	if (!list_fibers(roots, source, context, &fibers))
		return false;
	enough = add_fibers(roots, &fibers, &left);
	fibers_clear(&fibers);
	return enough;
}

void roots_clear_stacks(struct heap_roots *roots)
{
	for (size_t i = 0; i < roots->nr_stacks; i++) {
		stack_clear(&roots->stacks[i].walked);
		free(roots->stacks[i].words);
	}
	free(roots->stacks);
	roots->stacks = NULL;
	roots->nr_stacks = 0;
}

/* Gives the environment object behind an environment that is on the heap. */
static void give_environment(struct roots_walk *walk, const struct stack *stack, uint64_t word, uint64_t ep)
{
	struct access access = walk->access;
	uint64_t object;

	if (ep == 0 || ep % 8 != 0 || is_on_stack(stack, ep))
		return;
	object = access_word(&access, ep + ENVIRONMENT_ENV * 8);
	if (!access.failed)
		roots_give(walk, word, object);
}

/* What a frame keeps: its own environment, and the enclosing one. Any of them can have been moved to the heap. */
static void give_environments(struct roots_walk *walk, const struct stack *stack, uint64_t cfp)
{
	struct access access = walk->access;
	const uint64_t word = access_address(&access, cfp, F_cfp_ep), ep = access_word(&access, word);
	const bool short_one = layout_has(access.layout, F_cfp_flag);
	const uint64_t previous = access_word(&access, short_one ? ep : ep + (uint64_t)ENVIRONMENT_SPECVAL * 8);

	if (access.failed)
		return;
	give_environment(walk, stack, word, ep);
	give_environment(walk, stack, word, environment_previous(previous));
}

static void give_vm_stack(struct roots_walk *walk, const struct stack *stack)
{
	const struct layout *layout = walk->access.layout;
	const uint64_t start = stack->facts.vm_stack, end = start + stack->facts.words * 8;
	uint64_t top = stack->facts.cfp;

	if (!stack->started)
		return;
	if (stack->nr_frames == 0) {
		roots_lack(walk);
		return;
	}
	if (layout_has(layout, F_cfp_sp))
		top = access_member(&walk->access, stack->facts.cfp, F_cfp_sp);
	/* While a frame is being made, its sp is not yet set. */
	if (walk->access.failed || top < start || top > stack->facts.cfp)
		top = stack->facts.cfp;
	walk->access.failed = false;
	roots_begin(walk, ROOT_VM_STACK, REF_EXACT, 0);
	roots_scan(walk, start, top);
	roots_begin(walk, ROOT_FRAME, REF_EXACT, 0);
	roots_scan(walk, stack->facts.cfp, end);
	for (size_t i = 0; i < stack->nr_frames; i++)
		give_environments(walk, stack, stack->frames[i].cfp);
}

/* The stack pointer of the native thread that runs a thread; 0 if it is not known. */
static uint64_t stack_pointer(const struct roots_walk *walk, const struct ruby_thread *thread)
{
	const struct target *target = walk->roots->module->target;

	for (size_t i = 0; thread->pthread != 0 && i < target->nr_threads; i++)
		if (target->threads[i].fs_base == thread->pthread)
			return target->threads[i].sp;
	return 0;
}

/*
 * The native stack of a thread. A thread notes how far its stack goes when it gives up the GVL. In between, only the
 * stack pointer tells. The stack grows downwards.
 */
static bool read_thread_stack(struct roots_walk *walk, const struct heap_stack *stack, uint64_t *low, uint64_t *high)
{
	const bool in_ec = layout_has(walk->access.layout, F_thread_ec);
	const enum layout_member_id start = in_ec ? F_ec_machine_start : F_thread_machine_start;
	const enum layout_member_id end = in_ec ? F_ec_machine_end : F_thread_machine_end;
	const struct ruby_threads *threads = &walk->roots->threads;
	uint64_t pointer = 0;

	if (!layout_has(walk->access.layout, start) || !layout_has(walk->access.layout, end))
		return false;
	*high = access_member(&walk->access, stack->walked.ec, start);
	*low = access_member(&walk->access, stack->walked.ec, end);
	if (stack->fiber == 0 && stack->thread < threads->count)
		pointer = stack_pointer(walk, &threads->threads[stack->thread]);
	/* It can also be on a stack for signals. */
	if (pointer != 0 && pointer < *high && *high - pointer <= NATIVE_MAX)
		*low = pointer;
	return true;
}

/*
 * The native stack of a fiber that is not running: where it is, and how large it is (cont.c, v1_9_3_0 to v4.0.5 and
 * head: fiber_setcontext, cont_save_machine_stack). Up to 3.3, its execution context does not tell.
 */
static bool read_fiber_stack(struct roots_walk *walk, const struct heap_stack *stack, uint64_t *low, uint64_t *high)
{
	uint64_t words;

	if (!layout_has(walk->access.layout, F_fiber_native) || !layout_has(walk->access.layout, F_fiber_native_size))
		return false;
	*low = access_member(&walk->access, stack->fiber, F_fiber_native);
	words = access_member(&walk->access, stack->fiber, F_fiber_native_size);
	*high = words <= NATIVE_MAX / 8 ? *low + words * 8 : 0;
	return true;
}

static void give_native_stack(struct roots_walk *walk, const struct heap_stack *stack)
{
	uint64_t low = 0, high = 0;
	const bool known = stack->fiber != 0 ? read_fiber_stack(walk, stack, &low, &high)
					     : read_thread_stack(walk, stack, &low, &high);

	if (!known || walk->access.failed) {
		roots_lack(walk);
		return;
	}
	/* A thread that has not begun, or has ended. */
	if (high == 0 && low == 0)
		return;
	if (low < RED_ZONE || low > high || high - low > NATIVE_MAX) {
		roots_lack(walk);
		return;
	}
	roots_begin(walk, ROOT_NATIVE_STACK, REF_CONSERVATIVE, 0);
	roots_scan(walk, low - RED_ZONE, high);
}

static void give_storage(struct roots_walk *walk, uint64_t ec)
{
	const struct layout *layout = walk->access.layout;
	const enum layout_member_id id = layout_has(layout, F_thread_ec) ? F_ec_local_storage : F_thread_local_storage;
	uint64_t table;

	if (!layout_has(layout, id))
		return;
	table = access_member(&walk->access, ec, id);
	if (walk->access.failed) {
		roots_lack(walk);
		return;
	}
	roots_begin(walk, ROOT_STORAGE, REF_EXACT, 0);
	/* vm_core.h, rb_execution_context_t.local_storage: a rb_id_table since v3_0_0, the release that has brought
	 * ractors. */
	if (layout_has(layout, F_vm_ractors))
		roots_give_id_table(walk, table);
	else
		roots_give_st(walk, table);
}

/* The Fiber, its block, and what else a rb_fiber_t has around its execution context. */
static void give_fiber(struct roots_walk *walk, const struct heap_stack *stack)
{
	const struct layout *layout = walk->access.layout;
	const uint64_t fiber = heap_stack_fiber(walk->roots, stack),
		       end = fiber + (uint64_t)layout->sizes[S_fiber].value;
	const uint64_t ec = stack->walked.ec, behind = ec + (uint64_t)layout->sizes[S_ec].value;

	if (fiber == 0 || !layout->sizes[S_fiber].present)
		return;
	roots_begin(walk, ROOT_FIBER, REF_CONSERVATIVE, 0);
	if (!layout->sizes[S_ec].present || ec < fiber || behind > end) {
		roots_scan(walk, fiber, end);
		return;
	}
	roots_scan(walk, fiber, ec);
	roots_scan(walk, behind, end);
}

static void give_stack(struct roots_walk *walk, const struct heap_stack *stack)
{
	const struct ruby_threads *threads = &walk->roots->threads;

	if (stack->fiber == 0 && stack->thread < threads->count) {
		roots_begin(walk, ROOT_THREAD, REF_CONSERVATIVE, 0);
		roots_scan_struct(walk, threads->threads[stack->thread].address, S_thread);
	}
	if (layout_has(walk->access.layout, F_thread_ec)) {
		roots_begin(walk, ROOT_CONTEXT, REF_CONSERVATIVE, 0);
		roots_scan_struct(walk, stack->walked.ec, S_ec);
	}
	give_fiber(walk, stack);
	give_vm_stack(walk, &stack->walked);
	give_native_stack(walk, stack);
	give_storage(walk, stack->walked.ec);
}

void roots_give_stacks(struct roots_walk *walk)
{
	for (size_t i = 0; i < walk->roots->nr_stacks; i++) {
		walk->root.stack = i;
		walk->root.holder = walk->roots->stacks[i].holder;
		give_stack(walk, &walk->roots->stacks[i]);
	}
	walk->root.stack = HEAP_ROOT_NO_STACK;
	walk->root.holder = 0;
}
