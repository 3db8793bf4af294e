#include "recording/profile.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Indexes of what was added, found by what they are of: open addressing, at most half full. */
struct index_table {
	uint32_t *slots; /* index + 1; 0: empty */
	size_t size, used;
};

/* Strings lie in blocks, which never move. */
struct string_block {
	struct string_block *next;
	size_t used, size;
	char bytes[];
};

#define STRING_BLOCK (64u << 10)

struct profile_store {
	struct string_block *blocks;
	const char **strings; /* all, to be found by their text */
	size_t nr_strings, strings_capacity;
	struct index_table by_text, functions, frames, nodes, processes, threads;
	size_t processes_capacity, threads_capacity, functions_capacity, frames_capacity, nodes_capacity, runs_capacity;
	size_t bytes; /* of strings */
};

static const char *const state_names[PROFILE_STATES] = {
    [PROFILE_CPU] = "cpu",	     [PROFILE_GC] = "gc",
    [PROFILE_GVL] = "gvl",	     [PROFILE_BLOCKED] = "blocked",
    [PROFILE_SLEEPING] = "sleeping", [PROFILE_STARTING] = "starting",
    [PROFILE_STOPPED] = "stopped",   [PROFILE_PAGING] = "paging",
};

const char *profile_state_name(enum profile_state state)
{
	return state_names[state];
}

bool profile_state_parse(const char *name, enum profile_state *ret)
{
	for (int state = 0; state < PROFILE_STATES; state++) {
		if (strcmp(name, state_names[state]) == 0) {
			*ret = (enum profile_state)state;
			return true;
		}
	}
	return false;
}

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
		free(store->by_text.slots);
		free(store->functions.slots);
		free(store->frames.slots);
		free(store->nodes.slots);
		free(store->processes.slots);
		free(store->threads.slots);
		free(store);
	}
	if (profile) {
		free(profile->processes);
		free(profile->threads);
		free(profile->functions);
		free(profile->frames);
		free(profile->nodes);
		free(profile->runs);
	}
	free(profile);
}

size_t profile_bytes(const struct profile *profile)
{
	const struct profile_store *store = profile->store;

	return store->bytes + store->strings_capacity * sizeof(*store->strings) +
	       store->functions_capacity * sizeof(*profile->functions) +
	       store->frames_capacity * sizeof(*profile->frames) + store->nodes_capacity * sizeof(*profile->nodes) +
	       store->runs_capacity * sizeof(*profile->runs) +
	       (store->by_text.size + store->functions.size + store->frames.size + store->nodes.size) *
		   sizeof(uint32_t);
}

/* ---- tables */

uint64_t profile_hash_seed(void)
{
	static _Atomic uint64_t kept;
	uint64_t seed = kept, none = 0;

	if (seed != 0)
		return seed;
	/* Without any, it works as well, but for who means harm. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed) || seed == 0)
		seed = 0x9e3779b97f4a7c15ULL;
	return atomic_compare_exchange_strong(&kept, &none, seed) ? seed : none;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

static uint64_t hash_of_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ profile_hash_seed();

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ULL;
	return hash ^ (hash >> 32);
}

static uint64_t hash_of_string(const struct profile *profile, uint32_t i)
{
	return hash_of_text(profile->store->strings[i]);
}

/* Strings are the profile's own: the same text has the same address. */
static uint64_t hash_function(const struct profile_function *function)
{
	uint64_t hash = mix(profile_hash_seed() ^ (uint64_t)function->kind, (uint64_t)(uintptr_t)function->name);

	hash = mix(hash, (uint64_t)(uintptr_t)function->label);
	hash = mix(hash, (uint64_t)(uintptr_t)function->path);
	hash = mix(hash, (uint64_t)(uintptr_t)function->absolute_path);
	return mix(hash, (uint64_t)function->first_line);
}

static uint64_t hash_of_function(const struct profile *profile, uint32_t i)
{
	return hash_function(&profile->functions[i]);
}

static uint64_t hash_frame(uint32_t function, int64_t line)
{
	return mix(mix(profile_hash_seed() ^ 1, function), (uint64_t)line);
}

static uint64_t hash_of_frame(const struct profile *profile, uint32_t i)
{
	return hash_frame(profile->frames[i].function, profile->frames[i].line);
}

static uint64_t hash_node(uint32_t parent, uint32_t frame)
{
	return mix(mix(profile_hash_seed() ^ 2, parent), frame);
}

static uint64_t hash_of_node(const struct profile *profile, uint32_t i)
{
	return hash_node(profile->nodes[i].parent, profile->nodes[i].frame);
}

static uint64_t hash_process(pid_t pid, uint64_t started)
{
	return mix(mix(profile_hash_seed() ^ 3, (uint64_t)pid), started);
}

static uint64_t hash_of_process(const struct profile *profile, uint32_t i)
{
	return hash_process(profile->processes[i].pid, profile->processes[i].started);
}

static uint64_t hash_thread(const struct profile_thread *thread)
{
	uint64_t hash = mix(mix(profile_hash_seed() ^ 4, thread->process), (uint64_t)thread->tid);

	return mix(mix(hash, (uint64_t)(uintptr_t)thread->name), thread->main);
}

static uint64_t hash_of_thread(const struct profile *profile, uint32_t i)
{
	return hash_thread(&profile->threads[i]);
}

/* Makes room for one more. False if out of memory. */
static bool table_grow(const struct profile *profile, struct index_table *table,
		       uint64_t (*hash_of)(const struct profile *, uint32_t))
{
	struct index_table grown = {.size = table->size ? table->size * 2 : 256};

	if (2 * (table->used + 1) <= table->size)
		return true;
	grown.slots = calloc(grown.size, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (size_t i = 0; i < table->size; i++) {
		size_t at;

		if (table->slots[i] == 0)
			continue;
		at = (size_t)hash_of(profile, table->slots[i] - 1) & (grown.size - 1);
		while (grown.slots[at] != 0 && grown.slots[at] != table->slots[i])
			at = (at + 1) & (grown.size - 1);
		/* What was replaced may have been where it was, too. */
		grown.used += grown.slots[at] == 0;
		grown.slots[at] = table->slots[i];
	}
	free(table->slots);
	*table = grown;
	return true;
}

/* Makes room for one more element of an array. */
#define room_for(array, count, capacity) grow_array((void **)&(array), sizeof(*(array)), (count), &(capacity))

static bool grow_array(void **array, size_t size, size_t count, size_t *capacity)
{
	size_t more = *capacity ? *capacity * 2 : 64;
	void *grown;

	if (count >= UINT32_MAX - 1)
		return false;
	if (count < *capacity)
		return true;
	grown = reallocarray(*array, more, size);
	if (!grown)
		return false;
	*array = grown;
	*capacity = more;
	return true;
}

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
	size_t at, size;
	char *copy;

	if (!text || !table_grow(profile, &store->by_text, hash_of_string) ||
	    !room_for(store->strings, store->nr_strings, store->strings_capacity))
		return NULL;
	at = (size_t)hash_of_text(text) & (store->by_text.size - 1);
	for (; store->by_text.slots[at] != 0; at = (at + 1) & (store->by_text.size - 1))
		if (strcmp(store->strings[store->by_text.slots[at] - 1], text) == 0)
			return store->strings[store->by_text.slots[at] - 1];
	size = strlen(text) + 1;
	copy = allocate(store, size);
	if (!copy)
		return NULL;
	memcpy(copy, text, size);
	store->strings[store->nr_strings] = copy;
	store->by_text.slots[at] = (uint32_t)++store->nr_strings;
	store->by_text.used++;
	return copy;
}

/* ---- what is there once */

uint32_t profile_add_function(struct profile *profile, const struct profile_function *function)
{
	struct profile_store *store = profile->store;
	struct index_table *table = &store->functions;
	size_t at;

	if (!table_grow(profile, table, hash_of_function) ||
	    !room_for(profile->functions, profile->nr_functions, store->functions_capacity))
		return UINT32_MAX;
	at = (size_t)hash_function(function) & (table->size - 1);
	for (; table->slots[at] != 0; at = (at + 1) & (table->size - 1)) {
		const struct profile_function *there = &profile->functions[table->slots[at] - 1];

		if (there->kind == function->kind && there->name == function->name && there->label == function->label &&
		    there->path == function->path && there->absolute_path == function->absolute_path &&
		    there->first_line == function->first_line)
			return table->slots[at] - 1;
	}
	profile->functions[profile->nr_functions++] = *function;
	table->used++;
	return (table->slots[at] = (uint32_t)profile->nr_functions) - 1;
}

uint32_t profile_add_frame(struct profile *profile, uint32_t function, int64_t line)
{
	struct profile_store *store = profile->store;
	struct index_table *table = &store->frames;
	size_t at;

	if (!table_grow(profile, table, hash_of_frame) ||
	    !room_for(profile->frames, profile->nr_frames, store->frames_capacity))
		return UINT32_MAX;
	at = (size_t)hash_frame(function, line) & (table->size - 1);
	for (; table->slots[at] != 0; at = (at + 1) & (table->size - 1)) {
		const struct profile_frame *there = &profile->frames[table->slots[at] - 1];

		if (there->function == function && there->line == line)
			return table->slots[at] - 1;
	}
	profile->frames[profile->nr_frames++] = (struct profile_frame){.function = function, .line = line};
	table->used++;
	return (table->slots[at] = (uint32_t)profile->nr_frames) - 1;
}

uint32_t profile_add_node(struct profile *profile, uint32_t parent, uint32_t frame)
{
	struct profile_store *store = profile->store;
	struct index_table *table = &store->nodes;
	size_t at;

	if (!table_grow(profile, table, hash_of_node) ||
	    !room_for(profile->nodes, profile->nr_nodes, store->nodes_capacity))
		return UINT32_MAX;
	at = (size_t)hash_node(parent, frame) & (table->size - 1);
	for (; table->slots[at] != 0; at = (at + 1) & (table->size - 1)) {
		const struct profile_node *there = &profile->nodes[table->slots[at] - 1];

		if (there->parent == parent && there->frame == frame)
			return table->slots[at] - 1;
	}
	profile->nodes[profile->nr_nodes++] = (struct profile_node){.parent = parent, .frame = frame};
	table->used++;
	return (table->slots[at] = (uint32_t)profile->nr_nodes) - 1;
}

/* ---- what is added one by one */

/*
 * Where a process is, or would be; the table is not empty. One that has become another may be where it was before, and
 * is not found there.
 */
static size_t process_slot(const struct profile *profile, pid_t pid, uint64_t started)
{
	const struct index_table *table = &profile->store->processes;
	size_t at = (size_t)hash_process(pid, started) & (table->size - 1);

	for (; table->slots[at] != 0; at = (at + 1) & (table->size - 1)) {
		const struct profile_process *there = &profile->processes[table->slots[at] - 1];

		if (there->pid == pid && there->started == started)
			break;
	}
	return at;
}

uint32_t profile_find_process(const struct profile *profile, pid_t pid, uint64_t started)
{
	const struct index_table *table = &profile->store->processes;

	return table->size == 0 ? UINT32_MAX : table->slots[process_slot(profile, pid, started)] - 1;
}

uint32_t profile_add_process(struct profile *profile, const struct profile_process *process)
{
	struct index_table *table = &profile->store->processes;
	size_t at;

	if (!table_grow(profile, table, hash_of_process) ||
	    !room_for(profile->processes, profile->nr_processes, profile->store->processes_capacity))
		return UINT32_MAX;
	at = process_slot(profile, process->pid, process->started);
	profile->processes[profile->nr_processes++] = *process;
	if (table->slots[at] == 0) {
		table->slots[at] = (uint32_t)profile->nr_processes;
		table->used++;
	}
	return (uint32_t)profile->nr_processes - 1;
}

/* Where a thread is, or would be, as above. */
static size_t thread_slot(const struct profile *profile, const struct profile_thread *thread)
{
	const struct index_table *table = &profile->store->threads;
	size_t at = (size_t)hash_thread(thread) & (table->size - 1);

	for (; table->slots[at] != 0; at = (at + 1) & (table->size - 1)) {
		const struct profile_thread *there = &profile->threads[table->slots[at] - 1];

		if (there->process == thread->process && there->tid == thread->tid && there->name == thread->name &&
		    there->main == thread->main)
			break;
	}
	return at;
}

uint32_t profile_find_thread(const struct profile *profile, const struct profile_thread *thread)
{
	const struct index_table *table = &profile->store->threads;

	return table->size == 0 ? UINT32_MAX : table->slots[thread_slot(profile, thread)] - 1;
}

/* Lets a thread be found, if none is that is the same. The table has room. */
static void index_thread(struct profile *profile, uint32_t index)
{
	struct index_table *table = &profile->store->threads;
	size_t at = thread_slot(profile, &profile->threads[index]);

	if (table->slots[at] != 0)
		return;
	table->slots[at] = index + 1;
	table->used++;
}

uint32_t profile_add_thread(struct profile *profile, const struct profile_thread *thread)
{
	if (!table_grow(profile, &profile->store->threads, hash_of_thread) ||
	    !room_for(profile->threads, profile->nr_threads, profile->store->threads_capacity))
		return UINT32_MAX;
	profile->threads[profile->nr_threads++] = *thread;
	index_thread(profile, (uint32_t)profile->nr_threads - 1);
	return (uint32_t)profile->nr_threads - 1;
}

bool profile_replace_thread(struct profile *profile, uint32_t index, const struct profile_thread *thread)
{
	if (!table_grow(profile, &profile->store->threads, hash_of_thread))
		return false;
	profile->threads[index] = *thread;
	index_thread(profile, index);
	return true;
}

bool profile_add_run(struct profile *profile, const struct profile_run *run)
{
	if (!room_for(profile->runs, profile->nr_runs, profile->store->runs_capacity))
		return false;
	profile->runs[profile->nr_runs++] = *run;
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

double profile_late_share(const struct profile_counts *counts)
{
	const double due = (double)counts->samples + (double)counts->missed + (double)counts->skipped;

	return due > 0 ? (double)counts->late / due : 0;
}
