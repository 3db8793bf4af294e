/*
 * A copy of the list of the heap's pages, as it was at one moment. While the program runs, Ruby adds pages to the list
 * and removes pages from it. Each time, Ruby moves the entries of the list that come after these pages (gc.c,
 * heap_page_allocate and heap_pages_free_unused_pages, v2_1_0 to v3_4_5). A copy that is made during such a move can
 * lack a page that was in the list all the time. So if the list has changed while it was copied, rbdump copies the list
 * again, a limited number of times.
 */
#ifndef RBDUMP_PAGE_LIST_H
#define RBDUMP_PAGE_LIST_H

#include "ruby/heap_pages.h"

struct page_list {
	struct memory *memory;
	struct heap_pages pages; /* the state of a walk over the list */
	bool moved;		 /* the list changed during each attempt to copy it: pages can be missing */
	/*
	 * For page_list_next(): `descriptions` is a copy of the descriptions of some pages. `ahead` is the number of
	 * these pages that page_list_next() has not read yet.
	 */
	memory_source *source;
	void *context;
	struct memory *descriptions;
	size_t ahead;
};

/*
 * Copies the list. Free it with page_list_clear(), also after a failure.
 *   source, context  the function that reads pages of the target's memory, and its first argument
 *   runs             whether the program runs
 * Returns false if the list cannot be read, or if there is not enough memory. If there is not enough memory,
 * ret->memory is NULL.
 */
bool page_list_read(const struct ruby *ruby, memory_source *source, void *context, bool runs, struct page_list *ret);
void page_list_clear(struct page_list *list); /* a zeroed struct is fine */

/*
 * Reads the next page, as heap_pages_next() does. The descriptions are copied in batches, and a batch is forgotten
 * before the next batch is copied, so the descriptions take the same memory for a heap of any size. Returns false at
 * the end of the list, or if there is not enough memory. If there is not enough memory, list->descriptions is NULL.
 */
bool page_list_next(struct page_list *list, struct heap_page *ret);

#endif
