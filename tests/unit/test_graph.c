/* Graphs: their edges, in both directions, and shortest paths, against a matrix of edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "heap/graph.h"
#include "synthetic_graph.h"

enum { GRAPHS = 600 };

/* The distance of each node from node 0 (Bellman-Ford); GRAPH_NONE if it cannot be reached. */
static void distances_naively(const struct matrix *matrix, uint32_t *ret)
{
	memset(ret, 0xff, MATRIX_NODES * sizeof(*ret));
	ret[0] = 0;
	for (uint32_t round = 0; round < matrix->nodes; round++)
		for (uint32_t from = 0; from < matrix->nodes; from++)
			for (uint32_t to = 0; ret[from] != GRAPH_NONE && to < matrix->nodes; to++)
				if (matrix->edges[from][to] && ret[from] + 1 < ret[to])
					ret[to] = ret[from] + 1;
}

static void test_shortest_paths(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (int i = 0; i < GRAPHS; i++) {
		struct matrix matrix;
		struct graph graph;
		uint32_t distances[MATRIX_NODES], *before;

		synthetic_matrix(&seed, &matrix);
		synthetic_graph(&matrix, &graph);
		distances_naively(&matrix, distances);
		before = graph_shortest_paths(&graph, NULL, 0);
		assert_non_null(before);
		assert_int_equal(before[0], GRAPH_NONE);
		for (uint32_t node = 1; node < matrix.nodes; node++) {
			if (distances[node] == GRAPH_NONE) {
				assert_int_equal(before[node], GRAPH_NONE);
				continue;
			}
			assert_in_range(before[node], 0, matrix.nodes - 1);
			assert_int_not_equal(matrix.edges[before[node]][node], 0);
			assert_int_equal(distances[before[node]], distances[node] - 1);
		}
		free(before);
		graph_clear(&graph);
	}
}

/* How many edges of a graph lead from a node to another one. */
static uint32_t edges_between(const struct graph *graph, uint32_t from, uint32_t to)
{
	uint32_t count, found = 0;
	const uint32_t *edges = graph_edges(graph, from, &count);

	for (uint32_t i = 0; i < count; i++)
		found += edges[i] == to;
	return found;
}

/* No edge is lost, but for those to node 0, and for duplicates. */
static void test_edges(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < GRAPHS; i++) {
		struct matrix matrix;
		struct graph graph;

		synthetic_matrix(&seed, &matrix);
		synthetic_graph(&matrix, &graph);
		for (uint32_t from = 0; from < matrix.nodes; from++)
			for (uint32_t to = 0; to < matrix.nodes; to++) {
				const uint32_t edges = edges_between(&graph, from, to);

				assert_int_equal(edges > 0, matrix.edges[from][to] > 0 && to != 0);
				assert_in_range(edges, 0, matrix.edges[from][to]);
			}
		graph_clear(&graph);
	}
}

/* A duplicate beside its twin is left out; so is what is no slot. */
static void test_duplicates(void **state)
{
	static const uint32_t added[] = {2, 2, 0, 2, 1, 2, 2}, kept[] = {2, 1, 2};
	struct graph graph;
	uint32_t count;

	(void)state;
	assert_true(graph_create(5, &graph));
	for (uint32_t from = 0; from < 4; from += 3) {
		graph_begin_node(&graph, from);
		for (size_t i = 0; i < 7; i++)
			graph_add(&graph, added[i]);
	}
	assert_true(graph_finish(&graph));
	for (uint32_t from = 0; from < 4; from += 3) {
		assert_memory_equal(graph_edges(&graph, from, &count), kept, sizeof(kept));
		assert_int_equal(count, 3);
	}
	graph_edges(&graph, 1, &count);
	assert_int_equal(count, 0);
	graph_clear(&graph);
}

/* A longer path that begins with an edge of a lower rank is preferred. */
static void test_ranks(void **state)
{
	static const uint32_t ranks[] = {1, 1, 3}, expected[] = {GRAPH_NONE, 0, 1, 2, 0, GRAPH_NONE};
	struct graph graph;
	uint32_t *before;

	(void)state;
	assert_true(graph_create(6, &graph));
	graph_begin_node(&graph, 0);
	graph_add(&graph, 1); /* the lowest rank; the next one has no edges */
	graph_add(&graph, 3);
	graph_add(&graph, 2);
	graph_add(&graph, 4); /* the highest rank */
	for (uint32_t node = 1; node < 3; node++) {
		graph_begin_node(&graph, node);
		graph_add(&graph, node + 1);
	}
	assert_true(graph_finish(&graph));
	before = graph_shortest_paths(&graph, ranks, 3);
	assert_non_null(before);
	assert_memory_equal(before, expected, sizeof(expected));
	free(before);
	before = graph_shortest_paths(&graph, NULL, 0);
	assert_non_null(before);
	assert_int_equal(before[2], 0);
	free(before);
	graph_clear(&graph);
}

static void test_empty(void **state)
{
	struct graph graph;
	uint32_t *before;

	(void)state;
	assert_true(graph_create(1, &graph));
	assert_true(graph_finish(&graph));
	before = graph_shortest_paths(&graph, NULL, 0);
	assert_non_null(before);
	assert_int_equal(before[0], GRAPH_NONE);
	free(before);
	graph_clear(&graph);
}

/*
 * As soon as an edge cannot be added, the graph says so, and no other edge is added. The array of edges is replaced by
 * one of the largest size, which cannot be accessed.
 */
static void test_too_many_edges(void **state)
{
	struct graph graph;

	(void)state;
	assert_true(graph_create(3, &graph));
	graph_begin_node(&graph, 0);
	graph.edges = mmap(NULL, (size_t)GRAPH_EDGES_MAX * sizeof(graph.edges[0]), PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(graph.edges, MAP_FAILED);
	graph.capacity = graph.nr_edges = GRAPH_EDGES_MAX;
	graph_begin_node(&graph, 1);
	graph_add(&graph, 2);
	assert_true(graph.incomplete);
	assert_int_equal(graph.nr_edges, GRAPH_EDGES_MAX);
	graph.nr_edges = 0;
	graph_add(&graph, 1);
	assert_int_equal(graph.nr_edges, 0);
	assert_false(graph_finish(&graph));
	graph_clear(&graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_shortest_paths), cmocka_unit_test(test_edges), cmocka_unit_test(test_ranks),
	    cmocka_unit_test(test_duplicates),	   cmocka_unit_test(test_empty), cmocka_unit_test(test_too_many_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
