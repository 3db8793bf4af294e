#include "sampling/mixed_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "mixed/describe.h"

/* How many pages of instructions, and of Ruby's objects, are kept at a time. */
#define TEXT_PAGES   256u
#define OBJECT_PAGES 256u

struct mixed_stacks {
	const struct session *session;
	struct native_walker walker;
	struct merge_facts facts;
	struct memory *objects; /* of methods and code; renewed after a collection, which may have freed some */
	uint64_t collections;
	struct native_walk walk; /* of the last sample */
	struct mixed_stack stack;
};

struct error *mixed_stacks_create(const struct session *session, struct mixed_stacks **ret)
{
	struct mixed_stacks *stacks = calloc(1, sizeof(*stacks));
	struct native_walker *walker;
	struct error *error;

	if (!stacks)
		return error_no_memory();
	stacks->session = session;
	walker = &stacks->walker;
	walker->target = session->target;
	walker->module = session->module;
	error = machine_code_open(session->target->pid, &walker->code);
	if (!error) {
		walker->unwinder = unwinder_create(walker->code);
		walker->text = memory_create(target_read_pages, session->target, TEXT_PAGES);
		error = walker->unwinder && walker->text ? NULL : error_no_memory();
	}
	if (error) {
		mixed_stacks_destroy(stacks);
		return error;
	}
	memory_recycle(walker->text);
	stacks->facts = (struct merge_facts){.module = session->module, .code = walker->code, .text = walker->text};
	/* Reads the symbols of Ruby's file, which would make the names of the first sample late. */
	machine_code_function(walker->code, session->module->whole.start);
	*ret = stacks;
	return NULL;
}

void mixed_stacks_destroy(struct mixed_stacks *stacks)
{
	if (!stacks)
		return;
	native_walk_clear(&stacks->walk);
	merge_facts_clear(&stacks->facts);
	memory_destroy(stacks->objects);
	memory_destroy(stacks->walker.text);
	unwinder_destroy(stacks->walker.unwinder);
	machine_code_close(stacks->walker.code);
	free(stacks->stack.of);
	free(stacks);
}

void mixed_stacks_forget(struct mixed_stacks *stacks)
{
	memory_destroy(stacks->objects);
	stacks->objects = NULL;
	merge_facts_clear(&stacks->facts); /* something wrong may have been learned from a stack that was cut */
	machine_code_refresh(stacks->walker.code);
}

/* The process's memory, to read methods and code. False if there is not enough memory. */
static bool renew_objects(struct mixed_stacks *stacks, uint64_t collections)
{
	if (stacks->objects && stacks->collections == collections && memory_pages(stacks->objects) < OBJECT_PAGES / 2)
		return true;
	memory_destroy(stacks->objects);
	stacks->objects = memory_create(target_read_pages, stacks->session->target, OBJECT_PAGES);
	stacks->collections = collections;
	return stacks->objects != NULL;
}

static bool add(struct mixed_stack *stack, struct mixed_frame frame)
{
	if (!array_make_room(stack->of, stack->capacity, stack->count + 1))
		return false;
	stack->of[stack->count++] = frame;
	return true;
}

static struct native_frame frame_of(const struct walked_function *function)
{
	static const char generated[] = "[JIT]", unknown[] = "(unknown code)";
	const struct machine_function *of = &function->function;

	if (of->kind == MACHINE_CODE_OF_FILE && of->name && of->file)
		return (struct native_frame){.start = of->start, .name = of->name, .file = of->file};
	return of->kind == MACHINE_CODE_GENERATED ? (struct native_frame){.name = generated, .file = generated}
						  : (struct native_frame){.name = unknown, .file = unknown};
}

/* Adds the frames in their order. Returns false if there is not enough memory. */
static bool add_all(struct mixed_stacks *stacks, const struct stack *walked, const struct described *described,
		    struct merge_item *items)
{
	const struct native_walk *walk = &stacks->walk;
	const size_t count = described->nr_functions + walked->nr_frames;
	const bool certain = merge_stacks(described->functions, described->nr_functions, described->frames,
					  walked->nr_frames, !walk->lost, items);
	struct mixed_stack *ret = &stacks->stack;
	bool enough = true;

	ret->cut = !certain || walk->lost;
	for (size_t i = 0; i < count && enough; i++) {
		const struct merge_item *item = &items[i];

		if (!item->native)
			enough = add(ret, (struct mixed_frame){.cfp = walked->frames[item->index].cfp});
		else if (certain && item->index < walk->count)
			enough = add(
			    ret, (struct mixed_frame){.native = true, .function = frame_of(&walk->of[item->index])});
	}
	return enough;
}

/* Merges both stacks. Returns false if there is not enough memory. */
static bool merge(struct mixed_stacks *stacks, const struct ruby *ruby, const struct stack *walked)
{
	struct described described = {0};
	struct merge_item *items = NULL;
	bool enough = merge_facts_learn(&stacks->facts, ruby, &stacks->walk, walked) &&
		      describe(&stacks->facts, ruby, &stacks->walk, walked, &described);

	if (enough)
		items = calloc(described.nr_functions + walked->nr_frames + 1, sizeof(*items));
	enough = items && add_all(stacks, walked, &described, items);
	described_clear(&described);
	free(items);
	return enough;
}

static struct native_stack parts_of(const struct native_copy *copy)
{
	return (struct native_stack){
	    .parts = {{.start = copy->registers.of[UNWIND_RSP], .length = copy->length, .bytes = copy->bytes},
		      {.start = copy->outer_start, .length = copy->outer_length, .bytes = copy->bytes + copy->length}},
	};
}

const struct mixed_stack *mixed_stacks_take(struct mixed_stacks *stacks, const struct sample *sample)
{
	const struct native_copy *copy = &sample->native;
	struct ruby ruby = stacks->session->ruby;
	struct thread_registers registers = {.ip = copy->registers.ip, .known = copy->registers.known};
	struct native_stack stack;

	stacks->stack.count = 0;
	stacks->stack.cut = true;
	if (!sample->checked || !sample->walked || sample->lacks_innermost || sample->stop.window ||
	    copy->registers.known == 0)
		return &stacks->stack;
	if (!renew_objects(stacks, sample->cache.collections))
		return &stacks->stack;
	ruby.memory = stacks->objects;
	memcpy(registers.of, copy->registers.of, sizeof(registers.of));
	stack = parts_of(copy);
	native_walk_clear(&stacks->walk);
	if (native_walk(&stacks->walker, &registers, false, &stack, &stacks->walk) &&
	    merge(stacks, &ruby, sample->walked))
		return &stacks->stack;
	stacks->stack.count = 0;
	stacks->stack.cut = true;
	return &stacks->stack;
}
