/*
 * Objects of one type in Ruby's heap: how the fibers are found of a Ruby that keeps no list of them (vm/fibers.h).
 *
 * A heap may have gigabytes. So it is not read through the snapshot but once, piece by piece, from where the snapshot's
 * pages come from; never while a target is stopped; and no longer, and no more of it, than the limits below. What is
 * found is a hint of where to look: the heap of a process that goes on changes meanwhile, and whoever uses it must look
 * at each object again, in the snapshot.
 *
 * Facts: gc.c (rb_objspace_t.heap_pages, struct heap_page, heap_page_allocate, RVALUE),
 * include/ruby/internal/core/rtypeddata.h, 2.1.0 to 3.2.2; the same lists of 16 KiB each had other names in 2.0
 * (rb_objspace_t.heap, struct heaps_header) and 1.9.3 (struct sorted_heaps_slot).
 */
#ifndef RBDUMP_HEAP_H
#define RBDUMP_HEAP_H

#include "memory/addresses.h"
#include "vm/ruby.h"

struct heap_finds {
	struct addresses data; /* RTypedData.data of each, ascending, each once */
	bool cut;	       /* not all of the heap could be read, or not within the limits: there may be more */
};

/* How much of a heap is read at most, and for how long. */
#define HEAP_BYTES_MAX (UINT64_C(4) << 30)
#define HEAP_NS_MAX    2000000000L

/* Whether the layout tells enough of the heap. */
bool heap_is_known(const struct layout *layout);

/*
 * Finds the typed data objects of one type.
 *   ruby             its memory is not read, but tells what time counts (memory_clock())
 *   source, context  where pages of the target come from
 *   type             address of the rb_data_type_t
 * Returns false if out of memory. `ret` is to be given to heap_clear().
 */
bool heap_find(const struct ruby *ruby, memory_source *source, void *context, uint64_t type, struct heap_finds *ret);
void heap_clear(struct heap_finds *finds);

#endif
