#include "report/call_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index_table.h"
#include "base/text.h"
#include "report/cgroup_name.h"
#include "report/format.h"

struct call_tree_store {
	enum call_tree_by by;
	size_t capacity;
	struct index_table by_parent; /* all nodes but the root */
	char **names;		      /* of groups */
	size_t nr_names;
	uint32_t *of_profile; /* for each node of the profile: the node of this tree, below the group in */
	uint32_t *known_for;  /* `known_for`; UINT32_MAX if not known */
	uint32_t *path;	      /* of the stack that is being added */
	size_t path_capacity;
};

uint64_t call_node_self(const struct call_node *node)
{
	uint64_t sum = 0;

	for (int state = 0; state < SAMPLE_STATES; state++)
		sum += node->self[state];
	return sum;
}

uint64_t call_node_total(const struct call_node *node)
{
	uint64_t sum = 0;

	for (int state = 0; state < SAMPLE_STATES; state++)
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

static uint64_t hash_child(const void *item)
{
	const struct call_node *node = item;
	uint64_t hash = hash_begin((uint64_t)node->parent << 32 | node->function);

	return hash_mix(hash_mix(hash, (uint64_t)node->line), (uint64_t)node->group_number);
}

static bool same_child(const void *a, const void *b)
{
	const struct call_node *x = a, *y = b;

	return x->parent == y->parent && x->function == y->function && x->line == y->line &&
	       x->group_number == y->group_number;
}

static const struct index_items children = {sizeof(struct call_node), hash_child, same_child};

static bool make_room(struct call_tree *tree)
{
	return tree->count < UINT32_MAX / 4 && array_make_room(tree->nodes, tree->store->capacity, tree->count + 1);
}

/* The child that is equal to a node; UINT32_MAX if there is none. */
static uint32_t find_child(const struct call_tree *tree, const struct call_node *node)
{
	return index_table_find(&tree->store->by_parent, &children, tree->nodes, node);
}

/* The same; it is added if there is none. UINT32_MAX if there is not enough memory. */
static uint32_t child_of(struct call_tree *tree, const struct call_node *node)
{
	struct index_table *table = &tree->store->by_parent;
	uint32_t *slot, index;

	if (!make_room(tree) || !index_table_make_room(table, &children, tree->nodes))
		return UINT32_MAX;
	slot = index_table_slot(table, &children, tree->nodes, node);
	if (*slot != 0)
		return *slot - 1;
	index = (uint32_t)tree->count++;
	tree->nodes[index] = *node;
	tree->nodes[index].next_sibling = tree->nodes[node->parent].first_child;
	tree->nodes[node->parent].first_child = index;
	index_table_enter(table, slot, index);
	return index;
}

/* ---- groups */

/* Adds a group, and takes over the name. UINT32_MAX if there is not enough memory. */
static uint32_t add_group(struct call_tree *tree, struct call_node *node, struct text *name)
{
	struct call_tree_store *store = tree->store;

	if (name->failed || !name->data) {
		text_clear(name);
		return UINT32_MAX;
	}
	/* The array has room for all groups: each is added once. */
	store->names[store->nr_names++] = name->data;
	node->group = name->data;
	return child_of(tree, node);
}

static uint32_t process_node(struct call_tree *tree, uint32_t process)
{
	const struct profile_process *of = &tree->profile->processes[process];
	struct call_node node = {.parent = 0, .function = CALL_TREE_GROUP, .group_number = process};
	const uint32_t known = find_child(tree, &node);
	struct text name = {0}, place = {0};

	if (tree->profile->nr_processes < 2)
		return 0;
	if (known != UINT32_MAX)
		return known;
	text_add(&name, of->command, strlen(of->command));
	text_format(&name, " %d", of->pid);
	if (cgroup_name(of->cgroup, &place))
		text_format(&name, " (%s)", place.data);
	text_clear(&place);
	return add_group(tree, &node, &name);
}

/* A group for a thread; `compared`: as for CALL_TREE_COMPARED_THREADS. */
static uint32_t thread_node(struct call_tree *tree, uint32_t thread, bool compared)
{
	const struct profile_thread *of = &tree->profile->threads[thread];
	struct call_node node = {.function = CALL_TREE_GROUP, .group_number = (int64_t)thread + UINT32_MAX};
	struct text name = {0};
	uint32_t known;

	node.parent = compared ? 0 : process_node(tree, of->process);
	if (node.parent == UINT32_MAX)
		return UINT32_MAX;
	known = find_child(tree, &node);
	if (known != UINT32_MAX)
		return known;
	text_format(&name, "thread");
	if (!compared)
		text_format(&name, " %d", of->tid);
	if (of->main)
		text_format(&name, " (main)");
	if (of->name) {
		text_add(&name, " ", 1);
		text_add(&name, of->name, strlen(of->name));
	}
	return add_group(tree, &node, &name);
}

/* ---- spans */

static bool add_to_path(struct call_tree_store *store, size_t depth, uint32_t node)
{
	if (!array_make_room(store->path, store->path_capacity, depth + 1))
		return false;
	store->path[depth] = node;
	return true;
}

/*
 * The node of a stack below `top`; UINT32_MAX if there is not enough memory. Consecutive stacks often have much in
 * common, so the nodes that were found are kept.
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
		const struct call_node child = {
		    .parent = here,
		    .function = frame->function,
		    .line = store->by == CALL_TREE_BY_LINE ? frame->line : 0,
		};

		here = child_of(tree, &child);
		if (here == UINT32_MAX)
			return UINT32_MAX;
		store->of_profile[store->path[depth]] = here;
		store->known_for[store->path[depth]] = top;
	}
	return here;
}

static bool add_span(struct call_tree *tree, uint32_t top, const struct profile_span *span)
{
	uint32_t node = stack_node(tree, top, span->node);

	if (node == UINT32_MAX)
		return false;
	tree->nodes[node].self[span->state] += span->weight_ns;
	tree->nodes[node].samples += span->count;
	return true;
}

/* The node below which a thread's stacks are; UINT32_MAX if there is not enough memory. */
static uint32_t top_node(struct call_tree *tree, enum call_tree_groups groups, uint32_t thread)
{
	switch (groups) {
	case CALL_TREE_THREADS:
	case CALL_TREE_COMPARED_THREADS:
		return thread_node(tree, thread, groups == CALL_TREE_COMPARED_THREADS);
	case CALL_TREE_PROCESSES:
		return process_node(tree, tree->profile->threads[thread].process);
	default:
		return 0;
	}
}

static bool add_spans(struct call_tree *tree, enum call_tree_groups groups)
{
	const struct profile *profile = tree->profile;

	for (size_t i = 0; i < profile->nr_spans; i++) {
		const struct profile_span *span = &profile->spans[i];
		const uint32_t top = top_node(tree, groups, span->thread);

		if (top == UINT32_MAX || !add_span(tree, top, span))
			return false;
	}
	return true;
}

static void add_up(struct call_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		memcpy(tree->nodes[i].total, tree->nodes[i].self, sizeof(tree->nodes[i].total));
	for (size_t i = tree->count; i-- > 1;)
		for (int state = 0; state < SAMPLE_STATES; state++)
			tree->nodes[tree->nodes[i].parent].total[state] += tree->nodes[i].total[state];
}

struct call_tree *call_tree_create(const struct profile *profile, enum call_tree_by by, enum call_tree_groups groups)
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
	store->of_profile = calloc(profile->nr_nodes, sizeof(*store->of_profile));
	store->known_for = malloc(profile->nr_nodes * sizeof(*store->known_for));
	store->names = calloc(profile->nr_processes + profile->nr_threads + 1, sizeof(*store->names));
	if (!store->of_profile || !store->known_for || !store->names || !make_room(tree)) {
		call_tree_destroy(tree);
		return NULL;
	}
	memset(store->known_for, 0xff, profile->nr_nodes * sizeof(*store->known_for));
	tree->nodes[0] = (struct call_node){.function = CALL_TREE_GROUP, .group = "all"};
	tree->count = 1;
	if (!add_spans(tree, groups)) {
		call_tree_destroy(tree);
		return NULL;
	}
	add_up(tree);
	return tree;
}

struct call_tree *call_tree_for(const struct profile *profile, const struct format_options *options)
{
	const enum call_tree_by by = options->lines ? CALL_TREE_BY_LINE : CALL_TREE_BY_FUNCTION;

	if (options->before)
		return call_tree_create(profile, by, options->threads ? CALL_TREE_COMPARED_THREADS : CALL_TREE_MERGED);
	return call_tree_create(profile, by, options->threads ? CALL_TREE_THREADS : CALL_TREE_PROCESSES);
}

void call_tree_destroy(struct call_tree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i < tree->store->nr_names; i++)
		free(tree->store->names[i]);
	free(tree->store->names);
	index_table_clear(&tree->store->by_parent);
	free(tree->store->of_profile);
	free(tree->store->known_for);
	free(tree->store->path);
	free(tree->store);
	free(tree->nodes);
	free(tree);
}
