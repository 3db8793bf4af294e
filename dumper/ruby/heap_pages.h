/*
 * Lists the pages of Ruby's heap. A page contains slots of one size, and each slot contains one object or is free. Ruby
 * keeps a list of all pages, in the order of their addresses.
 *
 * A running program can change the list while rbdump reads it. So a page in the list may no longer exist, or another
 * page may have taken its place. If the description of a page cannot be right, the page is marked as damaged, and its
 * slots must not be read.
 *
 * Based on Ruby's sources, 2.1.0 to 4.0.5 and head: gc.c; since 3.4: gc/default/default.c (rb_objspace_t.heap_pages,
 * struct heap_page, heap_page_allocate, RVALUE). Before Ruby 2.1, other structs contain the list: rb_objspace_t.heap and
 * struct heaps_header in 2.0, struct sorted_heaps_slot in 1.9.3.
 */
#ifndef RBDUMP_HEAP_PAGES_H
#define RBDUMP_HEAP_PAGES_H

#include "ruby/ruby.h"

/*
 * HEAP_PAGE_SIZE in gc.c (named HEAP_SIZE up to 2.3) is 16 KiB up to 3.1, and 64 KiB since 3.2. Up to 4.0.5, the largest
 * slots have 640 bytes (in the largest of the five size pools). In head, there are larger slots.
 */
#define HEAP_PAGE_BYTES_MAX (UINT64_C(64) << 10)
#define HEAP_SLOT_BYTES_MAX 4096u

struct heap_page {
	uint64_t address; /* the address of the struct heap_page; in 1.9.3, the address of the row in the list */
	uint64_t start;	  /* the address of the first slot */
	uint64_t slots;	  /* how many slots the page has */
	uint64_t slot_size;
	/* The page's description cannot be read or cannot be right, or the page overlaps with the page before it. */
	bool damaged;
};

/* The state of a walk over the list. */
struct heap_pages {
	struct access access; /* for reading the list; the whole list is copied when the walk begins */
	/*
	 * The snapshot from which the descriptions of the pages are read. During the walk, the caller may replace this
	 * snapshot by a new snapshot, so that the snapshot does not become too large.
	 */
	struct memory *descriptions;
	uint64_t objspace, list, count, next;
	uint64_t end; /* the address after the last slot of the last undamaged page that was read */
};

/* Whether the layout has the members that heap_pages_begin() and heap_pages_next() need. */
bool heap_pages_are_known(const struct layout *layout);

/*
 * Begins a walk.
 *   memory        the snapshot through which the list is read; the caller keeps it during the walk
 *   descriptions  the snapshot through which the descriptions of the pages are read; can be the same as `memory`
 *   vm            the address of the VM
 * Returns false if the list cannot be read, or is longer than any real list.
 */
bool heap_pages_begin(struct memory *memory, struct memory *descriptions, const struct layout *layout, uint64_t vm,
		      struct heap_pages *ret);

/*
 * Whether the list now differs from the copy that heap_pages_begin() has made. If so, the copy can lack a page that was
 * in the list all the time, because Ruby moves pages within the list. If the target is running, call this function right
 * after heap_pages_begin().
 */
bool heap_pages_have_moved(const struct heap_pages *pages);

/*
 * Copies the descriptions of the next `count` pages of the list in a few reads. Each description is copied as a whole.
 * Without this call, heap_pages_next() copies the descriptions one by one. If a description cannot be copied here,
 * heap_pages_next() tries to read it.
 */
void heap_pages_fetch(const struct heap_pages *pages, size_t count);

/*
 * Reads the next page. Returns false at the end of the list. If a part of the list cannot be read, returns only one
 * page for this part, and marks this page as damaged. Skips pages that have no slots: since 4.0, an empty page has no
 * slots until Ruby needs the page.
 */
bool heap_pages_next(struct heap_pages *pages, struct heap_page *ret);

#endif
