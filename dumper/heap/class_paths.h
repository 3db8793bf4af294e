/*
 * The ways in which the objects of each class are kept alive: the shortest paths from the roots, merged.
 *
 * The objects at the ends of paths with the same steps are one group. A step is the class of an object, and the way in which
 * the previous object refers to it. This way is part of the step only if it has a useful name: a constant, a variable or a
 * member, but not the index of an element. It is also left out if there are too many objects at the previous step, because
 * there would be too many groups. Steps between objects of the same class are one step: so a linked list is one step. A step
 * has no address in it, so paths of different looks can be compared.
 *
 * Memory: 24 bytes for each slot, and some 60 for each group.
 */
#ifndef RBDUMP_CLASS_PATHS_H
#define RBDUMP_CLASS_PATHS_H

#include "base/index_table.h"
#include "heap/graph_look.h"

struct class_path {
	uint32_t parent; /* the group of the previous objects; 0: the group that stands for the roots */
	uint32_t node;	 /* one of the objects */
	uint32_t label;	 /* index in `labels`: how they are referred to; 0: not told */
	uint16_t group;	 /* their group in the census */
	uint16_t level;	 /* how many steps lead to them */
	uint64_t objects;
};

struct path_label {
	char *text;
};

struct class_paths {
	struct class_path *of;
	size_t count, capacity;
	struct index_table table;
	struct path_label *labels; /* labels[0] has no text */
	size_t nr_labels, labels_capacity;
	struct index_table label_table;
};

/*
 * Finds the groups. Overwrites look->graph.sizes. The caller always calls class_paths_clear().
 * Returns false if there is not enough memory.
 */
bool class_paths_find(struct graph_look *look, struct class_paths *ret);
void class_paths_clear(struct class_paths *paths); /* a zeroed struct is fine */

/*
 * Appends the steps to a group, without the class of its objects: "class Store → @cache → Hash". Leaves out the class
 * Object, through which all constants are reached, and constants and C variables that refer to a
 * class or module.
 */
void class_paths_add_text(const struct class_paths *paths, const struct graph_look *look, uint32_t path,
			  struct text *text);

#endif
