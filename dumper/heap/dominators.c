#include "heap/dominators.h"

#include <stdlib.h>
#include <string.h>

#include "heap/sums.h"

/*
 * Here, nodes have the numbers in which a depth-first search reaches them: 1 for node 0 of the graph, and so on up to
 * `reached`. 0 is no node. The ancestors of a node in the tree of the search have lower numbers than the node.
 */
struct search {
	const struct graph *graph;
	uint32_t reached;
	uint32_t *order;  /* by number, the node of the graph */
	uint32_t *parent; /* by number, the parent in the tree of the search */
	uint32_t *degree; /* by node of the graph: how many edges to it were tried */
};

/* The nodes from which edges lead to a node: from[first[node]] up to before from[first[node + 1]]. */
struct predecessors {
	uint32_t *first, *from;
};

/*
 * What is known of a node that is linked to the forest: `least` is the least semidominator of the nodes on the path in
 * the tree from this node up to before `ancestor`.
 */
struct link {
	uint32_t ancestor, least;
};

/* A node in the tree of dominators: how deep it is, and an ancestor that is far above it. */
struct level {
	uint32_t depth, jump;
};

/* How many predecessors ahead a link is fetched. */
#define PREFETCHED 16u

/* An array with an item for each number, and for 0. NULL if there is not enough memory. */
static void *array_of(const struct graph *graph, size_t size)
{
	return calloc((size_t)graph->nodes + 1, size);
}

/* ---- the search */

static void reach(struct search *search, uint32_t node, uint32_t parent)
{
	const uint32_t number = ++search->reached;

	search->order[number] = node;
	search->parent[number] = parent;
}

/* The next node that an edge from `node` is the first one to reach. GRAPH_NONE if there is none. */
static uint32_t next_node(const struct search *search, uint32_t node, uint32_t *tried)
{
	uint32_t count;
	const uint32_t *edges = graph_edges(search->graph, node, &count);

	while (*tried < count) {
		const uint32_t to = edges[(*tried)++];

		if (search->degree[to]++ == 0)
			return to;
	}
	return GRAPH_NONE;
}

/*
 * Numbers the nodes. The stack of the search is the path in the tree from the current node to its root. No edge leads
 * from a node that is reached back to node 0 (graph_add()).
 *   tried  for each number, how many edges of the node were tried; zeroed
 */
static void number_nodes(struct search *search, uint32_t *tried)
{
	uint32_t current = 1;

	reach(search, 0, 0);
	while (current != 0) {
		const uint32_t to = next_node(search, search->order[current], &tried[current]);

		if (to == GRAPH_NONE) {
			current = search->parent[current];
		} else {
			reach(search, to, current);
			current = search->reached;
		}
	}
}

static void clear_search(struct search *search)
{
	free(search->order);
	free(search->parent);
	free(search->degree);
}

static bool search_depth_first(const struct graph *graph, struct search *ret)
{
	uint32_t *tried = array_of(graph, sizeof(*tried));

	*ret = (struct search){.graph = graph,
			       .order = array_of(graph, sizeof(uint32_t)),
			       .parent = array_of(graph, sizeof(uint32_t)),
			       .degree = array_of(graph, sizeof(uint32_t))};
	if (!tried || !ret->order || !ret->parent || !ret->degree) {
		free(tried);
		clear_search(ret);
		return false;
	}
	number_nodes(ret, tried);
	free(tried);
	return true;
}

/* ---- the predecessors */

/*
 * Finds the place of the predecessors of each node. Replaces the degree of each node by the index of its first
 * predecessor. Returns how many predecessors there are.
 */
static uint32_t place_predecessors(struct search *search, uint32_t *first)
{
	uint32_t next = 0;

	for (uint32_t number = 1; number <= search->reached; number++) {
		const uint32_t node = search->order[number], degree = search->degree[node];

		search->degree[node] = first[number] = next;
		next += degree;
	}
	first[search->reached + 1] = next;
	return next;
}

static void fill_predecessors(struct search *search, uint32_t *from)
{
	for (uint32_t number = 1; number <= search->reached; number++) {
		uint32_t count;
		const uint32_t *edges = graph_edges(search->graph, search->order[number], &count);

		for (uint32_t i = 0; i < count; i++)
			from[search->degree[edges[i]]++] = number;
	}
}

static void clear_predecessors(struct predecessors *predecessors)
{
	free(predecessors->first);
	free(predecessors->from);
}

/* Uses up and frees `degree` of the search. */
static bool find_predecessors(struct search *search, struct predecessors *ret)
{
	*ret = (struct predecessors){.first = calloc((size_t)search->reached + 2, sizeof(ret->first[0]))};
	if (!ret->first)
		return false;
	ret->from = calloc((size_t)place_predecessors(search, ret->first) + 1, sizeof(ret->from[0]));
	if (!ret->from) {
		free(ret->first);
		return false;
	}
	fill_predecessors(search, ret->from);
	free(search->degree);
	search->degree = NULL;
	return true;
}

/* ---- semidominators */

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Evaluates a predecessor of `current`. Only nodes with higher numbers than `current` are linked. The result is the
 * least semidominator of the node and of its linked ancestors, or the node itself if it is not linked. On the way up,
 * every other node is linked to the ancestor of its ancestor (path halving), so the next way is shorter.
 */
static uint32_t evaluate(struct link *links, uint32_t node, uint32_t current)
{
	uint32_t least = node;

	while (node > current) {
		struct link *link = &links[node];

		if (link->ancestor > current) {
			const struct link *above = &links[link->ancestor];

			link->least = min(link->least, above->least);
			link->ancestor = above->ancestor;
		}
		least = min(least, link->least);
		node = link->ancestor;
	}
	return least;
}

/*
 * The semidominator of a node is the lowest node from which a path leads to it, on which all others have higher numbers
 * than the node itself.
 */
static void find_semidominators(const struct search *search, const struct predecessors *predecessors,
				struct link *links, uint32_t *ret)
{
	for (uint32_t node = search->reached; node > 1; node--) {
		uint32_t least = search->parent[node];

		for (uint32_t i = predecessors->first[node + 1]; i-- > predecessors->first[node];) {
			/* Most of the time is spent waiting for links, which are anywhere in memory. */
			if (i >= PREFETCHED)
				__builtin_prefetch(&links[predecessors->from[i - PREFETCHED]]);
			least = min(least, evaluate(links, predecessors->from[i], node));
		}
		ret[node] = least;
		links[node] = (struct link){.ancestor = search->parent[node], .least = least};
	}
}

/* Uses up `degree` of the search. Returns NULL if there is not enough memory. */
static uint32_t *semidominators(struct search *search)
{
	struct predecessors predecessors;
	struct link *links;
	uint32_t *ret;

	if (!find_predecessors(search, &predecessors))
		return NULL;
	links = array_of(search->graph, sizeof(*links));
	ret = array_of(search->graph, sizeof(*ret));
	if (links && ret)
		find_semidominators(search, &predecessors, links, ret);
	clear_predecessors(&predecessors);
	if (!links) {
		free(ret);
		return NULL;
	}
	free(links);
	return ret;
}

/* ---- immediate dominators */

/*
 * A jump pointer (Myers, "An Applicative Random-Access Stack", 1983): with such pointers, the way to any ancestor has
 * O(log n) steps.
 */
static struct level level_below(const struct level *levels, uint32_t dominator)
{
	const struct level *above = &levels[dominator], *jump = &levels[above->jump];
	const bool is_same = above->depth - jump->depth == jump->depth - levels[jump->jump].depth;

	return (struct level){.depth = above->depth + 1, .jump = is_same ? jump->jump : dominator};
}

/*
 * The immediate dominator of a node is the lowest common ancestor, in the tree of dominators, of its parent and of its
 * semidominator. That is the first ancestor of its parent with a number that is not above the semidominator.
 *   dominators  the parents in the tree of the search; receives the immediate dominators
 */
static void find_immediate(const uint32_t *semidominators, struct level *levels, uint32_t reached, uint32_t *dominators)
{
	levels[1] = (struct level){.depth = 0, .jump = 1};
	for (uint32_t node = 2; node <= reached; node++) {
		uint32_t at = dominators[node];

		while (at > semidominators[node])
			at = levels[at].jump >= semidominators[node] ? levels[at].jump : dominators[at];
		dominators[node] = at;
		levels[node] = level_below(levels, at);
	}
}

/* Replaces the parents of a search by the immediate dominators. Returns false if there is not enough memory. */
static bool replace_parents(struct search *search)
{
	uint32_t *semi = semidominators(search);
	struct level *levels = array_of(search->graph, sizeof(*levels));

	if (semi && levels)
		find_immediate(semi, levels, search->reached, search->parent);
	free(semi);
	free(levels);
	return semi && levels;
}

/* Gives the nodes the numbers that they have in the graph. Takes `order` from the search. */
static bool translate(struct search *search, struct dominators *ret)
{
	const size_t nodes = search->graph->nodes;
	uint32_t *immediate = malloc(nodes * sizeof(*immediate));

	if (!immediate)
		return false;
	memset(immediate, 0xff, nodes * sizeof(*immediate)); /* GRAPH_NONE */
	for (uint32_t number = 2; number <= search->reached; number++)
		immediate[search->order[number]] = search->order[search->parent[number]];
	memmove(search->order, search->order + 1, search->reached * sizeof(search->order[0]));
	*ret = (struct dominators){.immediate = immediate, .order = search->order, .reached = search->reached};
	search->order = NULL;
	return true;
}

bool dominators_find(const struct graph *graph, struct dominators *ret)
{
	struct search search;
	bool done;

	*ret = (struct dominators){0};
	if (!search_depth_first(graph, &search))
		return false;
	done = replace_parents(&search) && translate(&search, ret);
	clear_search(&search);
	return done;
}

void dominators_clear(struct dominators *dominators)
{
	free(dominators->immediate);
	free(dominators->order);
	*dominators = (struct dominators){0};
}

void dominators_retained(const struct dominators *dominators, uint64_t *sizes)
{
	/* From the leaves of the tree of dominators to its root. */
	for (uint32_t i = dominators->reached - 1; i > 0; i--) {
		const uint32_t node = dominators->order[i];

		sum_add(&sizes[dominators->immediate[node]], sizes[node]);
	}
}
