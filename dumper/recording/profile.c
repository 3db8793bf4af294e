#include "recording/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index_table.h"

/* Strings are in blocks, which never move. */
struct string_block {
	struct string_block *next;
	size_t used, size;
	char bytes[];
};

#define STRING_BLOCK (64u << 10)

struct profile_store {
	struct string_block *blocks;
	const char **strings; /* all strings; `by_text` has their indexes */
	size_t nr_strings, strings_capacity;
	struct index_table by_text, functions, frames, nodes, processes, threads, serials, wakers;
	size_t processes_capacity, threads_capacity, functions_capacity, frames_capacity, nodes_capacity,
	    spans_capacity, wakers_capacity;
	size_t bytes; /* size of all strings */
};

struct profile *profile_create(void)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (profile)
		profile->store = calloc(1, sizeof(*profile->store));
	if (!profile || !profile->store || profile_add_node(profile, 0, UINT32_MAX) != 0) {
		profile_destroy(profile);
		return NULL;
	}
	return profile;
}

void profile_destroy(struct profile *profile)
{
	struct profile_store *store = profile ? profile->store : NULL;

	while (store && store->blocks) {
		struct string_block *next = store->blocks->next;

		free(store->blocks);
		store->blocks = next;
	}
	if (store) {
		free(store->strings);
		index_table_clear(&store->by_text);
		index_table_clear(&store->functions);
		index_table_clear(&store->frames);
		index_table_clear(&store->nodes);
		index_table_clear(&store->processes);
		index_table_clear(&store->threads);
		index_table_clear(&store->serials);
		index_table_clear(&store->wakers);
		free(store);
	}
	if (profile) {
		free(profile->processes);
		free(profile->threads);
		free(profile->functions);
		free(profile->frames);
		free(profile->nodes);
		free(profile->spans);
		free(profile->wakers);
	}
	free(profile);
}

size_t profile_bytes(const struct profile *profile)
{
	const struct profile_store *store = profile->store;

	return store->bytes + store->strings_capacity * sizeof(*store->strings) +
	       store->functions_capacity * sizeof(*profile->functions) +
	       store->frames_capacity * sizeof(*profile->frames) + store->nodes_capacity * sizeof(*profile->nodes) +
	       store->spans_capacity * sizeof(*profile->spans) + store->wakers_capacity * sizeof(*profile->wakers) +
	       (store->by_text.size + store->functions.size + store->frames.size + store->nodes.size +
		store->wakers.size) *
		   sizeof(uint32_t);
}

/* ---- tables: what tells the items apart */

static uint64_t hash_string(const void *item)
{
	return hash_text(*(const char *const *)item);
}

static bool same_string(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
}

/* Strings are the profile's own: the same text has the same address. */
static uint64_t hash_function(const void *item)
{
	const struct profile_function *function = item;
	uint64_t hash = hash_mix(hash_begin((uint64_t)function->kind), (uint64_t)(uintptr_t)function->name);

	hash = hash_mix(hash, (uint64_t)(uintptr_t)function->label);
	hash = hash_mix(hash, (uint64_t)(uintptr_t)function->path);
	hash = hash_mix(hash, (uint64_t)(uintptr_t)function->absolute_path);
	return hash_mix(hash, (uint64_t)function->first_line);
}

static bool same_function(const void *a, const void *b)
{
	const struct profile_function *x = a, *y = b;

	return x->kind == y->kind && x->name == y->name && x->label == y->label && x->path == y->path &&
	       x->absolute_path == y->absolute_path && x->first_line == y->first_line;
}

static uint64_t hash_frame(const void *item)
{
	const struct profile_frame *frame = item;

	return hash_mix(hash_begin(frame->function), (uint64_t)frame->line);
}

static bool same_frame(const void *a, const void *b)
{
	const struct profile_frame *x = a, *y = b;

	return x->function == y->function && x->line == y->line;
}

static uint64_t hash_node(const void *item)
{
	const struct profile_node *node = item;

	return hash_mix(hash_begin(node->parent), node->frame);
}

static bool same_node(const void *a, const void *b)
{
	const struct profile_node *x = a, *y = b;

	return x->parent == y->parent && x->frame == y->frame;
}

static uint64_t hash_process(const void *item)
{
	const struct profile_process *process = item;

	return hash_mix(hash_begin((uint64_t)process->pid), process->started);
}

static bool same_process(const void *a, const void *b)
{
	const struct profile_process *x = a, *y = b;

	return x->pid == y->pid && x->started == y->started;
}

static uint64_t hash_thread(const void *item)
{
	const struct profile_thread *thread = item;
	uint64_t hash = hash_mix(hash_begin(thread->process), (uint64_t)thread->tid);

	hash = hash_mix(hash_mix(hash, (uint64_t)(uintptr_t)thread->name), thread->main);
	return hash_mix(hash, thread->ractor);
}

static bool same_thread(const void *a, const void *b)
{
	const struct profile_thread *x = a, *y = b;

	return x->process == y->process && x->tid == y->tid && x->name == y->name && x->main == y->main &&
	       x->ractor == y->ractor;
}

static uint64_t hash_serial(const void *item)
{
	const struct profile_thread *thread = item;

	return hash_mix(hash_begin(thread->process), thread->serial);
}

static bool same_serial(const void *a, const void *b)
{
	const struct profile_thread *x = a, *y = b;

	return x->process == y->process && x->serial == y->serial;
}

static bool of_one_capture(const struct profile_thread *a, const struct profile_thread *b)
{
	return a->serial != 0 && b->serial != 0 && a->serial >> 32 == b->serial >> 32;
}

static uint64_t hash_waker(const void *item)
{
	const struct profile_waker *waker = item;
	uint64_t hash = hash_mix(hash_begin((uint64_t)waker->pid), (uint64_t)waker->tid);

	return hash_mix(hash, (uint64_t)(uintptr_t)waker->name);
}

static bool same_waker(const void *a, const void *b)
{
	const struct profile_waker *x = a, *y = b;

	return x->pid == y->pid && x->tid == y->tid && x->name == y->name;
}

static const struct index_items strings = {sizeof(const char *), hash_string, same_string},
				functions = {sizeof(struct profile_function), hash_function, same_function},
				frames = {sizeof(struct profile_frame), hash_frame, same_frame},
				nodes = {sizeof(struct profile_node), hash_node, same_node},
				processes = {sizeof(struct profile_process), hash_process, same_process},
				threads = {sizeof(struct profile_thread), hash_thread, same_thread},
				serials = {sizeof(struct profile_thread), hash_serial, same_serial},
				wakers = {sizeof(struct profile_waker), hash_waker, same_waker};

/* Makes room for one more element of an array, whose indices are of 32 bits. */
#define room_for(array, count, capacity) ((count) < UINT32_MAX - 1 && array_make_room(array, capacity, (count) + 1))

/* ---- strings */

static char *allocate(struct profile_store *store, size_t size)
{
	struct string_block *block = store->blocks;

	if (!block || block->size - block->used < size) {
		size_t of_block = size > STRING_BLOCK ? size : STRING_BLOCK;

		block = malloc(sizeof(*block) + of_block);
		if (!block)
			return NULL;
		*block = (struct string_block){.next = store->blocks, .size = of_block};
		store->blocks = block;
		store->bytes += of_block;
	}
	block->used += size;
	return block->bytes + block->used - size;
}

const char *profile_string(struct profile *profile, const char *text)
{
	struct profile_store *store = profile->store;
	uint32_t *slot;
	size_t size;
	char *copy;

	if (!text || !index_table_make_room(&store->by_text, &strings, store->strings) ||
	    !room_for(store->strings, store->nr_strings, store->strings_capacity))
		return NULL;
	slot = index_table_slot(&store->by_text, &strings, store->strings, &text);
	if (*slot != 0)
		return store->strings[*slot - 1];
	size = strlen(text) + 1;
	copy = allocate(store, size);
	if (!copy)
		return NULL;
	memcpy(copy, text, size);
	store->strings[store->nr_strings] = copy;
	index_table_enter(&store->by_text, slot, (uint32_t)store->nr_strings++);
	return copy;
}

/* ---- elements that exist only once */

uint32_t profile_add_function(struct profile *profile, const struct profile_function *function)
{
	struct profile_store *store = profile->store;
	uint32_t *slot;

	if (!index_table_make_room(&store->functions, &functions, profile->functions) ||
	    !room_for(profile->functions, profile->nr_functions, store->functions_capacity))
		return UINT32_MAX;
	slot = index_table_slot(&store->functions, &functions, profile->functions, function);
	if (*slot == 0) {
		profile->functions[profile->nr_functions] = *function;
		index_table_enter(&store->functions, slot, (uint32_t)profile->nr_functions++);
	}
	return *slot - 1;
}

uint32_t profile_add_waker(struct profile *profile, const struct profile_waker *waker)
{
	struct profile_store *store = profile->store;
	uint32_t *slot;

	if (!index_table_make_room(&store->wakers, &wakers, profile->wakers) ||
	    !room_for(profile->wakers, profile->nr_wakers, store->wakers_capacity))
		return UINT32_MAX;
	slot = index_table_slot(&store->wakers, &wakers, profile->wakers, waker);
	if (*slot == 0) {
		profile->wakers[profile->nr_wakers] = *waker;
		index_table_enter(&store->wakers, slot, (uint32_t)profile->nr_wakers++);
	}
	return *slot - 1;
}

uint32_t profile_add_frame(struct profile *profile, uint32_t function, int64_t line)
{
	const struct profile_frame frame = {.function = function, .line = line};
	struct profile_store *store = profile->store;
	uint32_t *slot;

	if (!index_table_make_room(&store->frames, &frames, profile->frames) ||
	    !room_for(profile->frames, profile->nr_frames, store->frames_capacity))
		return UINT32_MAX;
	slot = index_table_slot(&store->frames, &frames, profile->frames, &frame);
	if (*slot == 0) {
		profile->frames[profile->nr_frames] = frame;
		index_table_enter(&store->frames, slot, (uint32_t)profile->nr_frames++);
	}
	return *slot - 1;
}

uint32_t profile_add_node(struct profile *profile, uint32_t parent, uint32_t frame)
{
	const struct profile_node node = {.parent = parent, .frame = frame};
	struct profile_store *store = profile->store;
	uint32_t *slot;

	if (!index_table_make_room(&store->nodes, &nodes, profile->nodes) ||
	    !room_for(profile->nodes, profile->nr_nodes, store->nodes_capacity))
		return UINT32_MAX;
	slot = index_table_slot(&store->nodes, &nodes, profile->nodes, &node);
	if (*slot == 0) {
		profile->nodes[profile->nr_nodes] = node;
		index_table_enter(&store->nodes, slot, (uint32_t)profile->nr_nodes++);
	}
	return *slot - 1;
}

/* ---- elements that are always added; the first of those that are the same is found */

uint32_t profile_find_process(const struct profile *profile, pid_t pid, uint64_t started)
{
	const struct profile_process process = {.pid = pid, .started = started};

	return index_table_find(&profile->store->processes, &processes, profile->processes, &process);
}

uint32_t profile_add_process(struct profile *profile, const struct profile_process *process)
{
	struct index_table *table = &profile->store->processes;
	uint32_t *slot;

	if (!index_table_make_room(table, &processes, profile->processes) ||
	    !room_for(profile->processes, profile->nr_processes, profile->store->processes_capacity))
		return UINT32_MAX;
	slot = index_table_slot(table, &processes, profile->processes, process);
	profile->processes[profile->nr_processes] = *process;
	if (*slot == 0)
		index_table_enter(table, slot, (uint32_t)profile->nr_processes);
	return (uint32_t)profile->nr_processes++;
}

uint32_t profile_find_thread(const struct profile *profile, const struct profile_thread *thread)
{
	const struct profile_store *store = profile->store;
	uint32_t found = UINT32_MAX;

	if (thread->serial != 0)
		found = index_table_find(&store->serials, &serials, profile->threads, thread);
	if (found != UINT32_MAX || thread->tid == 0)
		return found;
	found = index_table_find(&store->threads, &threads, profile->threads, thread);
	return found != UINT32_MAX && of_one_capture(&profile->threads[found], thread) ? UINT32_MAX : found;
}

/* Sets a thread, and adds it to the tables, unless an equal one is in them. */
static bool set_thread(struct profile *profile, uint32_t index, const struct profile_thread *thread)
{
	struct index_table *by_serial = &profile->store->serials, *table = &profile->store->threads;
	uint32_t *slot;

	if (!index_table_make_room(table, &threads, profile->threads) ||
	    !index_table_make_room(by_serial, &serials, profile->threads))
		return false;
	profile->threads[index] = *thread;
	slot = index_table_slot(table, &threads, profile->threads, thread);
	if (*slot == 0)
		index_table_enter(table, slot, index);
	if (thread->serial == 0)
		return true;
	slot = index_table_slot(by_serial, &serials, profile->threads, thread);
	if (*slot == 0)
		index_table_enter(by_serial, slot, index);
	return true;
}

uint32_t profile_add_thread(struct profile *profile, const struct profile_thread *thread)
{
	const uint32_t index = (uint32_t)profile->nr_threads;

	if (!room_for(profile->threads, profile->nr_threads, profile->store->threads_capacity) ||
	    !set_thread(profile, index, thread))
		return UINT32_MAX;
	profile->nr_threads++;
	return index;
}

bool profile_replace_thread(struct profile *profile, uint32_t index, const struct profile_thread *thread)
{
	return set_thread(profile, index, thread);
}

bool profile_add_span(struct profile *profile, const struct profile_span *span)
{
	if (!room_for(profile->spans, profile->nr_spans, profile->store->spans_capacity))
		return false;
	profile->spans[profile->nr_spans++] = *span;
	return true;
}

double profile_share_taken(const struct profile_counts *counts)
{
	double due = (double)counts->samples + (double)counts->skipped;

	return due > 0 ? (double)counts->samples / due : 1;
}

void profile_count(struct profile_counts *counts, const struct profile_counts *more)
{
	counts->samples += more->samples;
	counts->late += more->late;
	counts->missed += more->missed;
	counts->skipped += more->skipped;
	for (int verdict = 0; verdict <= VERDICT_UNREADABLE; verdict++)
		counts->verdicts[verdict] += more->verdicts[verdict];
}

uint64_t profile_due(const struct profile_counts *counts)
{
	uint64_t due;

	if (__builtin_add_overflow(counts->samples, counts->missed, &due) ||
	    __builtin_add_overflow(due, counts->skipped, &due))
		return UINT64_MAX;
	return due;
}

double profile_late_share(const struct profile_counts *counts)
{
	const uint64_t due = profile_due(counts);

	return due > 0 ? (double)counts->late / (double)due : 0;
}
