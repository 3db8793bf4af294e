/*
 * The call tree of a profile, or those of two that are compared, as one tree: what the flame graph is written from.
 *
 * Two profiles have tables of functions and trees of their own. What is called the same in both, in a file of the same
 * path, is one function, whatever lines it begins in; what is called by the same path of functions is one node.
 */
#ifndef RBDUMP_MERGED_TREE_H
#define RBDUMP_MERGED_TREE_H

#include "report/call_tree.h"

enum merged_side { MERGED_AFTER, MERGED_BEFORE, MERGED_SIDES };

struct merged_node {
	uint32_t parent;	     /* less than its own index; that of the root is 0 */
	uint32_t function;	     /* index in `functions`; CALL_TREE_GROUP: see `group` */
	int64_t line;		     /* if the trees are by line; else 0 */
	const char *group;	     /* as in call_tree.h; that of the profile after, if both have it */
	uint32_t ordinal;	     /* of groups that cannot be told apart otherwise: which of them */
	uint32_t same[MERGED_SIDES]; /* how many groups are like this, whose ordinal is 0 */
	uint64_t self[MERGED_SIDES][PROFILE_STATES];
	uint64_t samples[MERGED_SIDES]; /* that end here */
};

struct merged_tree {
	const struct profile_function **functions; /* the profiles' own */
	struct merged_node *nodes;		   /* nodes[0] is the root */
	size_t nr_functions, count;
};

/* `before` is NULL if nothing is compared. NULL if out of memory. The trees and their profiles must outlive it. */
struct merged_tree *merged_tree_create(const struct call_tree *after, const struct call_tree *before);
void merged_tree_destroy(struct merged_tree *tree); /* NULL is fine */

#endif
