/*
 * Prints a tree of a heap's objects (heap/tree.h) as text. A heap can have millions of objects, so the children of a
 * row are merged by class, and one row can stand for many objects. Only an object whose subtree has a large part of the
 * whole weight gets a row of its own, with its address. Rows with little weight are left out. A linked list is printed
 * as one line. "…" stands for rows that have enough weight, but are left out, because there are too many of them, or
 * because they are too deep.
 */
#ifndef RBDUMP_TREE_TEXT_H
#define RBDUMP_TREE_TEXT_H

#include <stdio.h>

#include "heap/heap_graph.h"
#include "heap/tree.h"

/* How a tree is printed. */
struct tree_text {
	const struct heap_graph *graph;
	struct heap_walk *walk; /* for the names of objects */
	const struct tree *tree;
	const uint64_t *weights; /* of each subtree */
	uint64_t total;		 /* the weight that is 100 % */
	bool bytes;		 /* whether weights are bytes; otherwise numbers of objects */
	size_t rows;		 /* how many rows a level has at most */
	unsigned int depth;	 /* how many levels there are at most */
	/*
	 * Appends to `text` how `parent` refers to `node`, for example "@name". If `parent` is 0, appends the root.
	 * Appends nothing if that is not known.
	 */
	void (*label)(void *context, uint32_t parent, uint32_t node, struct text *text);
	void *context;
};

/* Prints the tree. Returns false if there is not enough memory. */
bool tree_text_print(const struct tree_text *how, FILE *stream);

#endif
