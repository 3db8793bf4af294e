#include "report/flat.h"

#include <stdlib.h>

#include "report/call_tree.h"

static int by_time(const void *a, const void *b)
{
	const struct flat_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Drops rows that took no time, and sorts the others. */
static void finish(struct flat *flat)
{
	size_t kept = 0;

	for (size_t i = 0; i < flat->count; i++)
		if (flat->rows[i].self > 0 || flat->rows[i].total > 0)
			flat->rows[kept++] = flat->rows[i];
	flat->count = kept;
	if (kept > 0)
		qsort(flat->rows, kept, sizeof(*flat->rows), by_time);
}

/*
 * Walks the tree from the root. The total of a function is the total of its outermost calls.
 *   open  for each function: how many of its calls are on the current path
 */
static void add_calls(const struct call_tree *tree, uint32_t *open, struct flat_row *rows)
{
	uint32_t at = tree->nodes[0].first_child;

	while (at != 0) {
		const struct call_node *node = &tree->nodes[at];

		if (node->function != CALL_TREE_GROUP) {
			rows[node->function].self += call_node_self(node);
			if (open[node->function]++ == 0)
				rows[node->function].total += call_node_total(node);
		}
		if (node->first_child != 0) {
			at = node->first_child;
			continue;
		}
		for (; at != 0; at = tree->nodes[at].parent) {
			if (tree->nodes[at].function != CALL_TREE_GROUP)
				open[tree->nodes[at].function]--;
			if (tree->nodes[at].next_sibling != 0)
				break;
		}
		at = at == 0 ? 0 : tree->nodes[at].next_sibling;
	}
}

bool flat_by_function(const struct profile *profile, struct flat *ret)
{
	struct call_tree *tree = call_tree_create(profile, CALL_TREE_BY_FUNCTION, CALL_TREE_MERGED);
	uint32_t *open = calloc(profile->nr_functions + 1, sizeof(*open));

	*ret = (struct flat){.rows = calloc(profile->nr_functions + 1, sizeof(*ret->rows)),
			     .count = profile->nr_functions};
	if (!tree || !open || !ret->rows) {
		call_tree_destroy(tree);
		free(open);
		flat_clear(ret);
		return false;
	}
	for (size_t i = 0; i < ret->count; i++)
		ret->rows[i].function = (uint32_t)i;
	add_calls(tree, open, ret->rows);
	finish(ret);
	call_tree_destroy(tree);
	free(open);
	return true;
}

bool flat_by_line(const struct profile *profile, struct flat *ret)
{
	*ret = (struct flat){.rows = calloc(profile->nr_frames + 1, sizeof(*ret->rows)), .count = profile->nr_frames};
	if (!ret->rows)
		return false;
	for (size_t i = 0; i < ret->count; i++) {
		ret->rows[i].function = profile->frames[i].function;
		ret->rows[i].line = profile->frames[i].line;
	}
	for (size_t i = 0; i < profile->nr_spans; i++)
		if (profile->spans[i].node != 0)
			ret->rows[profile->nodes[profile->spans[i].node].frame].self += profile->spans[i].weight_ns;
	finish(ret);
	return true;
}

void flat_clear(struct flat *flat)
{
	free(flat->rows);
	*flat = (struct flat){0};
}
