/*
 * The answer to `rbdump heap --why` or `--dominators`, before it is written.
 */
#ifndef RBDUMP_WHY_ANSWER_H
#define RBDUMP_WHY_ANSWER_H

#include <stdio.h>

#include "heap/graph_look.h"
#include "heap/tree_rows.h"

/*
 * At most this many objects of a path are written. If a path is longer, the objects in its middle are left
 * out.
 */
#define WHY_PATH_MAX 1000

struct why_answer {
	struct graph_look *look;
	/* If `object` is not 0, the answer is a path to one object. */
	uint32_t object; /* its node */
	uint32_t *path;	 /* the nodes of the path, without node 0; the last node is `object` */
	size_t length;	 /* 0: no path leads to the object */
	/*
	 * If `object` is 0, the answer is a tree. If `name` is NULL, this is the tree of the dominators. If `name` is
	 * not NULL, this is the tree of the paths to the objects of the class with this name.
	 */
	const char *name;
	uint64_t found, reached; /* for a class: how many objects there are, and how many of them can be reached */
	struct tree_rows rows;	 /* for a class: not set if `reached` is 0 */
};

/*
 * Whether the part of the path that is left out begins at index `i`. If so, *next receives the index of the first
 * object after this part.
 */
static inline bool why_leaves_out(const struct why_answer *answer, size_t i, size_t *next)
{
	if (answer->length <= WHY_PATH_MAX || i != WHY_PATH_MAX / 2)
		return false;
	*next = i + answer->length - WHY_PATH_MAX;
	return true;
}

/*
 * Both functions write an answer, and read names from the target while they write. They fail if there is not enough
 * memory. The caller checks the stream for errors.
 */
struct error *why_text(const struct why_answer *answer, FILE *stream);
struct error *why_json(const struct why_answer *answer, FILE *stream);

#endif
