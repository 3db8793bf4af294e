/*
 * Finds objects of one type in Ruby's heap. In a Ruby that does not keep a list of its fibers, this search finds the
 * fibers (see ruby/fibers.h).
 *
 * A heap can contain several gigabytes, so it is not copied to the snapshot. Instead, the heap is read once, piece by
 * piece, from the source of the snapshot's pages. A verb that prints stacks never searches the heap while it has stopped
 * the target. But a heap verb that needs the roots (see heap_roots.h) can search the heap while the target is stopped. The
 * limits below apply to each search. The heap of a running process changes during the search, so an object that was found
 * may no longer exist. The caller must therefore read each object again in the snapshot.
 *
 * Based on Ruby's sources, 1.9.3 to 3.2.2: include/ruby/internal/core/rtypeddata.h. For the list of pages, see
 * heap_pages.h.
 */
#ifndef RBDUMP_HEAP_SEARCH_H
#define RBDUMP_HEAP_SEARCH_H

#include "base/addresses.h"
#include "ruby/ruby.h"

struct heap_finds {
	struct addresses data; /* RTypedData.data of each object; ascending, without duplicates */
	/*
	 * Some objects of this type may be missing: part of the heap was not read, too many objects were found, or the
	 * search did not find the class Object.
	 */
	bool cut;
};

/* The limits of a search: how much of a heap is read, and for how long. */
#define HEAP_BYTES_MAX (UINT64_C(4) << 30)
#define HEAP_NS_MAX    2000000000L

/* Whether the layout has the members that a search needs. */
bool heap_is_known(const struct layout *layout);

/*
 * Finds the typed data objects (RTypedData) of one type.
 *   ruby             the Ruby to search. The heap of this Ruby is read from `source`, not from ruby->memory. The time
 *                    limit uses the clock of ruby->memory (see memory_clock())
 *   source, context  the function that reads the target's pages, and its first argument (see memory/memory.h)
 *   type             address of the rb_data_type_t
 * Returns false if there is not enough memory. The caller always frees `ret` with heap_clear().
 */
bool heap_find(const struct ruby *ruby, memory_source *source, void *context, uint64_t type, struct heap_finds *ret);
void heap_clear(struct heap_finds *finds);

#endif
