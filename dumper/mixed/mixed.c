#include "mixed/mixed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "mixed/merge.h"
#include "mixed/native_names.h"
#include "mixed/sleepers.h"
#include "ruby/machine.h"
#include "target/stopping.h"

/* How many pages of instructions are kept at a time. */
#define TEXT_PAGES 256u

/* How many more threads may begin between the preparation and the pause. */
#define NEW_THREADS 64u

/* The maximum number of native functions in a trace. */
#define FUNCTIONS_MAX 262144u

struct mixed {
	struct mixed_options options;
	struct native_walker walker;
	struct symbolizer *symbolizer;
	uint64_t loop; /* where the function that interprets code begins; 0: not known */
	size_t functions_left;
	size_t nr_copied;	      /* how many threads were copied */
	struct address_map vm_stacks; /* from the start of a VM stack to its end */
	struct address_map of_fibers; /* from an rb_fiber_t to its index in `fibers` */
	uint64_t *fibers;	      /* the suspended fibers whose stacks were copied after those of the threads */
	size_t nr_fibers, fibers_capacity;
	struct addresses calls_c; /* functions that call methods in C */
};

struct error *mixed_create(const struct mixed_options *options, struct target *target, const struct module *module,
			   struct mixed **ret)
{
	struct mixed *mixed = calloc(1, sizeof(*mixed));
	struct native_walker *walker;
	struct error *error;

	if (!mixed)
		return error_no_memory();
	mixed->options = *options;
	mixed->functions_left = FUNCTIONS_MAX;
	walker = &mixed->walker;
	walker->target = target;
	walker->module = module;
	error = target->operations->runs ? machine_code_open(target->pid, &walker->code)
					 : machine_code_of_target(target, &walker->code);
	if (!error)
		error = target->operations->runs ? symbolizer_open(target->pid, &mixed->symbolizer)
						 : symbolizer_of_core(target, &mixed->symbolizer);
	if (!error) {
		walker->unwinder = unwinder_create(walker->code);
		walker->stacks = native_stacks_create();
		walker->text = memory_create(target_read_pages, target, TEXT_PAGES);
		if (!walker->unwinder || !walker->text || !walker->stacks || !native_stacks_prepare(walker->stacks, 1))
			error = error_no_memory();
	}
	if (error) {
		mixed_destroy(mixed);
		return error;
	}
	memory_recycle(walker->text);
	*ret = mixed;
	return NULL;
}

void mixed_destroy(struct mixed *mixed)
{
	if (!mixed)
		return;
	memory_destroy(mixed->walker.text);
	native_stacks_destroy(mixed->walker.stacks);
	unwinder_destroy(mixed->walker.unwinder);
	machine_code_close(mixed->walker.code);
	symbolizer_close(mixed->symbolizer);
	address_map_clear(&mixed->vm_stacks);
	address_map_clear(&mixed->of_fibers);
	addresses_clear(&mixed->calls_c);
	free(mixed->fibers);
	free(mixed);
}

/* ---- copies */

/* Notes where the VM stacks are, because native stacks can contain them. Returns false if there is not enough memory. */
static bool note_vm_stacks(struct mixed *mixed, const struct stack *stacks, size_t count)
{
	bool enough = true;

	address_map_clear(&mixed->vm_stacks);
	for (size_t i = 0; i < count && enough; i++) {
		const struct stack_facts *facts = &stacks[i].facts;
		uint64_t length, end;

		if (!stacks[i].started || __builtin_mul_overflow(facts->words, 8, &length) ||
		    __builtin_add_overflow(facts->vm_stack, length, &end))
			continue;
		enough = address_map_add(&mixed->vm_stacks, facts->vm_stack, end);
	}
	address_map_sort(&mixed->vm_stacks);
	native_stacks_omit(mixed->walker.stacks, &mixed->vm_stacks);
	return enough;
}

/* Notes the fibers, and which copy each of them will have. Returns false if there is not enough memory. */
static bool note_fibers(struct mixed *mixed, const struct ruby_fibers *fibers)
{
	if (!array_make_room(mixed->fibers, mixed->fibers_capacity, fibers->count))
		return false;
	mixed->nr_fibers = fibers->count;
	address_map_clear(&mixed->of_fibers);
	for (size_t i = 0; i < fibers->count; i++) {
		mixed->fibers[i] = fibers->fibers[i].address;
		if (!address_map_add(&mixed->of_fibers, mixed->fibers[i], i))
			return false;
	}
	address_map_sort(&mixed->of_fibers);
	return true;
}

bool mixed_prepare(struct mixed *mixed, const struct ruby_fibers *fibers, const struct stack *stacks, size_t nr_stacks)
{
	struct target *target = mixed->walker.target;
	size_t nr_threads = 0;
	pid_t *tids;

	if (!note_vm_stacks(mixed, stacks, nr_stacks) || !note_fibers(mixed, fibers) ||
	    !sleepers_choose(&mixed->walker))
		return false;
	/* Stacks may be in memory that is new. */
	if (target->operations->update_mappings)
		target->operations->update_mappings(target);
	tids = live_list_threads(target->pid, &nr_threads);
	free(tids);
	return native_stacks_prepare(mixed->walker.stacks, nr_threads + NEW_THREADS + fibers->count);
}

static uint64_t stack_pointer(const struct thread_registers *registers)
{
	return registers->known >> UNWIND_RSP & 1 ? registers->of[UNWIND_RSP] : 0;
}

/* The stack pointer that a fiber had when it was left; 0 if not known. */
static uint64_t end_of_fiber(const struct ruby *ruby, uint64_t fiber)
{
	struct access access = ruby_access(ruby);
	const uint64_t end =
	    layout_has(ruby->layout, F_fiber_native) ? access_member(&access, fiber, F_fiber_native) : 0;

	return access.failed ? 0 : end;
}

/* coroutine_transfer() has pushed seven words below that. */
static uint64_t sp_of_left(uint64_t end)
{
	return end > 64 ? end - 64 : 0;
}

void mixed_copy(struct mixed *mixed, const struct ruby *ruby)
{
	const struct target *target = mixed->walker.target;
	struct native_stacks *stacks = mixed->walker.stacks;

	native_stacks_forget(stacks);
	mixed->nr_copied = target->nr_threads;
	for (size_t i = 0; i < target->nr_threads; i++)
		native_stacks_want(stacks, target, stack_pointer(&target->threads[i].registers));
	for (size_t i = 0; i < mixed->nr_fibers; i++)
		native_stacks_want(stacks, target, sp_of_left(end_of_fiber(ruby, mixed->fibers[i])));
	native_stacks_copy(stacks, target);
}

/* ---- native stacks */

/*
 * The copy of a stack.
 *   index  of the copy that was made while the process was stopped
 *   sp     of a core: where the stack begins
 */
static struct native_stack stack_copy(struct mixed *mixed, size_t index, uint64_t sp)
{
	struct native_stacks *stacks = mixed->walker.stacks;

	if (mixed->walker.target->operations->runs)
		return native_stacks_of(stacks, index);
	native_stacks_forget(stacks);
	native_stacks_want(stacks, mixed->walker.target, sp);
	native_stacks_copy(stacks, mixed->walker.target);
	return native_stacks_of(stacks, 0);
}

/* Unwinds the stack of a native thread. Returns false if there is not enough memory. */
static bool walk_thread(struct mixed *mixed, size_t index, struct native_walk *ret)
{
	const struct native_thread *thread = &mixed->walker.target->threads[index];
	const struct thread_registers *registers = &thread->registers;
	struct native_stack stack;

	*ret = (struct native_walk){0};
	if (registers->known == 0) {
		ret->lost = thread->refused ? "the kernel refused to stop the thread" : "the thread did not stop";
		return true;
	}
	stack = stack_copy(mixed, index, stack_pointer(registers));
	return native_walk(&mixed->walker, registers, false, &stack, ret);
}

/* The same for a suspended fiber. */
static bool walk_fiber(struct mixed *mixed, const struct ruby *ruby, uint64_t fiber, struct native_walk *ret)
{
	const uint64_t end = end_of_fiber(ruby, fiber), *index = address_map_find(&mixed->of_fibers, fiber);
	struct native_stack stack;

	stack = stack_copy(mixed, index ? mixed->nr_copied + *index : SIZE_MAX, sp_of_left(end));
	return native_walk_fiber(&mixed->walker, end, &stack, ret);
}

/* ---- merging */

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
		};
		/* JIT-compiled code that vm_exec() calls runs in place of the function that interprets code. */
		if (function->kind == MACHINE_CODE_GENERATED && i + 1 < walk->count)
			ret[i].interprets = !ret[i + 1].interprets;
	}
}

/* Adds the frames in their order. */
static bool add_frames(struct mixed *mixed, const struct native_walk *walk, const struct stack *stack,
		       const struct merge_item *items, size_t count, struct trace *trace, struct trace_thread *thread,
		       struct frame_list *list)
{
	size_t shown = 0; /* how many frames of Ruby are in the list */

	for (size_t i = 0; i < count; i++) {
		const struct merge_item *item = &items[i];

		if (!item->native) {
			/* Some control frames are not shown. */
			if (shown == thread->nr_frames ||
			    thread->frames[shown].address != stack->frames[item->index].cfp)
				continue;
			if (!array_make_room(list->of, list->capacity, list->count + 1))
				return false;
			list->of[list->count++] = thread->frames[shown++];
		} else if (mixed->options.which == MIXED_LAST && shown > 0) {
			continue;
		} else if (item->index == walk->count) {
			if (!native_names_add_lost(walk->lost, list))
				return false;
		} else if (!native_names_add(mixed->symbolizer, &walk->of[item->index], mixed->options.inlines, trace,
					     list)) {
			return false;
		}
	}
	/* Frames can be in another order than control frames (resolve.h). */
	for (; shown < thread->nr_frames; shown++) {
		if (!array_make_room(list->of, list->capacity, list->count + 1))
			return false;
		list->of[list->count++] = thread->frames[shown];
	}
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

/*
 * The caller of a function that implements a method is a function that calls methods in C. That tells these functions in
 * a file without symbols. Returns false if there is not enough memory.
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
	for (size_t i = 0; i + 1 < walk->count && enough; i++)
		if (addresses_have(&implement, described.functions[i].start) &&
		    !described.functions[i + 1].interprets && is_of_ruby(mixed, &walk->of[i + 1].function) &&
		    !addresses_have(&mixed->calls_c, described.functions[i + 1].start)) {
			enough = addresses_add(&mixed->calls_c, described.functions[i + 1].start);
			addresses_sort(&mixed->calls_c);
		}
	addresses_clear(&implement);
	described_clear(&described);
	return enough;
}

/* Replaces the frames of a thread with the merged ones. Returns false if there is not enough memory. */
static bool merge(struct mixed *mixed, const struct ruby *ruby, const struct native_walk *walk,
		  const struct stack *stack, struct trace *trace, struct trace_thread *thread)
{
	struct described described = {0};
	struct frame_list list = {0};
	struct merge_item *items = NULL;
	bool enough = describe(mixed, ruby, walk, stack, &described);
	const size_t count = described.nr_functions + stack->nr_frames;

	if (enough)
		items = calloc(count + 1, sizeof(*items));
	if (items) {
		thread->unplaced = !merge_stacks(described.functions, described.nr_functions, described.frames,
						 stack->nr_frames, !walk->lost, items);
		enough = add_frames(mixed, walk, stack, items, count, trace, thread, &list);
	}
	enough &= items != NULL;
	described_clear(&described);
	free(items);
	if (!enough) {
		free(list.of);
		return false;
	}
	free(thread->frames);
	thread->frames = list.of;
	thread->nr_frames = list.count;
	return true;
}

/* Takes the functions of a stack from the number that a trace may have. */
static void limit(struct mixed *mixed, struct native_walk *walk)
{
	if (walk->count > mixed->functions_left) {
		walk->count = mixed->functions_left;
		walk->lost = "the native stacks have too many frames";
	}
	mixed->functions_left -= walk->count;
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
		enough = walk_fiber(mixed, ruby, thread->fiber, ret);
	else if (index != SIZE_MAX)
		enough = walk_thread(mixed, index, ret);
	else
		ret->lost = "the native thread is not known";
	limit(mixed, ret);
	return enough;
}

/* Unwinds all, and learns from all of them before the first is merged. Returns false if there is not enough memory. */
static bool merge_all(struct mixed *mixed, const struct ruby *ruby, const struct stack *stacks, struct trace *trace)
{
	struct native_walk *walks = calloc(trace->nr_threads + 1, sizeof(*walks));
	bool enough = walks && note_vm_stacks(mixed, stacks, trace->nr_threads);

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

/* ---- native threads that Ruby does not know */

/* The kernel's name of a thread, owned by the trace. NULL if it is not known. */
static const char *name_of(const struct target *target, pid_t tid, struct trace *trace)
{
	char path[64], name[64] = "";
	struct text text = {0};
	const char *kept = NULL;
	size_t length = 0;
	FILE *file;

	if (!target->operations->runs)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", target->pid, tid);
	file = fopen(path, "re");
	if (file) {
		length = fread(name, 1, sizeof(name) - 1, file);
		fclose(file);
	}
	if (length > 0 && name[length - 1] == '\n')
		length--;
	text_add(&text, name, length);
	if (length > 0 && !text.failed)
		kept = trace_string(trace, text.data);
	text_clear(&text);
	return kept;
}

/* Adds one native thread. Returns false if there is not enough memory. */
static bool add_other(struct mixed *mixed, size_t index, struct trace *trace)
{
	const pid_t tid = mixed->walker.target->threads[index].tid;
	struct trace_thread *threads = reallocarray(trace->threads, trace->nr_threads + 1, sizeof(*threads));
	static const struct stack no_stack;
	struct native_walk walk;
	bool enough;

	if (!threads)
		return false;
	trace->threads = threads;
	threads[trace->nr_threads] = (struct trace_thread){
	    .tid = tid,
	    .native = true,
	    .name = name_of(mixed->walker.target, tid, trace),
	};
	enough = walk_thread(mixed, index, &walk);
	if (enough) {
		limit(mixed, &walk);
		enough = merge(mixed, NULL, &walk, &no_stack, trace, &threads[trace->nr_threads]);
	}
	native_walk_clear(&walk);
	trace->nr_threads += enough;
	return enough;
}

struct error *mixed_add_others(struct mixed *mixed, struct trace *trace)
{
	const struct target *target = mixed->walker.target;
	struct addresses known = {0};
	bool enough = true;

	if (mixed->options.which != MIXED_ALL)
		return NULL;
	for (size_t i = 0; i < trace->nr_threads && enough; i++)
		enough = addresses_add(&known, (uint64_t)trace->threads[i].tid);
	addresses_sort(&known);
	for (size_t i = 0; i < target->nr_threads && enough; i++)
		if (!addresses_have(&known, (uint64_t)target->threads[i].tid))
			enough = add_other(mixed, i, trace);
	addresses_clear(&known);
	return enough ? NULL : error_no_memory();
}
