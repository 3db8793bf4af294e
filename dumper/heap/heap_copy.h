/*
 * Copies the heap of a target, some pages at a time. A heap can be larger than the memory of the machine on which rbdump
 * runs, so rbdump keeps only some batches of pages, and uses the same memory again and again. While the caller uses one
 * batch, two threads copy the next two batches.
 *
 * After a collection has marked the live objects, Ruby sweeps the pages one by one while the program runs: Ruby frees the
 * objects that are not marked. Until a page is swept, its marks show which of its objects are dead. So rbdump first
 * copies the marks of a page, and then its slots. If the collector is running right after rbdump has copied the marks,
 * rbdump copies the marks again, because the collector may have been sweeping the page.
 *
 * Based on Ruby's sources, 2.1.0 to 4.0.5 and head: gc.c; since 3.4: gc/default/default.c (gc_sweep_page, which clears
 * before_sweep first; NUM_IN_PAGE; gc_setup_mark_bits).
 */
#ifndef RBDUMP_HEAP_COPY_H
#define RBDUMP_HEAP_COPY_H

#include "base/addresses.h"
#include "ruby/heap_pages.h"
#include "ruby/object_slot.h"

/* One page of the heap, with the copy of its slots. */
struct heap_copy_page {
	struct heap_page at;
	const uint8_t *slots; /* NULL if the page is damaged, or if part of it could not be read */
	/* The last collection has swept the page: no dead objects are left in it. Also true if this is not known. */
	bool swept;
	/* A bit for each slot (see heap_copy_bit()); NULL if this Ruby has no such bits, or if they cannot be read. */
	const uint8_t *marked, *pinned, *shady;
	bool any_pinned, any_shady; /* at least one slot of the page has this bit */
	/* The index of the first slot's bit, and the distance from the bit of one slot to the bit of the next slot. */
	uint64_t first_bit, bit_step;
};

struct heap_copy;

/*
 * Prepares to copy a heap.
 *   source, context  the function that reads pages of the target's memory, and its first argument
 *   runs             whether the target runs while its heap is copied
 *   parallel         whether several threads may call `source` at the same time
 * Returns NULL if there is not enough memory.
 */
struct heap_copy *heap_copy_create(const struct ruby *ruby, memory_source *source, void *context, bool runs,
				   bool parallel);
void heap_copy_destroy(struct heap_copy *copy); /* NULL is fine */

/* Whether this Ruby and the layout have everything that rbdump needs to distinguish dead objects from live objects. */
bool heap_copy_tells_dead(const struct heap_copy *copy);

/*
 * Starts over: the next batch is the first one. Returns false if the list of pages cannot be read, or if there is not
 * enough memory.
 */
bool heap_copy_begin(struct heap_copy *copy);

/* The number of pages in the list that heap_copy_begin() has read. */
uint64_t heap_copy_total(const struct heap_copy *copy);

/*
 * Copies the next batch of pages. Returns the number of pages in the batch; 0 at the end.
 *   ret  receives the pages. They are valid until the next call of heap_copy_next(), heap_copy_begin() or
 *        heap_copy_destroy()
 */
size_t heap_copy_next(struct heap_copy *copy, const struct heap_copy_page **ret);

/*
 * Returns how many of the given pages are still in the list of pages. If a page could not be read, and is no longer in
 * the list, Ruby has freed the page. So the page contained no objects: Ruby frees only pages without objects.
 *   pages  the addresses of the given pages (heap_page.address), sorted
 * If the list cannot be read, returns the number of the given pages.
 */
size_t heap_copy_still_listed(const struct heap_copy *copy, const struct addresses *pages);

/*
 * Whether pages can be missing, because the list of pages changed during each attempt to copy it (heap/page_list.h), or
 * because there was not enough memory.
 */
bool heap_copy_list_moved(const struct heap_copy *copy);

/*
 * Whether rbdump cannot distinguish dead objects from live objects in at least one of the pages that were copied since
 * heap_copy_begin(). The reason is that heap_copy_tells_dead() is false, that the collector was running, or that marks could
 * not be read. Call this function after the last batch.
 */
bool heap_copy_was_blind(const struct heap_copy *copy);

/*
 * Copies the slots of a page again. The page must be in the batch that heap_copy_next() returned last. Returns NULL if the
 * slots cannot be read. The copy is valid until the next call of this function.
 */
const uint8_t *heap_copy_again(struct heap_copy *copy, const struct heap_copy_page *page);

/* The maximum length of an array of bits, in bytes: one bit for each 8 bytes of the largest heap page. */
#define HEAP_COPY_BITS (HEAP_PAGE_BYTES_MAX / 64)

/*
 * Whether the bit of a slot is set.
 *   bits   one of the arrays of bits in `page`; if it is NULL, the function returns false
 *   index  the number of the slot in its page
 */
static inline bool heap_copy_bit(const struct heap_copy_page *page, const uint8_t *bits, uint64_t index)
{
	const uint64_t bit = page->first_bit + index * page->bit_step;

	return bits && bit < HEAP_COPY_BITS * 8 && bits[bit / 8] >> (bit % 8) & 1;
}

/* Returns the slot with the number `index` of a page. `slots` of the page must not be NULL. */
static inline struct object_slot heap_copy_slot(const struct heap_copy_page *page, uint64_t index)
{
	return (struct object_slot){page->at.start + index * page->at.slot_size,
				    page->slots + index * page->at.slot_size, page->at.slot_size};
}

#endif
