#include "memory/word_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* How many pages are read at once. */
#define PIECE_PAGES 64u

bool word_scan_begin(memory_source *source, void *context, uint64_t bytes, uint64_t deadline_ns, struct word_scan *ret)
{
	*ret = (struct word_scan){
	    .source = source,
	    .context = context,
	    .buffer = malloc(PIECE_PAGES * MEMORY_PAGE),
	    .bytes_left = bytes,
	    .deadline_ns = deadline_ns,
	};
	return ret->buffer != NULL;
}

void word_scan_end(struct word_scan *scan)
{
	free(scan->buffer);
	scan->buffer = NULL;
}

/* Visits the words of a page that lie within [start, end). */
static void visit_page(const uint8_t *bytes, uint64_t page, uint64_t start, uint64_t end, word_visit *visit,
		       void *context)
{
	uint64_t at = start > page ? start - page : 0;
	const uint64_t stop = end - page < MEMORY_PAGE ? end - page : MEMORY_PAGE;

	for (; at + 8 <= stop; at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		if (word >= MEMORY_PAGE && word % 8 == 0)
			visit(context, page + at, word);
	}
}

/* Reads some pages. The list of pages is short. Returns how many there were to read. */
static size_t read_piece(struct word_scan *scan, uint64_t page, uint64_t end, bool ok[PIECE_PAGES])
{
	uint64_t pages[PIECE_PAGES];
	size_t count = 0;

	while (count < PIECE_PAGES && page + count * MEMORY_PAGE < end) {
		pages[count] = page + count * MEMORY_PAGE;
		ok[count++] = false;
	}
	scan->source(scan->context, pages, count, scan->buffer, ok);
	return count;
}

bool word_scan_each(struct word_scan *scan, uint64_t start, uint64_t end, word_visit *visit, void *context)
{
	bool all = true, ok[PIECE_PAGES];
	size_t count;

	start += -start % 8;
	if (end > UINT64_MAX - PIECE_PAGES * MEMORY_PAGE)
		return false;
	for (uint64_t page = start & ~(MEMORY_PAGE - 1); page < end; page += count * MEMORY_PAGE) {
		if (scan->bytes_left < PIECE_PAGES * MEMORY_PAGE ||
		    (scan->deadline_ns != 0 && monotonic_ns() > scan->deadline_ns))
			return false;
		count = read_piece(scan, page, end, ok);
		scan->bytes_left -= count * MEMORY_PAGE;
		for (size_t i = 0; i < count; i++)
			if (ok[i])
				visit_page(scan->buffer + i * MEMORY_PAGE, page + i * MEMORY_PAGE, start, end, visit,
					   context);
			else
				all = false;
	}
	return all;
}
