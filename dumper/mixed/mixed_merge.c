/* Adds native frames to the stacks of Ruby's threads: see mixed.h. */
#include <stdlib.h>

#include "base/array.h"
#include "mixed/describe.h"
#include "mixed/mixed.h"
#include "mixed/mixed_parts.h"

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
	bool enough = describe(&mixed->facts, ruby, walk, stack, &described);
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
	mixed->facts.loop = 0;
	addresses_clear(&mixed->facts.calls_loop);
	mixed->functions_left = MIXED_FUNCTIONS_MAX;
	enough = walks && mixed_note_vm_stacks(mixed, stacks, trace->nr_threads);

	for (size_t i = 0; i < trace->nr_threads && enough; i++)
		enough = walk_one(mixed, ruby, &trace->threads[i], &walks[i]) &&
			 merge_facts_learn(&mixed->facts, ruby, &walks[i], &stacks[i]);
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
