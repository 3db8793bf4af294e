#include "report/call_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/text.h"

/* What a child of a node is found by. */
struct child_key {
	uint32_t parent, function;
	int64_t line; /* of a group: the thread's or process's number */
};

struct call_tree_store {
	enum call_tree_by by;
	size_t capacity;
	uint32_t *slots; /* index of a node; 0: empty. Open addressing, at most half full */
	size_t nr_slots;
	int64_t *group_of; /* of each node: which one, if it is a group */
	char **names;	   /* of groups */
	size_t nr_names;
	uint64_t seed;
	uint32_t *of_profile; /* which node here a node of the profile is, below the group that */
	uint32_t *known_for;  /* says; UINT32_MAX: it is not known */
	uint32_t *path;	      /* of a stack that is looked for */
	size_t path_capacity;
};

uint64_t call_node_self(const struct call_node *node)
{
	uint64_t sum = 0;

	for (int state = 0; state < PROFILE_STATES; state++)
		sum += node->self[state];
	return sum;
}

uint64_t call_node_total(const struct call_node *node)
{
	uint64_t sum = 0;

	for (int state = 0; state < PROFILE_STATES; state++)
		sum += node->total[state];
	return sum;
}

void call_node_name(const struct call_tree *tree, const struct call_node *node, struct text *ret)
{
	const char *name =
	    node->function == CALL_TREE_GROUP ? node->group : tree->profile->functions[node->function].name;

	text_add(ret, name, strlen(name));
	if (node->line != 0)
		text_format(ret, ":%" PRId64, node->line);
}

static size_t hash(const struct call_tree_store *store, const struct child_key *key)
{
	uint64_t value = (store->seed ^ ((uint64_t)key->parent << 32 | key->function)) * 0x9e3779b97f4a7c15ULL;

	value = (value ^ (value >> 31) ^ (uint64_t)key->line) * 0xbf58476d1ce4e5b9ULL;
	return (size_t)(value ^ (value >> 29)) & (store->nr_slots - 1);
}

static struct child_key key_of(const struct call_tree *tree, uint32_t node)
{
	const struct call_node *of = &tree->nodes[node];

	return (struct child_key){
	    .parent = of->parent,
	    .function = of->function,
	    .line = of->function == CALL_TREE_GROUP ? tree->store->group_of[node] : of->line,
	};
}

/* Where a child is, or would be. */
static uint32_t *slot_of(const struct call_tree *tree, const struct child_key *key)
{
	const struct call_tree_store *store = tree->store;
	size_t at = hash(store, key);

	for (; store->slots[at] != 0; at = (at + 1) & (store->nr_slots - 1)) {
		struct child_key other = key_of(tree, store->slots[at]);

		if (other.parent == key->parent && other.function == key->function && other.line == key->line)
			break;
	}
	return &store->slots[at];
}

static bool make_room(struct call_tree *tree)
{
	struct call_tree_store *store = tree->store;
	size_t more = store->capacity ? store->capacity * 2 : 256;
	struct call_node *nodes;
	int64_t *groups;
	uint32_t *slots;

	if (tree->count < store->capacity)
		return true;
	if (more > UINT32_MAX / 4)
		return false;
	nodes = reallocarray(tree->nodes, more, sizeof(*nodes));
	if (!nodes)
		return false;
	tree->nodes = nodes;
	groups = reallocarray(store->group_of, more, sizeof(*groups));
	if (!groups)
		return false;
	store->group_of = groups;
	slots = calloc(more * 2, sizeof(*slots));
	if (!slots)
		return false;
	free(store->slots);
	store->slots = slots;
	store->nr_slots = more * 2;
	store->capacity = more;
	for (uint32_t i = 1; i < tree->count; i++) {
		struct child_key key = key_of(tree, i);

		*slot_of(tree, &key) = i;
	}
	return true;
}

/* The child of that key, made if it is not there; UINT32_MAX if out of memory. */
static uint32_t child_of(struct call_tree *tree, const struct child_key *key, const char *group)
{
	uint32_t *slot, index;
	bool is_group = key->function == CALL_TREE_GROUP;

	if (!make_room(tree))
		return UINT32_MAX;
	slot = slot_of(tree, key);
	if (*slot != 0)
		return *slot;
	index = (uint32_t)tree->count++;
	tree->nodes[index] = (struct call_node){
	    .parent = key->parent,
	    .function = key->function,
	    .line = is_group ? 0 : key->line,
	    .group = group,
	    .next_sibling = tree->nodes[key->parent].first_child,
	};
	tree->store->group_of[index] = key->line;
	tree->nodes[key->parent].first_child = index;
	return *slot = index;
}

/* ---- groups */

/* Takes over the name. UINT32_MAX if out of memory. */
static uint32_t add_group(struct call_tree *tree, const struct child_key *key, struct text *name)
{
	struct call_tree_store *store = tree->store;

	if (name->failed || !name->data) {
		text_clear(name);
		return UINT32_MAX;
	}
	/* There is room for all: each is made once. */
	store->names[store->nr_names++] = name->data;
	return child_of(tree, key, name->data);
}

static uint32_t process_node(struct call_tree *tree, uint32_t process)
{
	const struct profile_process *of = &tree->profile->processes[process];
	const struct child_key key = {.parent = 0, .function = CALL_TREE_GROUP, .line = process};
	struct text name = {0};

	if (tree->profile->nr_processes < 2)
		return 0;
	if (!make_room(tree))
		return UINT32_MAX;
	if (*slot_of(tree, &key) != 0)
		return *slot_of(tree, &key);
	text_add(&name, of->command, strlen(of->command));
	text_format(&name, " %d", of->pid);
	return add_group(tree, &key, &name);
}

static uint32_t thread_node(struct call_tree *tree, uint32_t thread)
{
	const struct profile_thread *of = &tree->profile->threads[thread];
	struct child_key key = {.function = CALL_TREE_GROUP, .line = (int64_t)thread + UINT32_MAX};
	struct text name = {0};

	key.parent = process_node(tree, of->process);
	if (key.parent == UINT32_MAX || !make_room(tree))
		return UINT32_MAX;
	if (*slot_of(tree, &key) != 0)
		return *slot_of(tree, &key);
	text_format(&name, "thread %d%s", of->tid, of->main ? " (main)" : "");
	if (of->name) {
		text_add(&name, " ", 1);
		text_add(&name, of->name, strlen(of->name));
	}
	return add_group(tree, &key, &name);
}

/* ---- runs */

static bool add_to_path(struct call_tree_store *store, size_t depth, uint32_t node)
{
	if (depth == store->path_capacity) {
		size_t more = depth > 0 ? depth * 2 : 256;
		uint32_t *grown = reallocarray(store->path, more, sizeof(*grown));

		if (!grown)
			return false;
		store->path = grown;
		store->path_capacity = more;
	}
	store->path[depth] = node;
	return true;
}

/*
 * The node of a stack below `top`; UINT32_MAX if out of memory. Stacks of runs in a row often have much in common: what
 * was found is kept.
 */
static uint32_t stack_node(struct call_tree *tree, uint32_t top, uint32_t node)
{
	const struct profile *profile = tree->profile;
	struct call_tree_store *store = tree->store;
	uint32_t at = node, here;
	size_t depth = 0;

	for (; at != 0 && store->known_for[at] != top; at = profile->nodes[at].parent)
		if (!add_to_path(store, depth++, at))
			return UINT32_MAX;
	here = at == 0 ? top : store->of_profile[at];
	while (depth-- > 0) {
		const struct profile_frame *frame = &profile->frames[profile->nodes[store->path[depth]].frame];
		const struct child_key key = {
		    .parent = here,
		    .function = frame->function,
		    .line = store->by == CALL_TREE_BY_LINE ? frame->line : 0,
		};

		here = child_of(tree, &key, NULL);
		if (here == UINT32_MAX)
			return UINT32_MAX;
		store->of_profile[store->path[depth]] = here;
		store->known_for[store->path[depth]] = top;
	}
	return here;
}

static bool add_run(struct call_tree *tree, uint32_t top, const struct profile_run *run)
{
	uint32_t node = stack_node(tree, top, run->node);

	if (node == UINT32_MAX)
		return false;
	tree->nodes[node].self[run->state] += run->weight_ns;
	tree->nodes[node].samples += run->count;
	return true;
}

static bool add_runs(struct call_tree *tree, bool threads)
{
	const struct profile *profile = tree->profile;

	for (size_t i = 0; i < profile->nr_runs; i++) {
		const struct profile_run *run = &profile->runs[i];
		uint32_t top = threads ? thread_node(tree, run->thread)
				       : process_node(tree, profile->threads[run->thread].process);

		if (top == UINT32_MAX || !add_run(tree, top, run))
			return false;
	}
	return true;
}

static void add_up(struct call_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		memcpy(tree->nodes[i].total, tree->nodes[i].self, sizeof(tree->nodes[i].total));
	for (size_t i = tree->count; i-- > 1;)
		for (int state = 0; state < PROFILE_STATES; state++)
			tree->nodes[tree->nodes[i].parent].total[state] += tree->nodes[i].total[state];
}

struct call_tree *call_tree_create(const struct profile *profile, enum call_tree_by by, bool threads)
{
	struct call_tree *tree = calloc(1, sizeof(*tree));
	struct call_tree_store *store = calloc(1, sizeof(*store));

	if (!tree || !store) {
		free(tree);
		free(store);
		return NULL;
	}
	tree->profile = profile;
	tree->store = store;
	store->by = by;
	store->seed = profile_hash_seed();
	store->of_profile = calloc(profile->nr_nodes, sizeof(*store->of_profile));
	store->known_for = malloc(profile->nr_nodes * sizeof(*store->known_for));
	store->names = calloc(profile->nr_processes + profile->nr_threads + 1, sizeof(*store->names));
	if (!store->of_profile || !store->known_for || !store->names || !make_room(tree)) {
		call_tree_destroy(tree);
		return NULL;
	}
	memset(store->known_for, 0xff, profile->nr_nodes * sizeof(*store->known_for));
	tree->nodes[0] = (struct call_node){.function = CALL_TREE_GROUP, .group = "all"};
	store->group_of[0] = 0;
	tree->count = 1;
	if (!add_runs(tree, threads)) {
		call_tree_destroy(tree);
		return NULL;
	}
	add_up(tree);
	return tree;
}

void call_tree_destroy(struct call_tree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i < tree->store->nr_names; i++)
		free(tree->store->names[i]);
	free(tree->store->names);
	free(tree->store->slots);
	free(tree->store->group_of);
	free(tree->store->of_profile);
	free(tree->store->known_for);
	free(tree->store->path);
	free(tree->store);
	free(tree->nodes);
	free(tree);
}
