#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index_table.h"
#include "mixed/mixed.h"
#include "mixed/mixed_parts.h"
#include "target/stopping.h"

/* How many pages of instructions are kept at a time. */
#define TEXT_PAGES 256u

/* How many more threads may begin between the preparation and the pause. */
#define NEW_THREADS 64u

/* A hash of what is mapped from files as code. */
static uint64_t hash_of_mappings(const struct target *target)
{
	uint64_t hash = hash_begin(0);

	for (size_t i = 0; i < target->nr_mappings; i++) {
		const struct mapping *mapping = &target->mappings[i];

		if (!mapping->executable || mapping->path[0] != '/')
			continue;
		hash = hash_mix(hash_mix(hash, mapping->start), mapping->end);
		hash = hash_mix(hash_mix(hash, mapping->offset), mapping->inode);
		hash = hash_mix(hash, hash_text(mapping->path));
	}
	return hash;
}

struct error *mixed_create(const struct mixed_options *options, struct target *target, const struct module *module,
			   struct mixed **ret)
{
	struct mixed *mixed = calloc(1, sizeof(*mixed));
	struct native_walker *walker;
	struct error *error;

	if (!mixed)
		return error_no_memory();
	mixed->options = *options;
	mixed->mapped = hash_of_mappings(target);
	walker = &mixed->walker;
	walker->target = target;
	mixed->names.pid = target->operations->runs ? target->pid : 0;
	walker->module = module;
	error = target->operations->runs ? machine_code_open(target->pid, &walker->code)
					 : machine_code_of_target(target, &walker->code);
	if (!error)
		error = target->operations->runs
			    ? symbolizer_open(target->pid, options->names_ms, &mixed->names.symbolizer)
			    : symbolizer_of_core(target, options->names_ms, &mixed->names.symbolizer);
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
	mixed->facts = (struct merge_facts){.module = module, .code = walker->code, .text = walker->text};
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
	symbolizer_close(mixed->names.symbolizer);
	perf_map_destroy(mixed->names.perf_map);
	address_map_clear(&mixed->vm_stacks);
	address_map_clear(&mixed->of_fibers);
	merge_facts_clear(&mixed->facts);
	sleepers_clear(&mixed->sleepers);
	free(mixed->copies);
	free(mixed->fibers);
	free(mixed);
}

struct error *mixed_renew(struct mixed **mixed)
{
	struct mixed *old = *mixed, *renewed = NULL;
	struct error *error;

	if (old->mapped == hash_of_mappings(old->walker.target)) {
		symbolizer_renew(old->names.symbolizer);
		perf_map_destroy(old->names.perf_map);
		old->names.perf_map = NULL;
		old->names.perf_map_read = false;
		return NULL;
	}
	error = mixed_create(&old->options, old->walker.target, old->walker.module, &renewed);
	if (error)
		return error;
	mixed_destroy(old);
	*mixed = renewed;
	return NULL;
}

/* ---- copies */

bool mixed_note_vm_stacks(struct mixed *mixed, const struct stack *stacks, size_t count)
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
	struct native_stacks *copies = mixed->walker.stacks;
	size_t nr_threads = 0, count;

	/* Stacks may be in memory that is new. */
	if (target->operations->update_mappings)
		target->operations->update_mappings(target);
	free(live_list_threads(target->pid, &nr_threads));
	count = nr_threads + NEW_THREADS;
	if (!mixed_note_vm_stacks(mixed, stacks, nr_stacks) || !note_fibers(mixed, fibers) ||
	    !sleepers_copy(&mixed->walker, &mixed->sleepers) ||
	    !array_make_room(mixed->copies, mixed->copies_capacity, count) ||
	    !native_stacks_reserve(copies, mixed->sleepers.count + count + fibers->count))
		return false;
	native_stacks_provide(copies, count - mixed->sleepers.count + fibers->count);
	return true;
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

/* The index of the copy of a thread's stack; the copy may still have to be made. */
static size_t copy_of(struct mixed *mixed, const struct native_thread *thread, size_t *nr_copies)
{
	const size_t sleeper = sleepers_find(&mixed->sleepers, thread);

	if (sleeper != SIZE_MAX)
		return sleeper;
	native_stacks_want(mixed->walker.stacks, mixed->walker.target, stack_pointer(&thread->registers));
	return (*nr_copies)++;
}

void mixed_copy(struct mixed *mixed, const struct ruby *ruby)
{
	const struct target *target = mixed->walker.target;
	struct native_stacks *stacks = mixed->walker.stacks;
	size_t nr_copies = mixed->sleepers.count;

	native_stacks_keep(stacks, nr_copies);
	for (size_t i = 0; i < target->nr_threads && i < mixed->copies_capacity; i++)
		mixed->copies[i] = copy_of(mixed, &target->threads[i], &nr_copies);
	mixed->nr_copied = nr_copies;
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

/* Takes the functions of a stack from the number that a trace may have. */
static void limit(struct mixed *mixed, struct native_walk *walk)
{
	if (walk->count > mixed->functions_left) {
		walk->count = mixed->functions_left;
		walk->lost = "all native stacks together have too many frames";
	}
	mixed->functions_left -= walk->count;
}

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
	stack = stack_copy(mixed, index < mixed->copies_capacity ? mixed->copies[index] : SIZE_MAX,
			   stack_pointer(registers));
	return native_walk(&mixed->walker, registers, false, &stack, ret);
}

static bool walk_fiber(struct mixed *mixed, const struct ruby *ruby, uint64_t fiber, struct native_walk *ret)
{
	const uint64_t end = end_of_fiber(ruby, fiber), *index = address_map_find(&mixed->of_fibers, fiber);
	struct native_stack stack;

	if (mixed->walker.target->operations->runs && !index) {
		*ret = (struct native_walk){.lost = "the fiber was not known before the process was stopped"};
		return true;
	}
	stack = stack_copy(mixed, index ? mixed->nr_copied + *index : SIZE_MAX, sp_of_left(end));
	return native_walk_fiber(&mixed->walker, end, &stack, ret);
}

bool mixed_walk_thread(struct mixed *mixed, size_t index, struct native_walk *ret)
{
	const bool enough = walk_thread(mixed, index, ret);

	limit(mixed, ret);
	return enough;
}

bool mixed_walk_fiber(struct mixed *mixed, const struct ruby *ruby, uint64_t fiber, struct native_walk *ret)
{
	const bool enough = walk_fiber(mixed, ruby, fiber, ret);

	limit(mixed, ret);
	return enough;
}
