/*
 * A call tree: the runs of a profile, merged by the path of calls that they show. What the formats that know of no time
 * are written from.
 */
#ifndef RBDUMP_CALL_TREE_H
#define RBDUMP_CALL_TREE_H

#include "recording/profile.h"

struct call_node {
	uint32_t parent;       /* index; that of the root is its own, 0 */
	uint32_t first_child;  /* index; 0: it has none */
	uint32_t next_sibling; /* index; 0: it is the last */
	uint32_t function;     /* index in the profile; CALL_TREE_GROUP: see `group` */
	int64_t line;	       /* if the tree is by line; else 0 */
	const char *group;     /* the process or thread that all below it is of: "ruby 1234", "thread 1235 worker" */
	uint64_t self[PROFILE_STATES];	/* weight in ns of what ends here, by state */
	uint64_t total[PROFILE_STATES]; /* and of all below it, itself included */
	uint64_t samples;		/* that end here */
};

#define CALL_TREE_GROUP UINT32_MAX

struct call_tree {
	const struct profile *profile;
	struct call_node *nodes; /* nodes[0] is the root; a parent comes before its children */
	size_t count;
	struct call_tree_store *store; /* what owns all that */
};

enum call_tree_by { CALL_TREE_BY_FUNCTION, CALL_TREE_BY_LINE };

/*
 *   by       whether lines of one function are one node
 *   threads  whether each thread has a node of its own below the root; processes have, where there are several
 * NULL if out of memory. The profile must outlive it.
 */
struct call_tree *call_tree_create(const struct profile *profile, enum call_tree_by by, bool threads);
void call_tree_destroy(struct call_tree *tree); /* NULL is fine */

/* The weight of all states. */
uint64_t call_node_self(const struct call_node *node);
uint64_t call_node_total(const struct call_node *node);

/* What a node is called: the function's name, "name:line" if the tree is by line and the line is known, or the group.
 */
struct text;
void call_node_name(const struct call_tree *tree, const struct call_node *node, struct text *ret);

#endif
