/*
 * Small random graphs, as a matrix, with which naive algorithms are easy.
 */
#ifndef RBDUMP_TESTS_SYNTHETIC_GRAPH_H
#define RBDUMP_TESTS_SYNTHETIC_GRAPH_H

#include "heap/graph.h"

enum { MATRIX_NODES = 60 };

/* From each node to each other one: how many edges there are, at most 3. */
struct matrix {
	uint32_t nodes; /* from 1 to MATRIX_NODES */
	uint8_t edges[MATRIX_NODES][MATRIX_NODES];
};

/* Makes the next random graph. There are sparse and dense ones, and those with long paths. */
void synthetic_matrix(uint64_t *seed, struct matrix *ret);

/* Makes a graph with the edges of a matrix. The caller frees it with graph_clear(). */
void synthetic_graph(const struct matrix *matrix, struct graph *ret);

#endif
