/*
 * Dominators and retained sizes, against a naive algorithm: it removes each node in turn, and sees which nodes can no
 * longer be reached. Large graphs, of forms for which a careless algorithm takes long.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "heap/dominators.h"
#include "synthetic_graph.h"

enum { GRAPHS = 600 };

/* The nodes of a large graph, and more time than it takes, sanitized and on a busy machine. */
#define LARGE	1000000u
#define MUCH_NS 60000000000L

/* Which nodes can be reached without a node. */
static void reach_without(const struct matrix *matrix, uint32_t removed, bool *reached)
{
	bool more = removed != 0;

	memset(reached, 0, MATRIX_NODES);
	reached[0] = removed != 0;
	while (more) {
		more = false;
		for (uint32_t from = 0; from < matrix->nodes; from++)
			for (uint32_t to = 0; reached[from] && to < matrix->nodes; to++)
				if (matrix->edges[from][to] && to != removed && !reached[to])
					more = reached[to] = true;
	}
}

/* dominates[a][b]: a dominates b. Each node that can be reached dominates itself. */
static void dominate_naively(const struct matrix *matrix, bool dominates[MATRIX_NODES][MATRIX_NODES])
{
	bool all[MATRIX_NODES], without[MATRIX_NODES];

	reach_without(matrix, MATRIX_NODES, all);
	for (uint32_t a = 0; a < matrix->nodes; a++) {
		reach_without(matrix, a, without);
		for (uint32_t b = 0; b < matrix->nodes; b++)
			dominates[a][b] = all[b] && !without[b];
	}
}

/* The strict dominator of a node that all other ones dominate. */
static uint32_t immediate_naively(const struct matrix *matrix, bool dominates[MATRIX_NODES][MATRIX_NODES],
				  uint32_t node)
{
	for (uint32_t a = 0; a < matrix->nodes; a++) {
		bool is_closest = a != node && dominates[a][node];

		for (uint32_t b = 0; is_closest && b < matrix->nodes; b++)
			is_closest = b == node || !dominates[b][node] || dominates[b][a];
		if (is_closest)
			return a;
	}
	return GRAPH_NONE;
}

static void check_order(const struct dominators *dominators, bool dominates[MATRIX_NODES][MATRIX_NODES], uint32_t nodes)
{
	bool seen[MATRIX_NODES] = {false};
	uint32_t reached = 0;

	for (uint32_t i = 0; i < nodes; i++)
		reached += dominates[0][i];
	assert_int_equal(dominators->reached, reached);
	assert_int_equal(dominators->order[0], 0);
	seen[0] = true;
	for (uint32_t i = 1; i < reached; i++) {
		assert_false(seen[dominators->order[i]]);
		assert_true(seen[dominators->immediate[dominators->order[i]]]);
		seen[dominators->order[i]] = true;
	}
}

static void check_sizes(const struct dominators *dominators, bool dominates[MATRIX_NODES][MATRIX_NODES], uint32_t nodes,
			uint64_t *seed)
{
	uint64_t own[MATRIX_NODES], sizes[MATRIX_NODES];

	for (uint32_t i = 0; i < nodes; i++)
		sizes[i] = own[i] = random_next(seed) >> 8;
	dominators_retained(dominators, sizes);
	for (uint32_t a = 0; a < nodes; a++) {
		uint64_t sum = dominates[a][a] ? 0 : own[a];

		for (uint32_t b = 0; b < nodes; b++)
			sum += dominates[a][b] ? own[b] : 0;
		assert_int_equal(sizes[a], sum);
	}
}

static void test_random_graphs(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < GRAPHS; i++) {
		struct matrix matrix;
		struct graph graph;
		struct dominators dominators;
		bool dominates[MATRIX_NODES][MATRIX_NODES];

		synthetic_matrix(&seed, &matrix);
		synthetic_graph(&matrix, &graph);
		dominate_naively(&matrix, dominates);
		assert_true(dominators_find(&graph, &dominators));
		for (uint32_t node = 0; node < matrix.nodes; node++)
			assert_int_equal(dominators.immediate[node], immediate_naively(&matrix, dominates, node));
		check_order(&dominators, dominates, matrix.nodes);
		check_sizes(&dominators, dominates, matrix.nodes, &seed);
		dominators_clear(&dominators);
		graph_clear(&graph);
	}
}

/* There is nothing but the roots. */
static void test_empty(void **state)
{
	struct graph graph;
	struct dominators dominators;
	uint64_t size = 7;

	(void)state;
	assert_true(graph_create(1, &graph));
	assert_true(graph_finish(&graph));
	assert_true(dominators_find(&graph, &dominators));
	assert_int_equal(dominators.reached, 1);
	assert_int_equal(dominators.immediate[0], GRAPH_NONE);
	dominators_retained(&dominators, &size);
	assert_int_equal(size, 7);
	dominators_clear(&dominators);
	graph_clear(&graph);
}

#if !defined(__SANITIZE_ADDRESS__)
/* The address space that this process has, in bytes. */
static size_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu", &pages), 1);
	fclose(file);
	return pages * (size_t)getpagesize();
}

/* Lets this process have so many bytes of address space more than it has now; SIZE_MAX: any number. */
static void limit_memory(size_t more)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = more == SIZE_MAX ? limit.rlim_max : address_space() + more;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static bool can_find_paths(const struct graph *graph)
{
	uint32_t *before = graph_shortest_paths(graph, NULL, 0);
	const bool done = before != NULL;

	free(before);
	return done;
}

static bool can_find_dominators(const struct graph *graph)
{
	struct dominators dominators;
	const bool done = dominators_find(graph, &dominators);

	if (done)
		dominators_clear(&dominators);
	return done;
}

static bool can_add_edges(const struct graph *graph)
{
	struct graph copy;
	bool done = graph_create(graph->nodes, &copy);

	for (uint32_t node = 0; done && node < graph->nodes; node++) {
		graph_begin_node(&copy, node);
		graph_add(&copy, 1);
	}
	done = done && graph_finish(&copy);
	graph_clear(&copy);
	return done;
}

/*
 * With less memory than is needed, each function says so, and frees what it has allocated.
 *   failures  how many allocations can fail, at least
 */
static void check_without_memory(bool (*function)(const struct graph *), const struct graph *graph, int failures)
{
	const size_t before = address_space(), step = graph->nodes;
	int failed = 0;
	bool done = false;

	for (size_t more = 0; !done; more += step, failed += !done) {
		assert_in_range(more, 0, 100 * step);
		limit_memory(more);
		done = function(graph);
		limit_memory(SIZE_MAX);
		assert_int_equal(address_space(), before);
	}
	assert_true(failed >= 4 * failures - 3);
}

static void test_no_memory(void **state)
{
	struct graph graph;

	(void)state;
	/* So that each large array is a mapping of its own. */
	assert_int_equal(mallopt(M_MMAP_THRESHOLD, 128 << 10), 1);
	assert_true(graph_create(LARGE, &graph));
	for (uint32_t i = 0; i < LARGE; i++) {
		graph_begin_node(&graph, i);
		graph_add(&graph, i + 1 < LARGE ? i + 1 : 0);
		graph_add(&graph, 1);
	}
	assert_true(graph_finish(&graph));
	check_without_memory(can_find_paths, &graph, 2);
	check_without_memory(can_add_edges, &graph, 2);
	check_without_memory(can_find_dominators, &graph, 6);
	graph_clear(&graph);
}
#endif

/* Finds the dominators and retained sizes of a large graph, each node of which has the size 1. */
static uint64_t *find_large(struct graph *graph, struct dominators *ret)
{
	uint64_t *sizes = malloc(graph->nodes * sizeof(*sizes));
	struct timespec began;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	assert_non_null(sizes);
	assert_true(graph_finish(graph));
	assert_true(dominators_find(graph, ret));
	assert_int_equal(ret->reached, graph->nodes);
	for (uint32_t i = 0; i < graph->nodes; i++)
		sizes[i] = 1;
	dominators_retained(ret, sizes);
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < MUCH_NS);
	assert_int_equal(sizes[0], graph->nodes);
	return sizes;
}

static void clear_large(struct graph *graph, struct dominators *dominators, uint64_t *sizes)
{
	free(sizes);
	dominators_clear(dominators);
	graph_clear(graph);
}

/*
 * A long chain. With `back`, each node also has an edge to the one before it, and the last node one to the first: the
 * dominators are the same.
 */
static void check_chain(bool back)
{
	struct graph graph;
	struct dominators dominators;
	uint64_t *sizes;
	uint32_t *before;

	assert_true(graph_create(LARGE, &graph));
	for (uint32_t i = 0; i < LARGE; i++) {
		graph_begin_node(&graph, i);
		if (i + 1 < LARGE)
			graph_add(&graph, i + 1);
		if (back && i > 0)
			graph_add(&graph, i + 1 < LARGE ? i - 1 : 1);
	}
	sizes = find_large(&graph, &dominators);
	before = graph_shortest_paths(&graph, NULL, 0);
	assert_non_null(before);
	for (uint32_t i = 1; i < LARGE; i++) {
		assert_int_equal(dominators.immediate[i], i - 1);
		assert_int_equal(before[i], i - 1);
		assert_int_equal(sizes[i], LARGE - i);
	}
	free(before);
	clear_large(&graph, &dominators, sizes);
}

static void test_chain(void **state)
{
	(void)state;
	check_chain(false);
	check_chain(true);
}

static void test_star(void **state)
{
	struct graph graph;
	struct dominators dominators;
	uint64_t *sizes;

	(void)state;
	assert_true(graph_create(LARGE, &graph));
	graph_begin_node(&graph, 0);
	graph_add(&graph, LARGE / 2);
	graph_begin_node(&graph, LARGE / 2);
	for (uint32_t i = 1; i < LARGE; i++)
		graph_add(&graph, i);
	sizes = find_large(&graph, &dominators);
	for (uint32_t i = 1; i < LARGE; i++) {
		assert_int_equal(dominators.immediate[i], i == LARGE / 2 ? 0 : LARGE / 2);
		assert_int_equal(sizes[i], i == LARGE / 2 ? LARGE - 1 : 1);
	}
	clear_large(&graph, &dominators, sizes);
}

/*
 * A list of half of the nodes, whose last node refers to the other half. Another node refers to the other half, too. So
 * the parent of these nodes in the tree of the search is the end of the list, and their dominator is far above it.
 *   dominator  the other node: the roots, or one in the list
 */
static void check_shared(uint32_t dominator)
{
	const uint32_t last = LARGE / 2;
	struct graph graph;
	struct dominators dominators;
	uint64_t *sizes;

	assert_true(graph_create(LARGE, &graph));
	for (uint32_t i = 0; i <= last; i++) {
		graph_begin_node(&graph, i);
		if (i < last)
			graph_add(&graph, i + 1);
		for (uint32_t shared = last + 1; (i == dominator || i == last) && shared < LARGE; shared++)
			graph_add(&graph, shared);
	}
	sizes = find_large(&graph, &dominators);
	for (uint32_t i = 1; i < LARGE; i++) {
		assert_int_equal(dominators.immediate[i], i <= last ? i - 1 : dominator);
		if (i <= last)
			assert_int_equal(sizes[i], (i <= dominator ? LARGE : last + 1) - i);
	}
	clear_large(&graph, &dominators, sizes);
}

static void test_list_with_shared_objects(void **state)
{
	(void)state;
	check_shared(0);
	check_shared(1);
	check_shared(LARGE / 4);
}

/* From each node of a long chain, edges lead back to the nodes that are 1, 8, 64, ... before it: long ways to halve. */
static void test_many_ways_back(void **state)
{
	struct graph graph;
	struct dominators dominators;
	uint64_t *sizes;

	(void)state;
	assert_true(graph_create(LARGE, &graph));
	for (uint32_t i = 0; i < LARGE; i++) {
		graph_begin_node(&graph, i);
		if (i + 1 < LARGE)
			graph_add(&graph, i + 1);
		for (uint32_t back = 1; back < i; back *= 8)
			graph_add(&graph, i - back);
	}
	sizes = find_large(&graph, &dominators);
	for (uint32_t i = 1; i < LARGE; i++)
		assert_int_equal(dominators.immediate[i], i - 1);
	clear_large(&graph, &dominators, sizes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_empty),
#if !defined(__SANITIZE_ADDRESS__)
		cmocka_unit_test(test_no_memory),
#endif
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_star),
		cmocka_unit_test(test_list_with_shared_objects),
		cmocka_unit_test(test_many_ways_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
