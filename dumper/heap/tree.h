/*
 * A tree of the nodes of a graph, with the weight of each subtree. There are two such trees. In the tree of the
 * immediate dominators, the weight of a subtree is the number of bytes that its topmost node retains. In the tree of
 * the shortest paths from the roots, the weight of a subtree is the number of its objects that have a certain class.
 *
 * Memory: 12 bytes for each node, of which 4 are needed only while the tree is made.
 */
#ifndef RBDUMP_TREE_H
#define RBDUMP_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree {
	uint32_t *first;    /* index of each node's first child; the last element is the number of all children */
	uint32_t *children; /* the children of node 0, then those of node 1, and so on */
};

/*
 * Makes a tree, and adds the weight of each node to that of its parent, from the leaves up.
 *   parents  the parent of each of `nodes` nodes; GRAPH_NONE: the node is not in the tree, or is node 0. There must be
 *            no cycle
 *   weights  before the call: the weight of each node; after the call: the weight of each subtree, at most SUM_MAX
 *            (heap/sums.h). Weights of nodes that are not in the tree do not change
 * Returns false if there is not enough memory. The caller frees `ret` with tree_clear().
 */
bool tree_make(const uint32_t *parents, uint32_t nodes, uint64_t *weights, struct tree *ret);
void tree_clear(struct tree *tree); /* a zeroed struct is fine */

/* The children of a node. */
static inline const uint32_t *tree_children(const struct tree *tree, uint32_t node, uint32_t *count)
{
	*count = tree->first[node + 1] - tree->first[node];
	return tree->children + tree->first[node];
}

#endif
