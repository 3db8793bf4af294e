#include "trace/merged.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/same.h"

/* The most memory that traces take which are kept: 512 MiB. */
#define KEPT_BYTES (512u * 1024 * 1024)

static uint64_t hash_of_thread(const void *item)
{
	const struct merged_thread *thread = item;

	return hash_begin(trace_thread_key(thread->as));
}

static bool is_same_thread(const void *a, const void *b)
{
	return trace_same_thread(((const struct merged_thread *)a)->as, ((const struct merged_thread *)b)->as);
}

static const struct index_items items = {sizeof(struct merged_thread), hash_of_thread, is_same_thread};

/* A thread that is not known may be one that is known, with another tid: it is not said of that one that it has ended. */
static void doubt_end(struct merged *merged, const struct trace_thread *thread)
{
	const struct trace_thread any_tid = {.id = thread->id, .fiber = thread->fiber, .suspended = thread->suspended};
	const struct merged_thread wanted = {.as = &any_tid};
	const uint32_t index = index_table_find(&merged->by_thread, &items, merged->threads, &wanted);

	if (index != UINT32_MAX)
		merged->threads[index].doubtful = true;
}

/* The entry of a thread; a new one if the thread was not there in any look. NULL if there is not enough memory. */
static struct merged_thread *entry_of(struct merged *merged, const struct trace_thread *thread)
{
	const struct merged_thread wanted = {.as = thread};
	uint32_t *slot;

	if (!index_table_make_room(&merged->by_thread, &items, merged->threads))
		return NULL;
	slot = index_table_slot(&merged->by_thread, &items, merged->threads, &wanted);
	if (*slot != 0)
		return &merged->threads[*slot - 1];
	if (merged->nr_threads == UINT32_MAX ||
	    !array_make_room(merged->threads, merged->threads_capacity, merged->nr_threads + 1))
		return NULL;
	if (thread->progress.moved == MOVED_NOT_KNOWN)
		doubt_end(merged, thread);
	index_table_enter(&merged->by_thread, slot, (uint32_t)merged->nr_threads);
	merged->threads[merged->nr_threads] = (struct merged_thread){.as = thread, .slept = true};
	merged->last_has_parts = true;
	return &merged->threads[merged->nr_threads++];
}

/* The entry of a thread's present stack; a new one if the thread did not have this stack before. NULL as above. */
static struct merged_stack *stack_of(struct merged *merged, struct merged_thread *entry,
				     const struct trace_thread *thread)
{
	const struct trace *trace = merged->last;
	const uint64_t hash = trace_stack_hash(thread);

	for (size_t i = 0; i < entry->nr_stacks; i++)
		if (entry->stacks[i].hash == hash && trace_same_stack(entry->stacks[i].as, thread))
			return &entry->stacks[i];
	if (!array_make_room_for_one(entry->stacks, entry->nr_stacks))
		return NULL;
	merged->last_has_parts = true;
	entry->stacks[entry->nr_stacks] = (struct merged_stack){.trace = trace, .as = thread, .hash = hash};
	return &entry->stacks[entry->nr_stacks++];
}

/* Whether the thread waits for the same as in the first look with this stack. */
static void compare_waits(struct merged_stack *stack, const struct trace *trace, const struct trace_thread *thread)
{
	stack->waits_differ |= !trace_same_waits(stack->trace, (size_t)(stack->as - stack->trace->threads), trace,
						 (size_t)(thread - trace->threads));
	stack->calls_differ |= !trace_same_call(stack->as, thread);
}

/* What a thread has done since the previous look. */
static void add_progress(struct merged_thread *entry, const struct trace_thread *thread,
			 const struct merged_look *before)
{
	const struct trace_progress *progress = &thread->progress;
	const bool consecutive = before && entry->last_look == before->number;

	/* In the first look of all, it is not asked how much CPU time threads have used. */
	if (entry->nr_looks == 0)
		entry->has_cpu = (progress->has_cpu || !before) && !thread->suspended;
	else
		entry->has_cpu &= progress->has_cpu && consecutive;
	entry->cpu_ns += progress->cpu_ns;
	if (entry->nr_looks > 0)
		entry->slept &= progress->moved == MOVED_NOT && consecutive;
}

static bool add_thread(struct merged *merged, const struct trace_thread *thread, const struct merged_look *before)
{
	const unsigned int look = merged->looks[merged->nr_looks - 1].number;
	struct merged_thread *entry = entry_of(merged, thread);
	struct merged_stack *stack;

	/* Two entries of one trace for the same thread: the list was changing. */
	if (entry && entry->last_look == look)
		return true;
	stack = entry ? stack_of(merged, entry, thread) : NULL;
	if (!stack || !array_make_room_for_one(stack->looks, stack->nr_looks))
		return false;
	/* A thread mostly gets its name after it has begun. */
	if (!trace_same_text(entry->as->name, thread->name) || entry->as->tid != thread->tid) {
		entry->as = thread;
		merged->last_has_parts = true;
	}
	stack->looks[stack->nr_looks++] = look;
	compare_waits(stack, merged->last, thread);
	add_progress(entry, thread, before);
	if (entry->nr_looks == 0) {
		entry->first_look = look;
		entry->began =
		    before && before->all_threads && !thread->suspended && thread->progress.moved == MOVED_NEW;
	}
	entry->nr_looks++;
	entry->last_look = look;
	entry->last_entry = (size_t)(thread - merged->last->threads);
	entry->last = thread->state;
	entry->states[thread->state]++;
	return true;
}

/* Keeps or drops the trace of the previous look. */
static bool retire_last(struct merged *merged)
{
	if (!merged->last_has_parts) {
		trace_destroy(merged->last);
	} else {
		if (!array_make_room(merged->kept, merged->kept_capacity, merged->nr_kept + 1))
			return false;
		merged->kept_bytes += trace_bytes(merged->last);
		merged->kept[merged->nr_kept++].trace = merged->last;
	}
	merged->last = NULL;
	merged->last_has_parts = false;
	return true;
}

static void add_look(struct merged *merged, const struct trace *trace)
{
	struct merged_look *look = &merged->looks[merged->nr_looks++];

	*look = (struct merged_look){
	    .number = trace->look.number,
	    .time = trace->look.time,
	    .pauses = trace->pauses,
	    .pause_us = trace->pause_us,
	    .all_threads = trace->threads_missing == LIST_COMPLETE,
	    .all_fibers = trace->fibers_missing == LIST_COMPLETE,
	    .gc_known = trace->gc_known,
	    .gc_running = trace->gc_running,
	};
	for (size_t i = 0; i < trace->nr_threads; i++)
		look->nr_threads += !trace->threads[i].suspended;
}

bool merged_add(struct merged *merged, struct trace *trace)
{
	const struct merged_look *before;

	if (!array_make_room(merged->looks, merged->looks_capacity, merged->nr_looks + 1) ||
	    (merged->last && !retire_last(merged))) {
		trace_destroy(trace);
		return false;
	}
	merged->last = trace;
	merged->ns += trace->look.since_ns;
	add_look(merged, trace);
	before = merged->nr_looks > 1 ? &merged->looks[merged->nr_looks - 2] : NULL;
	for (size_t i = 0; i < trace->nr_threads; i++)
		if (!add_thread(merged, &trace->threads[i], before))
			return false;
	return true;
}

bool merged_is_full(const struct merged *merged)
{
	return merged->kept_bytes > KEPT_BYTES;
}

static int by_looks(const void *a, const void *b)
{
	const struct merged_stack *x = a, *y = b;

	if (x->nr_looks != y->nr_looks)
		return x->nr_looks > y->nr_looks ? -1 : 1;
	return x->looks[0] < y->looks[0] ? -1 : x->looks[0] > y->looks[0];
}

/* Whether the thread was missing in a look whose list of threads was complete, after the thread was last seen. */
static bool has_ended(const struct merged *merged, const struct merged_thread *thread)
{
	for (size_t i = 0; i < merged->nr_looks; i++)
		if (merged->looks[i].number > thread->last_look && merged->looks[i].all_threads)
			/* A native thread that Ruby did not know can be one of Ruby's now. */
			return !thread->as->suspended && !thread->as->native && !thread->doubtful;
	return false;
}

struct place {
	uint64_t rank; /* the index of the thread, or of the fiber's thread */
	size_t index;
	struct merged_thread thread;
};

static int by_rank_then_index(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	/* The entry of a fiber can be the older one. */
	if (x->thread.as->suspended != y->thread.as->suspended)
		return x->thread.as->suspended ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Sorts the threads so that each is followed by its fibers. Drops the table, which no longer fits. */
static bool order(struct merged *merged)
{
	struct place *places = calloc(merged->nr_threads + 1, sizeof(*places));

	if (!places)
		return false;
	for (size_t i = 0; i < merged->nr_threads; i++) {
		const struct trace_thread of = {.id = merged->threads[i].as->id};
		const struct merged_thread wanted = {.as = &of};
		const bool suspended = merged->threads[i].as->suspended;
		const uint32_t index =
		    suspended ? index_table_find(&merged->by_thread, &items, merged->threads, &wanted) : (uint32_t)i;

		places[i] = (struct place){index, i, merged->threads[i]};
	}
	qsort(places, merged->nr_threads, sizeof(*places), by_rank_then_index);
	for (size_t i = 0; i < merged->nr_threads; i++)
		merged->threads[i] = places[i].thread;
	free(places);
	index_table_clear(&merged->by_thread);
	return true;
}

bool merged_finish(struct merged *merged)
{
	for (size_t i = 0; i < merged->nr_threads; i++) {
		struct merged_thread *thread = &merged->threads[i];

		qsort(thread->stacks, thread->nr_stacks, sizeof(*thread->stacks), by_looks);
		thread->ended = has_ended(merged, thread);
		thread->has_cpu &= thread->nr_looks > 1 || thread->first_look != merged->looks[0].number;
	}
	return order(merged);
}

enum trace_moved merged_moved(const struct merged_thread *thread)
{
	size_t complete = 0;

	for (size_t i = 0; i < thread->nr_stacks; i++)
		complete += thread->stacks[i].as->verdict == VERDICT_COMPLETE;
	if (complete > 1)
		return MOVED_YES;
	if (complete < thread->nr_stacks)
		return MOVED_NOT_KNOWN;
	if (thread->nr_looks == 1)
		return MOVED_NOT_ASKED;
	return thread->slept ? MOVED_NOT : MOVED_SAME_STACK;
}

size_t merged_last_entry(const struct merged *merged, const struct merged_thread *thread)
{
	return thread->last_look == merged->looks[merged->nr_looks - 1].number ? thread->last_entry : SIZE_MAX;
}

const struct merged_stack *merged_last_stack(const struct merged_thread *thread)
{
	size_t i = 0;

	while (thread->stacks[i].looks[thread->stacks[i].nr_looks - 1] != thread->last_look)
		i++;
	return &thread->stacks[i];
}

void merged_clear(struct merged *merged)
{
	for (size_t i = 0; i < merged->nr_threads; i++) {
		for (size_t j = 0; j < merged->threads[i].nr_stacks; j++)
			free(merged->threads[i].stacks[j].looks);
		free(merged->threads[i].stacks);
	}
	for (size_t i = 0; i < merged->nr_kept; i++)
		trace_destroy(merged->kept[i].trace);
	free(merged->kept);
	trace_destroy(merged->last);
	index_table_clear(&merged->by_thread);
	free(merged->threads);
	free(merged->looks);
	*merged = (struct merged){0};
}
