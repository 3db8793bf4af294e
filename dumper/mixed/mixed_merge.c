/* Adds native frames to the stacks of Ruby's threads: see mixed.h. */
#include <stdlib.h>

#include "base/array.h"
#include "mixed/merge.h"
#include "mixed/mixed.h"
#include "mixed/mixed_parts.h"
#include "ruby/machine.h"

/* Finds the function that interprets code, by the code of the frames. */
static void find_loop(struct mixed *mixed, const struct ruby *ruby, const struct stack *stack)
{
	const struct module_segment *whole = &mixed->walker.module->whole;

	for (size_t i = 0; i < stack->nr_frames && mixed->loop == 0; i++) {
		struct access access = access_begin(mixed->walker.text, ruby->layout);
		struct machine_function function = {0};
		uint64_t instruction;

		if (stack->frames[i].kind != FRAME_RUBY)
			continue;
		instruction = machine_first_instruction(&access, stack->frames[i].iseq);
		if (!access.failed && instruction >= whole->start && instruction < whole->end)
			function = machine_code_function(mixed->walker.code, instruction);
		if (function.kind == MACHINE_CODE_OF_FILE)
			mixed->loop = function.start;
	}
}

static void describe_frames(const struct ruby *ruby, const struct stack *stack, struct merge_frame *ret)
{
	for (size_t i = 0; i < stack->nr_frames; i++) {
		const struct frame *frame = &stack->frames[i];
		struct access access = ruby_access(ruby);

		ret[i] = (struct merge_frame){.kind = MERGE_OTHER, .finish = frame->finish};
		if (frame->kind == FRAME_RUBY)
			ret[i].kind = MERGE_RUBY;
		if (frame->kind != FRAME_CFUNC)
			continue;
		ret[i].kind = MERGE_CFUNC;
		if (frame->method != 0 && layout_has(ruby->layout, F_mdef_iseq))
			ret[i].function = machine_implementation(&access, frame->method);
		if (access.failed)
			ret[i].function = 0;
	}
}

static bool is_of_ruby(const struct mixed *mixed, const struct machine_function *function)
{
	const struct module_segment *whole = &mixed->walker.module->whole;

	return function->kind == MACHINE_CODE_OF_FILE && function->start >= whole->start &&
	       function->start < whole->end;
}

/* vm_exec() alone calls the function that interprets code, unless that is a part of vm_exec() itself. */
static bool is_vm_exec(const struct mixed *mixed, uint64_t function)
{
	return mixed->calls_loop.count == 1 && addresses_have(&mixed->calls_loop, function);
}

static void describe_functions(const struct mixed *mixed, const struct native_walk *walk, struct merge_function *ret)
{
	for (size_t i = walk->count; i-- > 0;) {
		const struct machine_function *function = &walk->of[i].function;
		const bool of_ruby = is_of_ruby(mixed, function);

		ret[i] = (struct merge_function){
		    .start = function->start,
		    .interprets = of_ruby && (function->start == mixed->loop || machine_interprets(function->name)),
		    .calls_c = of_ruby &&
			       (addresses_have(&mixed->calls_c, function->start) || machine_calls_c(function->name)),
		    .executes = of_ruby && (is_vm_exec(mixed, function->start) || machine_executes(function->name)),
		};
		/* JIT-compiled code that vm_exec() calls runs in place of the function that interprets code. */
		if (function->kind == MACHINE_CODE_GENERATED && i + 1 < walk->count)
			ret[i].interprets = !ret[i + 1].interprets;
	}
}

/* Adds the next frame of Ruby. Returns false if there is not enough memory. */
static bool add_ruby(const struct trace_thread *thread, size_t *shown, size_t *places, struct frame_list *list)
{
	if (!array_make_room(list->of, list->capacity, list->count + 1))
		return false;
	places[*shown] = list->count;
	list->of[list->count++] = thread->frames[(*shown)++];
	return true;
}

/*
 * Adds the frames in their order.
 *   places  for each frame of Ruby, receives its index in the list
 */
static bool add_frames(struct mixed *mixed, const struct native_walk *walk, const struct stack *stack,
		       const struct merge_item *items, size_t count, struct trace *trace,
		       const struct trace_thread *thread, size_t *places, struct frame_list *list)
{
	size_t shown = 0; /* how many frames of Ruby are in the list */

	for (size_t i = 0; i < count; i++) {
		const struct merge_item *item = &items[i];

		if (!item->native) {
			/* Some control frames are not shown. */
			if (shown == thread->nr_frames ||
			    thread->frames[shown].address != stack->frames[item->index].cfp)
				continue;
			if (!add_ruby(thread, &shown, places, list))
				return false;
		} else if (mixed->options.which == MIXED_LAST && shown > 0) {
			continue;
		} else if (item->index == walk->count) {
			if (!native_names_add_lost(walk->lost, list))
				return false;
		} else if (!native_names_add(&mixed->names, &walk->of[item->index], mixed->options.inlines, trace,
					     list)) {
			return false;
		}
	}
	/* Frames can be in another order than control frames (resolve.h). */
	while (shown < thread->nr_frames)
		if (!add_ruby(thread, &shown, places, list))
			return false;
	return true;
}

/* Both stacks of a thread, described for merge_stacks(). */
struct described {
	struct merge_function *functions;
	size_t nr_functions;
	struct merge_frame *frames;
};

static void described_clear(struct described *described)
{
	free(described->functions);
	free(described->frames);
}

/* Returns false if there is not enough memory. The caller calls described_clear() in any case. */
static bool describe(struct mixed *mixed, const struct ruby *ruby, const struct native_walk *walk,
		     const struct stack *stack, struct described *ret)
{
	/* The mark that the native stack was lost has the place of a function. */
	ret->nr_functions = walk->count + (walk->lost != NULL);
	ret->functions = calloc(ret->nr_functions + 1, sizeof(*ret->functions));
	ret->frames = calloc(stack->nr_frames + 1, sizeof(*ret->frames));
	if (!ret->functions || !ret->frames)
		return false;
	find_loop(mixed, ruby, stack);
	describe_frames(ruby, stack, ret->frames);
	describe_functions(mixed, walk, ret->functions);
	return true;
}

/* Adds a function to a set, and sorts that. Returns false if there is not enough memory. */
static bool note_function(struct addresses *functions, uint64_t start)
{
	if (addresses_have(functions, start))
		return true;
	if (!addresses_add(functions, start))
		return false;
	addresses_sort(functions);
	return true;
}

/*
 * The caller of a function that implements a method is a function that calls methods in C, and the caller of the function
 * that interprets code is vm_exec(). That tells these functions in a file without symbols. Returns false if there is not
 * enough memory.
 */
static bool learn_calls(struct mixed *mixed, const struct ruby *ruby, const struct native_walk *walk,
			const struct stack *stack)
{
	struct addresses implement = {0};
	struct described described = {0};
	bool enough = describe(mixed, ruby, walk, stack, &described);

	for (size_t i = 0; i < stack->nr_frames && enough; i++)
		if (described.frames[i].function != 0)
			enough = addresses_add(&implement, described.frames[i].function);
	addresses_sort(&implement);
	for (size_t i = 0; i + 1 < walk->count && enough; i++) {
		const struct merge_function *function = &described.functions[i], *caller = function + 1;

		if (!is_of_ruby(mixed, &walk->of[i + 1].function) || caller->interprets)
			continue;
		if (addresses_have(&implement, function->start))
			enough = note_function(&mixed->calls_c, caller->start);
		/* It also calls JIT-compiled code, but so may others. */
		if (function->interprets && walk->of[i].function.kind == MACHINE_CODE_OF_FILE)
			enough &= note_function(&mixed->calls_loop, caller->start);
	}
	addresses_clear(&implement);
	described_clear(&described);
	return enough;
}

/*
 * Replaces the frames of a thread. What it holds refers to the frames that have locked that.
 *   places  for each frame that the thread had, its index in the list
 */
static void replace_frames(struct trace_thread *thread, const struct frame_list *list, const size_t *places)
{
	for (size_t i = 0; i < thread->nr_holds; i++)
		if (thread->holds[i].has_frame)
			thread->holds[i].frame = places[thread->holds[i].frame];
	free(thread->frames);
	thread->frames = list->of;
	thread->nr_frames = list->count;
}

/* Replaces the frames of a thread with the merged ones. Returns false if there is not enough memory. */
static bool merge(struct mixed *mixed, const struct ruby *ruby, const struct native_walk *walk,
		  const struct stack *stack, struct trace *trace, struct trace_thread *thread)
{
	struct described described = {0};
	struct frame_list list = {0};
	struct merge_item *items = NULL;
	size_t *places = calloc(thread->nr_frames + 1, sizeof(*places));
	bool enough = describe(mixed, ruby, walk, stack, &described);
	const size_t count = described.nr_functions + stack->nr_frames;

	if (enough)
		items = calloc(count + 1, sizeof(*items));
	if (items && places) {
		thread->unplaced = !merge_stacks(described.functions, described.nr_functions, described.frames,
						 stack->nr_frames, !walk->lost, items);
		enough = add_frames(mixed, walk, stack, items, count, trace, thread, places, &list);
	}
	enough &= items && places;
	if (enough)
		replace_frames(thread, &list, places);
	else
		free(list.of);
	described_clear(&described);
	free(places);
	free(items);
	return enough;
}

/* The index of a native thread. SIZE_MAX if it is not known. */
static size_t index_of(const struct mixed *mixed, pid_t tid)
{
	const struct target *target = mixed->walker.target;

	for (size_t i = 0; tid != 0 && i < target->nr_threads; i++)
		if (target->threads[i].tid == tid)
			return i;
	return SIZE_MAX;
}

/* Unwinds the native stack of a thread or fiber of Ruby. Returns false if there is not enough memory. */
static bool walk_one(struct mixed *mixed, const struct ruby *ruby, const struct trace_thread *thread,
		     struct native_walk *ret)
{
	const size_t index = index_of(mixed, thread->tid);
	bool enough = true;

	*ret = (struct native_walk){0};
	if (thread->suspended)
		enough = mixed_walk_fiber(mixed, ruby, thread->fiber, ret);
	else if (index != SIZE_MAX)
		enough = mixed_walk_thread(mixed, index, ret);
	else
		ret->lost = "the native thread is not known";
	return enough;
}

/* Unwinds all, and learns from all of them before the first is merged. Returns false if there is not enough memory. */
static bool merge_all(struct mixed *mixed, const struct ruby *ruby, const struct stack *stacks, struct trace *trace)
{
	struct native_walk *walks = calloc(trace->nr_threads + 1, sizeof(*walks));
	bool enough;

	/* Of a core, several layouts may be tried. */
	mixed->loop = 0;
	addresses_clear(&mixed->calls_loop);
	mixed->functions_left = MIXED_FUNCTIONS_MAX;
	enough = walks && mixed_note_vm_stacks(mixed, stacks, trace->nr_threads);

	for (size_t i = 0; i < trace->nr_threads && enough; i++)
		enough = walk_one(mixed, ruby, &trace->threads[i], &walks[i]) &&
			 learn_calls(mixed, ruby, &walks[i], &stacks[i]);
	for (size_t i = 0; i < trace->nr_threads && enough; i++)
		enough = merge(mixed, ruby, &walks[i], &stacks[i], trace, &trace->threads[i]);
	for (size_t i = 0; walks && i < trace->nr_threads; i++)
		native_walk_clear(&walks[i]);
	free(walks);
	return enough;
}

struct error *mixed_merge(struct mixed *mixed, const struct ruby *ruby, const struct stack *stacks, struct trace *trace)
{
	const enum memory_kind kind = memory_reads(ruby->memory, MEMORY_LASTS);
	const bool enough = merge_all(mixed, ruby, stacks, trace);

	memory_reads(ruby->memory, kind);
	return enough ? NULL : error_no_memory();
}
