#include "mixed/describe.h"

#include <stdlib.h>

#include "ruby/machine.h"

void merge_facts_clear(struct merge_facts *facts)
{
	facts->loop = 0;
	addresses_clear(&facts->calls_c);
	addresses_clear(&facts->calls_loop);
}

/* Finds the function that interprets code, by the code of the frames. */
static void find_loop(struct merge_facts *facts, const struct ruby *ruby, const struct stack *stack)
{
	const struct module_segment *whole = &facts->module->whole;

	for (size_t i = 0; i < stack->nr_frames && facts->loop == 0; i++) {
		struct access access = access_begin(facts->text, ruby->layout);
		struct machine_function function = {0};
		uint64_t instruction;

		if (stack->frames[i].kind != FRAME_RUBY)
			continue;
		instruction = machine_first_instruction(&access, stack->frames[i].iseq);
		if (!access.failed && instruction >= whole->start && instruction < whole->end)
			function = machine_code_function(facts->code, instruction);
		if (function.kind == MACHINE_CODE_OF_FILE)
			facts->loop = function.start;
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

static bool is_of_ruby(const struct merge_facts *facts, const struct machine_function *function)
{
	const struct module_segment *whole = &facts->module->whole;

	return function->kind == MACHINE_CODE_OF_FILE && function->start >= whole->start &&
	       function->start < whole->end;
}

/* vm_exec() alone calls the function that interprets code, unless that is a part of vm_exec() itself. */
static bool is_vm_exec(const struct merge_facts *facts, uint64_t function)
{
	return facts->calls_loop.count == 1 && addresses_have(&facts->calls_loop, function);
}

static void describe_functions(const struct merge_facts *facts, const struct native_walk *walk,
			       struct merge_function *ret)
{
	for (size_t i = walk->count; i-- > 0;) {
		const struct machine_function *function = &walk->of[i].function;
		const bool of_ruby = is_of_ruby(facts, function);

		ret[i] = (struct merge_function){
		    .start = function->start,
		    .interprets = of_ruby && (function->start == facts->loop || machine_interprets(function->name)),
		    .calls_c = of_ruby &&
			       (addresses_have(&facts->calls_c, function->start) || machine_calls_c(function->name)),
		    .executes = of_ruby && (is_vm_exec(facts, function->start) || machine_executes(function->name)),
		};
		/* JIT-compiled code that vm_exec() calls runs in place of the function that interprets code. */
		if (function->kind == MACHINE_CODE_GENERATED && i + 1 < walk->count)
			ret[i].interprets = !ret[i + 1].interprets;
	}
}

void described_clear(struct described *described)
{
	free(described->functions);
	free(described->frames);
}

bool describe(struct merge_facts *facts, const struct ruby *ruby, const struct native_walk *walk,
	      const struct stack *stack, struct described *ret)
{
	/* The mark that the native stack was lost has the place of a function. */
	ret->nr_functions = walk->count + (walk->lost != NULL);
	ret->functions = calloc(ret->nr_functions + 1, sizeof(*ret->functions));
	ret->frames = calloc(stack->nr_frames + 1, sizeof(*ret->frames));
	if (!ret->functions || !ret->frames)
		return false;
	find_loop(facts, ruby, stack);
	describe_frames(ruby, stack, ret->frames);
	describe_functions(facts, walk, ret->functions);
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
bool merge_facts_learn(struct merge_facts *facts, const struct ruby *ruby, const struct native_walk *walk,
		       const struct stack *stack)
{
	struct addresses implement = {0};
	struct described described = {0};
	bool enough = describe(facts, ruby, walk, stack, &described);

	for (size_t i = 0; i < stack->nr_frames && enough; i++)
		if (described.frames[i].function != 0)
			enough = addresses_add(&implement, described.frames[i].function);
	addresses_sort(&implement);
	for (size_t i = 0; i + 1 < walk->count && enough; i++) {
		const struct merge_function *function = &described.functions[i], *caller = function + 1;

		if (!is_of_ruby(facts, &walk->of[i + 1].function) || caller->interprets)
			continue;
		if (addresses_have(&implement, function->start))
			enough = note_function(&facts->calls_c, caller->start);
		/* It also calls JIT-compiled code, but so may others. */
		if (function->interprets && walk->of[i].function.kind == MACHINE_CODE_OF_FILE)
			enough &= note_function(&facts->calls_loop, caller->start);
	}
	addresses_clear(&implement);
	described_clear(&described);
	return enough;
}
