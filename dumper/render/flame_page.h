/*
 * A flame graph: a single HTML file that needs no other file. The page is made from the files in flamegraph/. It contains
 * a tree as JSON, in tables of numbers. page.html describes these tables.
 *
 * Names and paths can be any text. They are escaped, so that they cannot end the HTML element that contains the JSON.
 */
#ifndef RBDUMP_FLAME_PAGE_H
#define RBDUMP_FLAME_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a frame stands for: a method, or a class or type of objects. `name`, `path` and `absolute_path` can be NULL. */
struct flame_function {
	unsigned int kind; /* for a method: enum profile_kind (recording/profile.h); for a class or type: 0 */
	const char *name, *path, *absolute_path;
	int64_t first_line; /* 0: not known */
};

#define FLAME_GROUP UINT32_MAX

struct flame_node {
	uint32_t parent; /* index of the parent: less than the index of this node; 0 for the root, which is node 0 */
	/* Index of the function. FLAME_GROUP if the node is the root, a process, a thread, or all objects of one age. */
	uint32_t function;
	int64_t line;	   /* 0: none */
	const char *group; /* for a group: its name; NULL for the root */
};

/* What the page shows: one tree (one side), or two trees that are compared (two sides). */
struct flame_page {
	const char *title, *remark; /* `remark` can be NULL */
	const char *by;		    /* the view: one of VIEWS in text.js */
	bool bytes;		    /* true: weights are bytes, and samples() counts objects; false: weights are ns */
	size_t nr_sides, nr_states, nr_functions, nr_nodes;
	/* Each function below gets `context`, and indexes: `side` is less than nr_sides, and so on. */
	const void *context;
	const char *(*state)(const void *context, size_t state);
	struct flame_function (*function)(const void *context, size_t function);
	struct flame_node (*node)(const void *context, size_t node);
	/* For the stacks that end at a node: the weight in one state (weight), and the number of samples (samples). */
	uint64_t (*weight)(const void *context, size_t side, size_t node, size_t state);
	uint64_t (*samples)(const void *context, size_t side, size_t node);
	/* Writes a JSON object that describes a side (see `profiles` in page.html). */
	void (*write_side)(const void *context, size_t side, FILE *stream);
};

/* Writes the page. Returns false if there is not enough memory. The caller must check the stream for errors. */
bool flame_page_write(const struct flame_page *page, FILE *stream);

/* Writes one member of a JSON object, and a comma; NULL is written as "". For use in write_side(). */
void flame_page_write_text(const char *name, const char *value, FILE *stream);

#endif
