/*
 * The answer to `rbdump heap --why` or `--dominators`, before it is written.
 */
#ifndef RBDUMP_WHY_ANSWER_H
#define RBDUMP_WHY_ANSWER_H

#include <stdio.h>

#include "heap/graph_look.h"
#include "heap/tree_rows.h"

/* The most objects of a path that are written. Of a longer path, the objects in the middle are left out. */
#define WHY_PATH_MAX 1000

struct why_answer {
	struct graph_look *look;
	/* A path to one object, if `object` is not 0. */
	uint32_t object; /* its node */
	uint32_t *path;	 /* the nodes of the path, from the root on */
	size_t length;	 /* 0: no path leads to the object */
	/* Otherwise, a tree: of the paths to the objects of a class, or, if `name` is NULL, of the dominators. */
	const char *name;
	uint64_t found, reached; /* how many objects of the class there are, and to how many of them a path leads */
	struct tree_rows rows;	 /* not set if `reached` is 0 */
};

/* Whether the part of the path that is left out begins at index `i`. If so, *next receives the index of the next object. */
static inline bool why_leaves_out(const struct why_answer *answer, size_t i, size_t *next)
{
	if (answer->length <= WHY_PATH_MAX || i != WHY_PATH_MAX / 2)
		return false;
	*next = i + answer->length - WHY_PATH_MAX;
	return true;
}

/*
 * Write an answer, and read names from the target meanwhile. They fail if there is not enough memory. The caller checks
 * the stream.
 */
struct error *why_text(const struct why_answer *answer, FILE *stream);
struct error *why_json(const struct why_answer *answer, FILE *stream);

#endif
