/*
 * The rows in which a tree of a heap's objects (heap/tree.h) is shown. A heap can have millions of objects, so the children
 * of a row are merged by class, and a row can stand for many objects. Only an object whose subtree has a large part of the
 * whole weight gets a row of its own. Rows with little weight are left out. A linked list is one row.
 */
#ifndef RBDUMP_TREE_ROWS_H
#define RBDUMP_TREE_ROWS_H

#include "heap/heap_graph.h"
#include "heap/tree.h"

/* A row stands for one object with a large part of the weight, or for all other objects of one group below the same row. */
struct tree_row {
	uint32_t parent; /* the object of the row above; 0: the roots; GRAPH_NONE: the row above has several objects */
	uint32_t node;	 /* the object; GRAPH_NONE: more than one object */
	uint16_t group;	 /* in the census */
	uint64_t objects, weight;
};

/* Receives the rows. Each row comes before the rows below it. */
struct tree_writer {
	/*
	 * A row begins.
	 *   depth  how many levels are above this row
	 */
	void (*begin)(void *context, const struct tree_row *row, unsigned int depth);
	/*
	 * The row that began last is for one object. This object is the first object of a linked list, and `more` further
	 * objects follow it. The next rows are below the last object of the list.
	 */
	void (*list)(void *context, uint64_t more, unsigned int depth);
	/* Other rows with enough weight are left out here, because there would be too many rows or too many levels. */
	void (*left_out)(void *context, unsigned int depth);
	/* A row ends: of all rows that have not ended yet, it is the row that began last. */
	void (*end)(void *context);
	void *context;
};

/* What is shown. */
struct tree_rows {
	const struct heap_graph *graph;
	const struct tree *tree;
	const uint64_t *weights; /* of each subtree */
	uint64_t total;		 /* the whole weight */
	size_t rows;		 /* the maximum number of rows directly below one row; 0: all rows with enough weight */
	unsigned int depth;	 /* the maximum number of levels */
};

/* Gives all rows to a writer. Returns false if there is not enough memory. */
bool tree_rows_each(const struct tree_rows *how, const struct tree_writer *writer);

#endif
