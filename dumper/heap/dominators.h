/*
 * Dominators of the nodes of a graph, and retained sizes.
 *
 * Node A dominates node B if each path from node 0 to B goes through A. In a heap, object A dominates object B if B would
 * become garbage together with A. The retained size of an object is its own size plus the sizes of all objects that it
 * dominates. The immediate dominator of a node is its closest dominator: all other dominators of the node also dominate the
 * immediate dominator. So the nodes form a tree: the parent of each node is its immediate dominator, and node 0 is the
 * root.
 *
 * Algorithm: SEMI-NCA (Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", 2005), with two changes:
 * it needs no recursion and no stack, and it takes O(m log n) time for any graph of n nodes and m edges. Without the second
 * change, a long linked list could make the algorithm take O(n * n) time. Not only hostile targets, but also ordinary
 * targets can have such lists.
 *
 * Memory, besides the graph: at most 24 bytes for each node, and 4 bytes for each edge. The result takes 8 bytes for
 * each node.
 */
#ifndef RBDUMP_DOMINATORS_H
#define RBDUMP_DOMINATORS_H

#include "heap/graph.h"

struct dominators {
	/* For each node, its immediate dominator. GRAPH_NONE for node 0, and for nodes that cannot be reached. */
	uint32_t *immediate;
	/*
	 * The nodes that can be reached from node 0. Each node comes after its immediate dominator, so node 0 is the first
	 * one.
	 */
	uint32_t *order;
	uint32_t reached; /* how many nodes can be reached, including node 0 */
};

/*
 * Finds the dominators of a graph. The graph must be finished (graph_finish()). Returns false, and leaves nothing to
 * free, if there is not enough memory. The caller frees `ret` with dominators_clear().
 */
bool dominators_find(const struct graph *graph, struct dominators *ret);
void dominators_clear(struct dominators *dominators); /* a zeroed struct is fine */

/*
 * Computes retained sizes. Needs no memory.
 *   sizes  before the call: the own size of each node of the graph; after the call: the retained size of each node, at
 *          most SUM_MAX (heap/sums.h). The size of a node that cannot be reached does not change
 */
void dominators_retained(const struct dominators *dominators, uint64_t *sizes);

#endif
