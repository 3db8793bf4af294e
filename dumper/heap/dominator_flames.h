/*
 * The frames of a tree of dominators (dominators.h), by class: below the frame of some objects are frames of the objects
 * that would be freed with them. The bytes of a frame and of all frames below it are what its objects retain.
 *
 * A class or module that retains much has a frame of its own. All other objects are merged by class. Objects that are kept
 * by objects of the same class share their frame: so a linked list is one frame. Frames with less than a ten-thousandth of
 * all bytes are merged into one frame "(smaller)". Objects that are too deep for frames of their own are
 * part of the deepest frame above them.
 *
 * Memory: 12 bytes for each node, and some 60 for each frame before they are merged.
 */
#ifndef RBDUMP_DOMINATOR_FLAMES_H
#define RBDUMP_DOMINATOR_FLAMES_H

#include "heap/dominators.h"
#include "heap/flames.h"
#include "heap/heap_graph.h"

/*
 * Makes the frames. The names of the classes are read now. The caller always calls flames_clear(). Returns false if there
 * is not enough memory.
 *   walk  for the names of the classes
 */
bool dominator_flames(const struct heap_walk *walk, const struct heap_graph *graph, const struct dominators *dominators,
		      struct flames *ret);

#endif
