#include "heap/tree.h"

#include <stdlib.h>

#include "heap/graph.h"
#include "heap/sums.h"

/* A counting sort by the parent. */
static void sort_children(const uint32_t *parents, uint32_t nodes, struct tree *tree)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < nodes; i++)
		if (parents[i] != GRAPH_NONE)
			tree->first[parents[i]]++;
	for (uint32_t i = 0; i < nodes; i++) {
		sum += tree->first[i];
		tree->first[i] = sum;
	}
	tree->first[nodes] = sum;
	for (uint32_t i = nodes; i-- > 0;)
		if (parents[i] != GRAPH_NONE)
			tree->children[--tree->first[parents[i]]] = i;
}

/* Adds up weights, each node after all its children: the reverse of the order in which they are found from node 0. */
static void add_weights(const uint32_t *parents, const struct tree *tree, uint32_t *order, uint64_t *weights)
{
	uint32_t found = 1;

	order[0] = 0;
	for (uint32_t i = 0; i < found; i++) {
		uint32_t count;
		const uint32_t *children = tree_children(tree, order[i], &count);

		for (uint32_t j = 0; j < count; j++)
			order[found++] = children[j];
	}
	while (found-- > 1)
		sum_add(&weights[parents[order[found]]], weights[order[found]]);
}

bool tree_make(const uint32_t *parents, uint32_t nodes, uint64_t *weights, struct tree *ret)
{
	uint32_t *order = malloc(nodes * sizeof(order[0]));

	*ret = (struct tree){
	    .first = calloc((size_t)nodes + 1, sizeof(ret->first[0])),
	    .children = malloc(nodes * sizeof(ret->children[0])),
	};
	if (!order || !ret->first || !ret->children) {
		free(order);
		tree_clear(ret);
		return false;
	}
	sort_children(parents, nodes, ret);
	add_weights(parents, ret, order, weights);
	free(order);
	return true;
}

void tree_clear(struct tree *tree)
{
	free(tree->first);
	free(tree->children);
	*tree = (struct tree){0};
}
