#include "heap/slots.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/array.h"

/* A page that has slots. The look-up reads all members, so they are small: a page has at most 8192 slots. */
struct page {
	uint64_t start;
	uint32_t first; /* the number of the first slot */
	uint32_t bytes; /* of all slots */
	uint16_t slot_size;
};

/*
 * The address space is divided into blocks that are at least as long as the longest page. So a page lies in at most two
 * blocks. The table has an entry for each block in which a page lies.
 */
struct entry {
	uint64_t block; /* the address divided by the size of a block */
	uint32_t first; /* the first page that lies in the block, or a part of which does */
	uint32_t pages; /* how many such pages there are, one after another; 0: the entry is empty */
};

struct slots {
	struct page *pages;
	size_t nr_pages;
	uint32_t count;
	unsigned int block_shift, hash_shift;
	uint64_t multiplier; /* random and odd, so that a target cannot choose addresses with the same hash */
	struct entry *table;
	size_t mask; /* the length of the table, a power of two, minus 1 */
};

/* The smallest block has 4 KiB. */
#define BLOCK_SHIFT_MIN 12u

/* Copies the pages that have slots, and numbers their slots. Returns false if there are too many slots. */
static bool number_pages(struct slots *slots, const struct heap_page *pages, size_t count)
{
	uint64_t next = 1, longest = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t bytes = pages[i].slots * pages[i].slot_size;

		if (pages[i].damaged || bytes == 0)
			continue;
		slots->pages[slots->nr_pages++] = (struct page){.start = pages[i].start,
								.first = (uint32_t)next,
								.bytes = (uint32_t)bytes,
								.slot_size = (uint16_t)pages[i].slot_size};
		next += pages[i].slots;
		longest = bytes > longest ? bytes : longest;
		if (next > (uint64_t)SLOTS_MAX + 1)
			return false;
	}
	slots->count = (uint32_t)(next - 1);
	slots->block_shift = BLOCK_SHIFT_MIN;
	while (UINT64_C(1) << slots->block_shift < longest)
		slots->block_shift++;
	return true;
}

/* The entry of a block, or the empty one that it would get. The table is at most half full. */
static struct entry *entry_of(const struct slots *slots, uint64_t block)
{
	size_t i = (block * slots->multiplier) >> slots->hash_shift;

	while (slots->table[i].pages != 0 && slots->table[i].block != block)
		i = (i + 1) & slots->mask;
	return &slots->table[i];
}

/* Enters each page for each block in which it lies. */
static void fill_table(struct slots *slots)
{
	for (size_t i = 0; i < slots->nr_pages; i++) {
		const struct page *page = &slots->pages[i];
		const uint64_t last = (page->start + page->bytes - 1) >> slots->block_shift;

		for (uint64_t block = page->start >> slots->block_shift; block <= last; block++) {
			struct entry *entry = entry_of(slots, block);

			if (entry->pages == 0)
				*entry = (struct entry){.block = block, .first = (uint32_t)i};
			entry->pages++;
		}
	}
}

static bool make_table(struct slots *slots)
{
	unsigned int bits = 2;

	while ((size_t)1 << bits < 4 * slots->nr_pages)
		bits++;
	if (getrandom(&slots->multiplier, sizeof(slots->multiplier), GRND_NONBLOCK) != sizeof(slots->multiplier))
		slots->multiplier = 0x9e3779b97f4a7c15ULL;
	slots->multiplier |= 1;
	slots->mask = ((size_t)1 << bits) - 1;
	slots->hash_shift = 64 - bits;
	slots->table = calloc(slots->mask + 1, sizeof(slots->table[0]));
	if (!slots->table)
		return false;
	fill_table(slots);
	return true;
}

struct slots *slots_create(const struct heap_page *pages, size_t count)
{
	struct slots *slots = calloc(1, sizeof(*slots));

	if (!slots)
		return NULL;
	slots->pages = calloc(count + 1, sizeof(slots->pages[0]));
	if (!slots->pages || !number_pages(slots, pages, count) || !make_table(slots)) {
		slots_destroy(slots);
		return NULL;
	}
	return slots;
}

void slots_destroy(struct slots *slots)
{
	if (!slots)
		return;
	free(slots->pages);
	free(slots->table);
	free(slots);
}

uint32_t slots_count(const struct slots *slots)
{
	return slots->count;
}

/*
 * The last page of an entry that begins at or before an address. A heap has one or two pages in a block, but a hostile
 * target can have thousands, so this is a binary search. If all pages begin later, the result is the first one.
 */
static const struct page *page_of(const struct slots *slots, const struct entry *entry, uint64_t address)
{
	const struct page *pages = &slots->pages[entry->first];

	return &pages[array_first(pages + 1, entry->pages - 1, page, page->start > address)];
}

uint32_t slots_number(const struct slots *slots, uint64_t address)
{
	const struct entry *entry = entry_of(slots, address >> slots->block_shift);
	const struct page *page;
	uint64_t offset;

	if (entry->pages == 0)
		return 0;
	page = page_of(slots, entry, address);
	offset = address - page->start; /* wraps around if the page begins later */
	if (offset >= page->bytes || (uint32_t)offset % page->slot_size != 0)
		return 0;
	return page->first + (uint32_t)offset / page->slot_size;
}

uint64_t slots_address(const struct slots *slots, uint32_t number, uint64_t *size)
{
	const size_t behind = array_first(slots->pages, slots->nr_pages, page, page->first > number);
	const struct page *of = &slots->pages[behind - 1];

	*size = of->slot_size;
	return of->start + (uint64_t)(number - of->first) * of->slot_size;
}
