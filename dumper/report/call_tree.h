/*
 * A call tree: the spans of a profile, merged by their stacks. The flame graph, the collapsed stacks and the flat profile
 * of functions are made from call trees.
 */
#ifndef RBDUMP_CALL_TREE_H
#define RBDUMP_CALL_TREE_H

#include "recording/profile.h"

struct call_node {
	uint32_t parent;       /* index of the parent; 0 for the root, which is its own parent */
	uint32_t first_child;  /* index of the first child; 0 if there is no child */
	uint32_t next_sibling; /* index of the next sibling; 0 if there is no further sibling */
	uint32_t function;     /* index of the function in the profile; CALL_TREE_GROUP if the node is a group */
	int64_t line;	       /* with CALL_TREE_BY_LINE: the line number; otherwise 0 */
	/* For a group: the name of the process or thread that all nodes below this node belong to, such as "ruby 1234"
	   or "thread 1235 worker". The root is also a group: its name is "all". */
	const char *group;
	int64_t group_number;	       /* for a group: a number that no other group has; otherwise 0 */
	uint64_t self[SAMPLE_STATES];  /* for each state: the weight, in ns, of the stacks that end at this node */
	uint64_t total[SAMPLE_STATES]; /* for each state: the sum of `self` over this node and all nodes below it */
	uint64_t samples;	       /* the number of samples whose stack ends at this node */
};

#define CALL_TREE_GROUP UINT32_MAX

struct call_tree {
	const struct profile *profile;
	struct call_node *nodes; /* nodes[0] is the root; a parent comes before its children */
	size_t count;
	struct call_tree_store *store; /* owns the text `group` of each node */
};

struct format_options;
struct text;

enum call_tree_by { CALL_TREE_BY_FUNCTION, CALL_TREE_BY_LINE };

enum call_tree_groups {
	CALL_TREE_MERGED,    /* no groups */
	CALL_TREE_PROCESSES, /* if the profile has several processes: a group for each process */
	CALL_TREE_THREADS,   /* the groups of CALL_TREE_PROCESSES, and below them a group for each thread */
	/* For a comparison of two profiles: a group for each thread. The name of the group does not contain the tid,
	   because the tids of two recordings differ. There are no groups for processes, because two recordings may have
	   different numbers of processes. */
	CALL_TREE_COMPARED_THREADS,
};

/*
 * Makes the call tree of a profile. The profile must outlive the tree. Returns NULL if there is not enough memory.
 *   by  with CALL_TREE_BY_FUNCTION, a node stands for all lines of its function
 */
struct call_tree *call_tree_create(const struct profile *profile, enum call_tree_by by, enum call_tree_groups groups);

/*
 * Makes the call tree that the options ask for. If two profiles are compared, the tree has no groups for processes.
 */
struct call_tree *call_tree_for(const struct profile *profile, const struct format_options *options);
void call_tree_destroy(struct call_tree *tree); /* NULL is fine */

/* Returns the sum of `self` over all states. */
uint64_t call_node_self(const struct call_node *node);
/* Returns the sum of `total` over all states. */
uint64_t call_node_total(const struct call_node *node);

/*
 * Appends the name of a node to `ret`. The name of a group is `group`. The name of any other node is the name of the
 * node's function. If the node has a line, ":" and the line number follow the name of the function.
 */
void call_node_name(const struct call_tree *tree, const struct call_node *node, struct text *ret);

#endif
