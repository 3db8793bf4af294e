/*
 * The list of the heap's pages, copied at one moment. A running program puts pages into the list and takes pages out of
 * it, and then moves those behind them (gc.c, heap_page_allocate and heap_pages_free_unused_pages, v2_1_0 to v3_4_5). A
 * copy that is made meanwhile can lack a page that was there all the time. So the list is copied until it is the same
 * after the copy.
 */
#ifndef RBDUMP_PAGE_LIST_H
#define RBDUMP_PAGE_LIST_H

#include "ruby/heap_pages.h"

struct page_list {
	struct memory *memory;
	struct heap_pages pages; /* the state of a walk over the list, with `memory` also for the descriptions */
	bool moved;		 /* the list was never the same after the copy: pages can be missing */
};

/*
 * Copies the list. Free it with memory_destroy(ret->memory), also after a failure.
 *   max_pages  of memory, for the list, and for the descriptions of the heap's pages
 *   runs       whether the program runs
 * Returns false if the list cannot be read, or if there is not enough memory.
 */
bool page_list_read(const struct ruby *ruby, memory_source *source, void *context, size_t max_pages, bool runs,
		    struct page_list *ret);

#endif
