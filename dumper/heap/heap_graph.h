/*
 * The graph of a heap: its objects, the references between them, and the roots that keep objects alive. Also contains
 * the kind and the size of each object. The references of inline caches for constants are left out.
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
	struct graph graph; /* the nodes are the numbers of slots (walk->slots); node 0 stands for the roots */
	struct census *census;
	uint16_t *groups; /* for each node, its group in the census; CENSUS_FREE: no live object is there */
	uint64_t *sizes;  /* for each node, the bytes of its slot and those that it owns outside */
	/* The roots, sorted by target. Of the roots with the same target, the most certain one is the first. */
	struct heap_root *roots;
	size_t nr_roots;
	/*
	 * The edges of node 0 are the roots: first the exact ones with names, then the exact ones of threads and their
	 * stacks, then the conservative ones. For each of these three ranks, the index of its first edge.
	 */
	uint32_t ranks[3];
	struct address_map held; /* the objects that stacks of Fibers keep alive, by the Fiber's address; sorted */
	bool roots_known;	 /* all roots were read, and there were not too many */
	uint64_t objects;	 /* live ones */
	uint64_t unknown;	 /* objects whose references are not all known */
};

/*
 * Reads the heap, and makes the graph.
 *   roots  as read by heap_roots_read()
 * The caller frees `ret` with heap_graph_clear(), also after a failure. Sets the flags of the walk, as heap_walk_each() does.
 */
struct error *heap_graph_make(struct heap_walk *walk, struct heap_roots *roots, struct heap_graph *ret);
void heap_graph_clear(struct heap_graph *graph);

/* The most certain root of a node; NULL if it has none. */
const struct heap_root *heap_graph_root(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node);

/* Whether `fiber` is a Fiber whose stack keeps `node` alive. */
bool heap_graph_is_held(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t fiber, uint32_t node);

/*
 * Appends a description of the object of a node: see object_add_text(). If an object of another class is in the slot by
 * now, appends the class of the node's object, and that this object is gone.
 */
void heap_graph_add_text(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node,
			 struct text *text);

/* Whether a node is a class or a module. */
bool heap_graph_is_module(const struct heap_graph *graph, const struct layout *layout, uint32_t node);

/* Like heap_graph_add_text(), but without the address, so that the same class has the same text in all looks. */
void heap_graph_add_plain(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node,
			  struct text *text);

/*
 * Reads the references of an object once more. The target may have changed it meanwhile.
 *   visit, context  as for object_refs_each()
 */
void heap_graph_read_refs(struct heap_walk *walk, uint32_t node, object_ref_visit *visit, void *context);

#endif
