/*
 * The graph of a heap: its objects, the references between them, and the roots that keep objects alive. The graph also
 * contains the kind and the size of each object. The references of inline caches for constants are left out.
 *
 * Memory: for each slot, 4 bytes for the graph, 2 for the kind and 8 for the size; 4 bytes for each reference; 48 bytes
 * for each root; and the memory of the walk.
 */
#ifndef RBDUMP_HEAP_GRAPH_H
#define RBDUMP_HEAP_GRAPH_H

#include "base/addresses.h"
#include "base/error.h"
#include "heap/graph.h"
#include "heap/heap_walk.h"
#include "heap/kinds.h"
#include "ruby/heap_roots.h"

struct heap_graph {
	struct graph graph; /* node N is the slot with the number N (heap/slots.h); node 0 stands for the roots */
	struct census *census;
	uint16_t *groups; /* for each node, its group in the census; CENSUS_FREE: the slot has no live object */
	uint64_t *sizes; /* for each node, the bytes of its slot plus the bytes that its object owns outside the heap */
	/*
	 * The roots, sorted by the address of the object that they refer to (heap_root.target). If several roots refer to
	 * the same object, the most certain root is the first of them.
	 */
	struct heap_root *roots;
	size_t nr_roots;
	/*
	 * The edges of node 0 are the roots: first the exact roots with names, then the exact roots of threads and their
	 * stacks, then the conservative roots. These are three ranks: ranks[i] is the index of the first edge of rank i.
	 */
	uint32_t ranks[3];
	/* Pairs of a Fiber and an object that the stack of this Fiber keeps alive; sorted by the address of the Fiber. */
	struct address_map held;
	bool roots_known; /* all roots were read, and there were not too many roots */
	uint64_t objects; /* how many live objects there are */
	uint64_t unknown; /* how many of these objects have references that are not known */
};

/*
 * Reads the heap, and makes the graph.
 *   roots  as read by heap_roots_read()
 * The caller frees `ret` with heap_graph_clear(), also after a failure. Sets `late`, `incomplete`, `blind` and `no_memory`
 * of the walk, as heap_walk_each() does.
 */
struct error *heap_graph_make(struct heap_walk *walk, struct heap_roots *roots, struct heap_graph *ret);
void heap_graph_clear(struct heap_graph *graph);

/* The most certain root that refers to a node; NULL if no root refers to the node. */
const struct heap_root *heap_graph_root(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node);

/* Whether `fiber` is a Fiber whose stack keeps `node` alive. */
bool heap_graph_is_held(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t fiber, uint32_t node);

/*
 * Appends a description of the object of a node: see object_add_text(). If the slot does not contain an object of the same
 * class any more, appends the class and the address of the object that was in the slot when the graph was made, and says
 * that this object is gone.
 */
void heap_graph_add_text(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node,
			 struct text *text);

/* Whether a node is a class or a module. */
bool heap_graph_is_module(const struct heap_graph *graph, const struct layout *layout, uint32_t node);

/* Like heap_graph_add_text(), but without the address, so that a class has the same text in every look at the heap. */
void heap_graph_add_plain(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node,
			  struct text *text);

/*
 * Reads the references of an object once more. The target may have changed the object since the first reading.
 *   visit, context  as for object_refs_each()
 */
void heap_graph_read_refs(struct heap_walk *walk, uint32_t node, object_ref_visit *visit, void *context);

#endif
