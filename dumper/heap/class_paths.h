/*
 * Finds out how the objects of each class are kept alive: takes a shortest path from the roots to each object, and merges
 * the paths that have the same steps.
 *
 * If several paths have the same steps, the objects at the ends of these paths are one group. A step is the class of an
 * object, and the name of the reference from the previous object to this object. The name is part of the step only if it is
 * useful: the name of a constant, a variable or a member is useful, but the index of an element is not. The name is also left
 * out if too many objects are at the previous step, because otherwise there would be too many groups. If consecutive objects
 * of a path have the same class, they are one step, unless they are classes or modules. So a linked list is one step. A step
 * does not contain an address, so the paths of different looks (graph_look.h) can be compared.
 *
 * Memory: 24 bytes for each slot, and about 60 bytes for each group.
 */
#ifndef RBDUMP_CLASS_PATHS_H
#define RBDUMP_CLASS_PATHS_H

#include "base/index_table.h"
#include "heap/graph_look.h"

struct class_path {
	uint32_t parent; /* the group of the previous objects; 0: the group that stands for the roots */
	uint32_t node;	 /* one of the objects of this group */
	uint32_t label;	 /* index in `labels`: how the previous objects refer to these objects; 0: no name */
	uint16_t group;	 /* the census group (census.h) that these objects are in */
	uint16_t level;	 /* how many steps lead to the objects */
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
 * Finds the groups. Overwrites look->graph.sizes. Returns false if there is not enough memory. Call class_paths_clear() also
 * after a failure.
 */
bool class_paths_find(struct graph_look *look, struct class_paths *ret);
void class_paths_clear(struct class_paths *paths); /* a zeroed struct is fine */

/*
 * Appends to `text` the steps of the paths that lead to a group, but not the class of the group's own objects. An example:
 * "class Store → @cache → Hash". Leaves out the class Object, because all constants are reached through it. Also leaves out
 * the names of constants and C variables that refer to a class or module, because the name of the class or module follows.
 */
void class_paths_add_text(const struct class_paths *paths, const struct graph_look *look, uint32_t path,
			  struct text *text);

#endif
