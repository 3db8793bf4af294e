/*
 * A directed graph, for example of the objects of a heap and the references between them. The nodes have the numbers
 * from 0 to `nodes` - 1. Node 0 stands for the roots.
 *
 * The graph is stored in compressed sparse rows: the edges of all nodes are in one array, in the order of the nodes that
 * they come from. Memory: 4 bytes for each node, and 4 bytes for each edge. While edges are added, the array has room for up
 * to a quarter more edges, or for up to 262,144 more edges, whichever is greater. This room takes memory only when it is used.
 */
#ifndef RBDUMP_GRAPH_H
#define RBDUMP_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No node has this number. */
#define GRAPH_NONE UINT32_MAX

/* The maximum numbers of nodes and of edges. */
#define GRAPH_NODES_MAX 4000000000u
#define GRAPH_EDGES_MAX (UINT32_MAX - 1)

struct graph {
	uint32_t nodes, nr_edges;
	uint32_t *first; /* for each node, the index of its first edge in `edges`; the last element is nr_edges */
	uint32_t *edges; /* the nodes that the edges lead to */
	size_t capacity; /* of `edges` */
	uint32_t begun;	 /* how many nodes were begun or skipped; used only while the graph is made */
	bool incomplete; /* an edge could not be added; no later edge is added either */
};

/*
 * Creates a graph without edges. Then call graph_begin_node() for each node that has edges, in ascending order, and
 * graph_add() for each edge of the node. Finally, call graph_finish().
 *   nodes  from 1 to GRAPH_NODES_MAX
 * Returns false, and leaves nothing to free, if there is not enough memory. The caller frees `ret` with graph_clear().
 */
bool graph_create(uint32_t nodes, struct graph *ret);
void graph_clear(struct graph *graph); /* a zeroed struct is fine */

/*
 * Begins a node: until the next call of this function, graph_add() adds edges from this node. The number of the node must be
 * greater than the number of the node that was begun before.
 */
void graph_begin_node(struct graph *graph, uint32_t node);

/*
 * Adds an edge from the node that was begun last. Does nothing if `to` is 0: nothing refers to the roots, and slots_number()
 * returns 0 for an address that is not the address of a slot. Also does nothing if the previous edge from this node already
 * leads to `to`. Apart from that, a node can have the same edge several times. Sets `incomplete` if there is not enough
 * memory, or if there would be more than GRAPH_EDGES_MAX edges.
 */
void graph_add(struct graph *graph, uint32_t to);

/* Finishes the graph: after this call, no edge can be added. Returns false if the graph is incomplete. */
bool graph_finish(struct graph *graph);

/* The nodes that the edges of a node lead to; NULL if the node has no edges. The graph must be finished. */
static inline const uint32_t *graph_edges(const struct graph *graph, uint32_t node, uint32_t *count)
{
	*count = graph->first[node + 1] - graph->first[node];
	return *count > 0 ? graph->edges + graph->first[node] : NULL;
}

/*
 * Finds a shortest path from node 0 to each node (breadth-first search). The edges of node 0 can have ranks. If they have
 * ranks, these edges must be sorted by rank, the lowest rank first. A path has the rank of its first edge. Of all paths to a
 * node, the function looks only at the paths with the lowest rank, and finds a shortest one of them.
 *   ranks  for each rank except the lowest, the index of the first edge of node 0 that has this rank, in ascending order;
 *          NULL if `nr_ranks` is 0
 * Returns, for each node, the previous node on its path: GRAPH_NONE for node 0, and for nodes to which no path leads.
 * Needs 8 bytes for each node; 4 of them are for the result. Returns NULL if there is not enough memory. The caller
 * frees the array with free().
 */
uint32_t *graph_shortest_paths(const struct graph *graph, const uint32_t *ranks, size_t nr_ranks);

#endif
