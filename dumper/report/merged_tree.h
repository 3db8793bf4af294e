/*
 * Makes a merged tree from the call tree of one profile, or from the call trees of two profiles that are compared. The
 * flame graph is made from the merged tree.
 *
 * Each profile has its own table of functions and its own call tree. If two profiles are compared, functions with the
 * same kind, name and file become one function, even if their first lines differ. Nodes with the same parent, function
 * and line become one node.
 */
#ifndef RBDUMP_MERGED_TREE_H
#define RBDUMP_MERGED_TREE_H

#include "report/call_tree.h"

enum merged_side { MERGED_AFTER, MERGED_BEFORE, MERGED_SIDES };

struct merged_node {
	uint32_t parent;   /* index of the parent, which is less than the index of this node; 0 for the root */
	uint32_t function; /* index in `functions` of the tree; CALL_TREE_GROUP if the node is a group */
	int64_t line;	   /* with CALL_TREE_BY_LINE: the line number; otherwise 0 */
	const char *group; /* as in call_tree.h, but NULL for the root */
	/* Several groups of one call tree can have the same parent and the same text. The first of these groups has
	   `ordinal` 0, the second group has `ordinal` 1, and so on. */
	uint32_t ordinal;
	uint32_t same[MERGED_SIDES]; /* if `ordinal` is 0: for each tree, how many groups have this parent and text */
	uint64_t self[MERGED_SIDES][SAMPLE_STATES];
	uint64_t samples[MERGED_SIDES]; /* for each tree: the number of samples whose stack ends at this node */
};

struct merged_tree {
	const struct profile_function **functions; /* the profiles own the functions */
	struct merged_node *nodes;		   /* nodes[0] is the root */
	size_t nr_functions, count;
};

/*
 * Merges call trees. The trees and their profiles must outlive the result. Returns NULL if there is not enough memory.
 *   before  the call tree of the earlier recording; NULL if there is only one call tree
 */
struct merged_tree *merged_tree_create(const struct call_tree *after, const struct call_tree *before);
void merged_tree_destroy(struct merged_tree *tree); /* NULL is fine */

#endif
