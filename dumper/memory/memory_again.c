#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"
#include "memory/memory_parts.h"

static bool is_fresh(const struct memory *memory, const struct page *page)
{
	return memory->copies_fresh && page->state == PAGE_COPIED && page->fresh;
}

bool memory_copy_again(struct memory *memory)
{
	const struct copies copies = memory_copy_pages(memory, is_fresh);
	const bool enough = copies.data || copies.none;

	for (size_t i = 0; i < copies.count; i++) {
		struct page *page = memory_find_page(memory, copies.pages[i] / MEMORY_PAGE);

		page->again = copies.ok[i] ? copies.data + i * MEMORY_PAGE : NULL;
		if (!copies.ok[i])
			page->state = PAGE_UNREADABLE;
	}
	memory_free_copies(&copies);
	return enough;
}

/*
 * The bytes of `count` pages from the page `first` on, as memory_copy_again() has copied them; if it has not copied all
 * of these pages, as they are now. False if they cannot be read.
 */
static bool read_again(struct memory *memory, uint64_t first, size_t count, uint8_t *buffer)
{
	uint64_t *pages = malloc(count * sizeof(*pages));
	bool *ok = calloc(count, sizeof(*ok)), done = pages && ok;
	size_t copied = 0;

	while (copied < count && memory_find_page(memory, first + copied)->again) {
		memcpy(buffer + copied * MEMORY_PAGE, memory_find_page(memory, first + copied)->again, MEMORY_PAGE);
		copied++;
	}
	if (copied < count && done) {
		for (size_t i = 0; i < count; i++)
			pages[i] = (first + i) * MEMORY_PAGE;
		memory->source(memory->context, pages, count, buffer, ok);
		for (size_t i = 0; i < count; i++)
			done &= ok[i];
	}
	free(pages);
	free(ok);
	return done;
}

bool memory_has_changed(struct memory *memory, uint64_t address, size_t length)
{
	uint64_t first = address / MEMORY_PAGE, count = (address + length - 1) / MEMORY_PAGE - first + 1;
	uint8_t *copy, *now;
	bool changed;

	if (length == 0)
		return false;
	if (length > UINT64_MAX - address || count > memory->max_pages)
		return true;
	copy = malloc(length);
	now = malloc(count * MEMORY_PAGE);
	changed = !copy || !now || !memory_read(memory, address, copy, length) ||
		  !read_again(memory, first, count, now) || memcmp(now + address % MEMORY_PAGE, copy, length) != 0;
	free(copy);
	free(now);
	return changed;
}
