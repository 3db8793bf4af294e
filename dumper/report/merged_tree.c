#include "report/merged_tree.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* A function of one of the profiles, and where its number goes. */
struct function_ref {
	const struct profile_function *function;
	uint32_t *id;
	enum merged_side side;
};

struct merge {
	struct merged_tree *tree;
	uint32_t *function_ids[MERGED_SIDES]; /* by index in the profile */
	void *index;			      /* of the nodes, by tsearch() */
};

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Returns 0 for functions that are the same, even if their first lines differ. */
static int compare_functions(const struct profile_function *a, const struct profile_function *b)
{
	int order = (a->kind > b->kind) - (a->kind < b->kind);

	if (order == 0)
		order = compare_texts(a->name, b->name);
	return order != 0 ? order : compare_texts(a->path, b->path);
}

/* Equal functions come together: first those of the profile after, in its order. */
static int compare_refs(const void *a, const void *b)
{
	const struct function_ref *one = a, *other = b;
	int order = compare_functions(one->function, other->function);

	if (order == 0)
		order = (one->side > other->side) - (one->side < other->side);
	return order != 0 ? order : (one->function > other->function) - (one->function < other->function);
}

static size_t refer(struct merge *merge, const struct profile *profile, enum merged_side side,
		    struct function_ref *refs)
{
	for (size_t i = 0; i < profile->nr_functions; i++)
		refs[i] = (struct function_ref){&profile->functions[i], &merge->function_ids[side][i], side};
	return profile->nr_functions;
}

/*
 * Numbers the functions. Those of a single profile keep their order; of two profiles, equal functions get one number.
 */
static void number_functions(struct merge *merge, struct function_ref *refs, size_t count, bool two)
{
	struct merged_tree *tree = merge->tree;

	if (two)
		qsort(refs, count, sizeof(*refs), compare_refs);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || !two || compare_functions(refs[i - 1].function, refs[i].function) != 0)
			tree->functions[tree->nr_functions++] = refs[i].function;
		*refs[i].id = (uint32_t)(tree->nr_functions - 1);
	}
}

static bool merge_functions(struct merge *merge, const struct profile *after, const struct profile *before)
{
	size_t count = after->nr_functions + (before ? before->nr_functions : 0), referred;
	struct function_ref *refs = calloc(count + 1, sizeof(*refs));

	merge->tree->functions = calloc(count + 1, sizeof(const struct profile_function *));
	merge->function_ids[MERGED_AFTER] = calloc(after->nr_functions + 1, sizeof(uint32_t));
	merge->function_ids[MERGED_BEFORE] = calloc((before ? before->nr_functions : 0) + 1, sizeof(uint32_t));
	if (!refs || !merge->tree->functions || !merge->function_ids[MERGED_AFTER] ||
	    !merge->function_ids[MERGED_BEFORE]) {
		free(refs);
		return false;
	}
	referred = refer(merge, after, MERGED_AFTER, refs);
	if (before)
		refer(merge, before, MERGED_BEFORE, refs + referred);
	number_functions(merge, refs, count, before != NULL);
	free(refs);
	return true;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct merged_node *one = a, *other = b;

	if (one->parent != other->parent)
		return one->parent > other->parent ? 1 : -1;
	if (one->function != other->function)
		return one->function > other->function ? 1 : -1;
	if (one->line != other->line)
		return one->line > other->line ? 1 : -1;
	if (one->ordinal != other->ordinal)
		return one->ordinal > other->ordinal ? 1 : -1;
	return one->group && other->group ? strcmp(one->group, other->group) : 0;
}

/* The node that equals `wanted`, added if necessary. NULL if there is not enough memory. */
static struct merged_node *find_or_add(struct merge *merge, const struct merged_node *wanted)
{
	struct merged_node *candidate = &merge->tree->nodes[merge->tree->count], **found;

	*candidate = *wanted;
	found = tsearch(candidate, &merge->index, compare_nodes);
	if (!found)
		return NULL;
	if (*found == candidate)
		merge->tree->count++;
	return *found;
}

/* Groups of one tree are never merged: in both trees, the second of equal groups has the ordinal 1. */
static struct merged_node *find_group(struct merge *merge, struct merged_node *wanted, enum merged_side side)
{
	struct merged_node *first = find_or_add(merge, wanted);

	if (!first || first->same[side]++ == 0)
		return first;
	wanted->ordinal = first->same[side] - 1;
	return find_or_add(merge, wanted);
}

static struct merged_node *place(struct merge *merge, const struct call_node *node, enum merged_side side,
				 const uint32_t *places)
{
	struct merged_node wanted = {.parent = places[node->parent], .line = node->line};

	if (node->function == CALL_TREE_GROUP) {
		wanted.function = CALL_TREE_GROUP;
		wanted.group = node->group;
		return find_group(merge, &wanted, side);
	}
	wanted.function = merge->function_ids[side][node->function];
	return find_or_add(merge, &wanted);
}

static void add_weights(struct merged_node *to, const struct call_node *from, enum merged_side side)
{
	for (int i = 0; i < SAMPLE_STATES; i++)
		to->self[side][i] += from->self[i];
	to->samples[side] += from->samples;
}

/* The root is added separately, because it has no parent. */
static bool merge_tree(struct merge *merge, const struct call_tree *from, enum merged_side side)
{
	uint32_t *places = calloc(from->count, sizeof(*places)); /* of the nodes, in the merged tree */

	if (!places)
		return false;
	add_weights(&merge->tree->nodes[0], &from->nodes[0], side);
	for (size_t i = 1; i < from->count; i++) {
		struct merged_node *node = place(merge, &from->nodes[i], side, places);

		if (!node) {
			free(places);
			return false;
		}
		add_weights(node, &from->nodes[i], side);
		places[i] = (uint32_t)(node - merge->tree->nodes);
	}
	free(places);
	return true;
}

static void keep_node(void *node)
{
	(void)node; /* owned by the array */
}

/* Has room for one more node than both trees have: the candidate that is searched for. */
static bool merge_all(struct merge *merge, const struct call_tree *after, const struct call_tree *before)
{
	size_t most = after->count + (before ? before->count : 0) + 1;

	merge->tree->nodes = calloc(most, sizeof(*merge->tree->nodes));
	if (!merge->tree->nodes || !merge_functions(merge, after->profile, before ? before->profile : NULL))
		return false;
	merge->tree->nodes[0].function = CALL_TREE_GROUP;
	merge->tree->count = 1;
	return merge_tree(merge, after, MERGED_AFTER) && (!before || merge_tree(merge, before, MERGED_BEFORE));
}

struct merged_tree *merged_tree_create(const struct call_tree *after, const struct call_tree *before)
{
	struct merge merge = {.tree = calloc(1, sizeof(*merge.tree))};
	bool merged = merge.tree && merge_all(&merge, after, before);

	tdestroy(merge.index, keep_node);
	free(merge.function_ids[MERGED_AFTER]);
	free(merge.function_ids[MERGED_BEFORE]);
	if (merged)
		return merge.tree;
	merged_tree_destroy(merge.tree);
	return NULL;
}

void merged_tree_destroy(struct merged_tree *tree)
{
	if (!tree)
		return;
	free(tree->functions);
	free(tree->nodes);
	free(tree);
}
