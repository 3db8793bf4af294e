#include "heap/graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The array of edges grows by a quarter, and by at least so many edges. */
#define GROWTH_MIN ((size_t)1 << 18)

/*
 * Changes the size of the array of edges. The array is an anonymous mapping of its own: the kernel makes a mapping
 * larger by moving its pages to other addresses (mremap(2)). So there is never a second copy, which realloc() can need,
 * and the part that is not used yet takes no memory.
 */
static bool set_capacity(struct graph *graph, size_t capacity)
{
	void *edges;

	if (graph->edges)
		edges = mremap(graph->edges, graph->capacity * sizeof(uint32_t), capacity * sizeof(uint32_t),
			       MREMAP_MAYMOVE);
	else
		edges =
		    mmap(NULL, capacity * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (edges == MAP_FAILED)
		return false;
	graph->edges = edges;
	graph->capacity = capacity;
	return true;
}

bool graph_create(uint32_t nodes, struct graph *ret)
{
	*ret = (struct graph){.nodes = nodes};
	ret->first = calloc((size_t)nodes + 1, sizeof(ret->first[0]));
	return ret->first != NULL;
}

void graph_clear(struct graph *graph)
{
	free(graph->first);
	if (graph->edges)
		munmap(graph->edges, graph->capacity * sizeof(uint32_t));
	*graph = (struct graph){0};
}

void graph_begin_node(struct graph *graph, uint32_t node)
{
	while (graph->begun <= node)
		graph->first[graph->begun++] = graph->nr_edges;
}

/* Makes room for more edges. */
static bool grow(struct graph *graph)
{
	const size_t more = graph->capacity / 4 > GROWTH_MIN ? graph->capacity / 4 : GROWTH_MIN;

	return graph->nr_edges < GRAPH_EDGES_MAX && set_capacity(graph, graph->capacity + more);
}

void graph_add(struct graph *graph, uint32_t to)
{
	const bool has_edges = graph->nr_edges > graph->first[graph->begun - 1];

	if (to == 0 || graph->incomplete || (has_edges && graph->edges[graph->nr_edges - 1] == to))
		return;
	if (graph->nr_edges == graph->capacity && !grow(graph)) {
		graph->incomplete = true;
		return;
	}
	graph->edges[graph->nr_edges++] = to;
}

bool graph_finish(struct graph *graph)
{
	while (graph->begun <= graph->nodes)
		graph->first[graph->begun++] = graph->nr_edges;
	return !graph->incomplete;
}

/* Puts the nodes that edges lead to into the queue, if they were not found before. Returns the new end of the queue. */
static uint32_t enqueue(const struct graph *graph, uint32_t from, uint32_t first, uint32_t last, uint32_t *before,
			uint32_t *queue, uint32_t end)
{
	for (uint32_t i = first; i < last; i++) {
		const uint32_t to = graph->edges[i];

		if (to != 0 && before[to] == GRAPH_NONE) {
			before[to] = from;
			queue[end++] = to;
		}
	}
	return end;
}

static void search(const struct graph *graph, const uint32_t *ranks, size_t nr_ranks, uint32_t *before, uint32_t *queue)
{
	const uint32_t of_root = graph->first[1];
	uint32_t next = 0, end = 0, edge = 0;

	for (size_t i = 0; i <= nr_ranks; i++) {
		const uint32_t last = i < nr_ranks && ranks[i] < of_root ? ranks[i] : of_root;

		end = enqueue(graph, 0, edge, last, before, queue, end);
		edge = last > edge ? last : edge;
		for (; next < end; next++)
			end = enqueue(graph, queue[next], graph->first[queue[next]], graph->first[queue[next] + 1],
				      before, queue, end);
	}
}

uint32_t *graph_shortest_paths(const struct graph *graph, const uint32_t *ranks, size_t nr_ranks)
{
	uint32_t *before = malloc(graph->nodes * sizeof(*before)), *queue = malloc(graph->nodes * sizeof(*queue));

	if (!before || !queue) {
		free(before);
		free(queue);
		return NULL;
	}
	memset(before, 0xff, graph->nodes * sizeof(*before)); /* GRAPH_NONE */
	search(graph, ranks, nr_ranks, before, queue);
	free(queue);
	return before;
}
