/*
 * Makes the frames of a flame graph that shows a tree of dominators (dominators.h). If the objects of a frame became
 * garbage, the objects of all frames below it would become garbage, too. So the objects of a frame retain the bytes of
 * this frame and of all frames below it.
 *
 * A class or module that retains much memory has a frame of its own. All other objects below the same frame are merged by
 * class. If an object and its immediate dominator have the same class, both are in the same frame: so a linked list is one
 * frame. Below each frame, all frames that retain less than a ten-thousandth of all bytes are merged into one frame
 * "(smaller)". The number of levels is limited: objects at deeper levels are part of the deepest frame above them.
 *
 * Memory: 12 bytes for each node, and about 60 bytes for each frame, also for each small frame that is merged later.
 */
#ifndef RBDUMP_DOMINATOR_FLAMES_H
#define RBDUMP_DOMINATOR_FLAMES_H

#include "heap/dominators.h"
#include "heap/flames.h"
#include "heap/heap_graph.h"

/*
 * Makes the frames. Reads the names of the classes from the target during this call. Returns false if there is not enough
 * memory. Call flames_clear() also after a failure.
 *   walk  is used to read the names of the classes
 */
bool dominator_flames(const struct heap_walk *walk, const struct heap_graph *graph, const struct dominators *dominators,
		      struct flames *ret);

#endif
