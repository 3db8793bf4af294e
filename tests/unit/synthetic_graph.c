#include "synthetic_graph.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/random.h"

void synthetic_matrix(uint64_t *seed, struct matrix *ret)
{
	const uint32_t nodes = 1 + random_next(seed) % MATRIX_NODES;
	const uint64_t edges = random_next(seed) % (nodes * (1 + random_next(seed) % 5));
	const uint32_t length = 1 + random_next(seed) % nodes;
	const bool has_path = random_next(seed) % 2;

	*ret = (struct matrix){.nodes = nodes};
	for (uint32_t i = 0; has_path && i + 1 < nodes; i++)
		ret->edges[i][i + 1] = 1;
	for (uint64_t i = 0; i < edges; i++) {
		const uint32_t from = random_next(seed) % nodes;
		const uint32_t to =
		    random_next(seed) % 4 ? (from + random_next(seed) % length) % nodes : random_next(seed) % nodes;

		if (ret->edges[from][to] < 3)
			ret->edges[from][to]++;
	}
}

/* The order of the edges differs from node to node, and duplicates are not always beside each other. */
void synthetic_graph(const struct matrix *matrix, struct graph *ret)
{
	assert_true(graph_create(matrix->nodes, ret));
	for (uint32_t from = 0; from < matrix->nodes; from++) {
		bool begun = false;

		for (uint8_t round = 0; round < 3; round++)
			for (uint32_t i = 0; i < matrix->nodes; i++) {
				const uint32_t to = (i * 61 + from) % matrix->nodes;

				if (matrix->edges[from][to] <= round)
					continue;
				if (!begun)
					graph_begin_node(ret, from);
				begun = true;
				graph_add(ret, to);
			}
	}
	assert_true(graph_finish(ret));
}
