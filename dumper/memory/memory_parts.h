/*
 * Declares what memory.c and memory_again.c share. memory_again.c copies pages a second time. Only these two files
 * include this header.
 */
#ifndef RBDUMP_MEMORY_PARTS_H
#define RBDUMP_MEMORY_PARTS_H

#include <time.h>

#include "memory/overlay.h"
#include "memory/page.h"

enum page_state {
	PAGE_EMPTY = 0,	 /* this slot of the hash table is not in use */
	PAGE_WANTED,	 /* known to be needed, not copied yet */
	PAGE_COPIED,	 /* `data` contains the page */
	PAGE_UNREADABLE, /* the source could not read the page */
};

struct page {
	uint64_t number; /* address / MEMORY_PAGE */
	uint8_t *data;
	const uint8_t *again; /* the second copy; NULL if none was made, or if the page could not be read again */
	enum page_state state;
	bool fresh; /* the page was copied between memory_forget_changing() and memory_seal_changing() */
	/*
	 * Which kinds of data were read from the page in the current pass (see memory_fetch()), and in the previous
	 * pass. Each kind has one bit: 1 << enum memory_kind.
	 */
	uint8_t reads, reads_before;
};

/* Memory for copies of pages. It is never moved. */
struct block {
	struct block *next;
	size_t used, capacity; /* in pages */
	uint8_t data[];
};

struct memory {
	memory_source *source;
	void *context;
	size_t max_pages;
	bool sealed;
	bool sealed_changing; /* memory_seal_changing() */
	bool holds;	      /* memory_hold() */
	bool copies_fresh;    /* whether pages that are copied now are marked as fresh */
	bool recycles;	      /* memory_recycle() */
	enum memory_kind kind;
	size_t missed;
	size_t copied; /* the number of pages that reads have copied */

	clockid_t clock;
	long limit_ns; /* the time limit, which begins at `limited`, a time of `clock`; 0: no limit */
	struct timespec limited;
	unsigned int reads; /* number of reads since the clock was last read */
	bool over;

	struct page *pages; /* hash table, open addressing */
	size_t capacity;    /* a power of two */
	size_t count;
	struct page *last; /* the page of the last read */

	struct block *blocks; /* the newest first */

	struct overlay overlay;

	struct footprint *footprint; /* receives what is read; can be NULL */

	bool (*lacks)(const void *context, uint64_t page);
	const void *lacks_context;
	size_t lacked;

	/* memory_forget() and memory_forget_changing() prepare these members for memory_prefetch(). */
	uint64_t *plan; /* addresses, ascending */
	bool *plan_ok;
	size_t plan_count;
	uint8_t *plan_data;
};

/* Copies of many pages, made by one call of the source. */
struct copies {
	uint64_t *pages; /* addresses, ascending */
	bool *ok;
	uint8_t *data; /* the copies, which belong to the snapshot */
	size_t count;  /* 0 if there was nothing to copy, or if there is not enough memory */
	bool none;     /* there was nothing to copy */
};

/*
 * Returns the page with the number `number`. If the snapshot does not have this page, returns the empty entry
 * (PAGE_EMPTY) that the page would get.
 */
struct page *memory_find_page(const struct memory *memory, uint64_t number);

/* Copies all pages for which `chosen` returns true. The caller frees the result with memory_free_copies(). */
struct copies memory_copy_pages(struct memory *memory,
				bool (*chosen)(const struct memory *memory, const struct page *page));

/* Frees `pages` and `ok`, but not `data`, which belongs to the snapshot. */
void memory_free_copies(const struct copies *copies);

#endif
