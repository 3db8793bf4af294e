/*
 * Visits the objects of a heap, one after another, in the order of their addresses. Also copies the memory on which
 * their references and their sizes depend. The heap is read once. So if the target runs, objects are read at different
 * moments.
 *
 * At any time, the walk has copies of only a few batches of pages (heap_copy.h), and of the memory outside the heap that
 * belongs to the objects of one page.
 */
#ifndef RBDUMP_HEAP_WALK_H
#define RBDUMP_HEAP_WALK_H

#include "heap/heap_copy.h"
#include "heap/slots.h"
#include "ruby/object_refs.h"
#include "ruby/object_size.h"

struct heap_walk {
	const struct ruby *ruby;
	struct heap_copy *copy;
	memory_source *source;
	void *context;
	bool runs;
	struct ruby lasting; /* like `ruby`, but its snapshot is for data that does not change: shapes, types, names */
	struct slots *slots; /* the slots of the pages that existed when the walk was prepared */
	struct object_refs refs;
	struct object_sizes sizes;
	bool strings;	      /* set by the caller: the walk also copies the bytes of Strings */
	uint64_t deadline_ns; /* no page is read after this time (CLOCK_MONOTONIC); the caller can change this time */
	bool late;	      /* the reading ended early, at the deadline or at ^C (progress.h) */
	bool incomplete;      /* part of the heap could not be read, or there was no time to read it */
	bool blind;	      /* in some pages, it is not known which objects are dead */
	bool no_memory;
};

/* An object that is visited. All pointers are valid only during the visit. */
struct heap_object {
	struct object_slot slot;
	uint64_t flags;	       /* RBasic.flags */
	uint64_t type;	       /* RUBY_T_ */
	struct access *access; /* reads memory outside the slot */
	const struct heap_copy_page *page;
	uint64_t index; /* the number of the slot in its page */
	bool dead;	/* the last collection did not mark the object, but has not swept its slot yet */
	/*
	 * The target has changed the slot since it was copied, or the slot could not be read again. So the memory outside
	 * the slot, which was copied later, can belong to another object.
	 */
	bool changed;
};

/* Called for each object. Returns false to stop the walk. */
typedef bool heap_walk_visit(void *context, struct heap_walk *walk, const struct heap_object *object);

/*
 * Prepares a walk, and sets its deadline to 30 minutes from now. Everything that the caller passes must exist until
 * heap_walk_clear().
 *   source, context, runs, parallel  as for heap_copy_create()
 * Returns false if there is not enough memory.
 */
bool heap_walk_begin(const struct ruby *ruby, memory_source *source, void *context, bool runs, bool parallel,
		     struct heap_walk *ret);
void heap_walk_clear(struct heap_walk *walk);

/* Visits all objects, including dead ones. Sets `late`, `incomplete`, `blind` and `no_memory`. */
void heap_walk_each(struct heap_walk *walk, heap_walk_visit *visit, void *context);

/*
 * Calls `visit` for each reference of an object, as object_refs_each() does. Omits conservative references that do not
 * lead to a slot of the heap.
 */
bool heap_walk_refs(struct heap_walk *walk, const struct heap_object *object, object_ref_visit *visit, void *context);

/*
 * Computes how many bytes an object owns outside its slot, as object_size() does. For an object that has changed, *owned
 * receives 0, and the result is false.
 */
bool heap_walk_size(struct heap_walk *walk, const struct heap_object *object, uint64_t *owned);

#endif
