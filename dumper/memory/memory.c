#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/addresses.h"
#include "base/clock.h"
#include "memory/footprint.h"

enum page_state {
	PAGE_EMPTY = 0,	 /* slot not in use */
	PAGE_WANTED,	 /* known to be needed, not copied */
	PAGE_COPIED,	 /* `data` holds it */
	PAGE_UNREADABLE, /* the source could not read it */
};

struct page {
	uint64_t number; /* address / MEMORY_PAGE */
	uint8_t *data;
	enum page_state state;
	bool changes; /* something was read there that changes */
	bool fresh;   /* it was copied between memory_forget_changing() and memory_seal_changing() */
};

/* Room for copies of pages, never moved. */
struct block {
	struct block *next;
	size_t used, capacity; /* in pages */
	uint8_t data[];
};

#define PAGES_PER_BLOCK 64

/* The clock is read after so many reads, and before each copy: reading the clock takes longer than a read. */
#define READS_PER_LOOK 64

struct memory {
	memory_source *source;
	void *context;
	size_t max_pages;
	bool sealed;
	bool sealed_changing; /* memory_seal_changing() */
	bool copies_fresh;    /* pages that are copied now are fresh */
	enum memory_kind kind;
	size_t missed;

	clockid_t clock;
	long limit_ns; /* from `limited` on, by that clock; 0: no limit */
	struct timespec limited;
	unsigned int reads; /* since the clock was read */
	bool over;

	struct page *pages; /* hash table, open addressing */
	size_t capacity;    /* a power of two */
	size_t count;
	struct page *last; /* the page of the last read */

	struct block *blocks; /* the newest first */

	struct overlay overlay;

	struct footprint *footprint; /* receives what is read; NULL */

	bool (*lacks)(const void *context, uint64_t page);
	const void *lacks_context;
	size_t lacked;

	/* What memory_forget() has prepared: */
	uint64_t *plan; /* addresses, ascending */
	bool *plan_ok;
	size_t plan_count;
	uint8_t *plan_data;
};

static size_t slot_of(const struct memory *memory, uint64_t number)
{
	return (size_t)((number * 0x9e3779b97f4a7c15ULL) >> 20) & (memory->capacity - 1);
}

static struct page *find_page(const struct memory *memory, uint64_t number)
{
	size_t i = slot_of(memory, number);

	while (memory->pages[i].state != PAGE_EMPTY && memory->pages[i].number != number)
		i = (i + 1) & (memory->capacity - 1);
	return &memory->pages[i];
}

static bool grow(struct memory *memory)
{
	struct page *old = memory->pages;
	size_t old_capacity = memory->capacity;
	struct page *pages = calloc(old_capacity * 2, sizeof(*pages));

	if (!pages)
		return false;
	memory->pages = pages;
	memory->capacity = old_capacity * 2;
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i].state != PAGE_EMPTY)
			*find_page(memory, old[i].number) = old[i];
	free(old);
	memory->last = NULL;
	return true;
}

/* The page's slot; a new page is entered as wanted. NULL if there is no room. */
static struct page *enter_page(struct memory *memory, uint64_t number)
{
	struct page *page = find_page(memory, number);

	if (page->state != PAGE_EMPTY)
		return page;
	if (memory->count >= memory->max_pages)
		return NULL;
	if (memory->count * 2 >= memory->capacity) {
		if (!grow(memory))
			return NULL;
		page = find_page(memory, number);
	}
	page->number = number;
	page->state = PAGE_WANTED;
	memory->count++;
	return page;
}

struct memory *memory_create(memory_source *source, void *context, size_t max_pages)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->source = source;
	memory->context = context;
	memory->max_pages = max_pages;
	memory->clock = CLOCK_MONOTONIC;
	memory->capacity = 1024;
	memory->pages = calloc(memory->capacity, sizeof(*memory->pages));
	if (!memory->pages) {
		free(memory);
		return NULL;
	}
	return memory;
}

static void drop_copies(struct memory *memory)
{
	while (memory->blocks) {
		struct block *block = memory->blocks;

		memory->blocks = block->next;
		free(block);
	}
	free(memory->plan);
	free(memory->plan_ok);
	memory->plan = NULL;
	memory->plan_ok = NULL;
	memory->plan_count = 0;
}

void memory_destroy(struct memory *memory)
{
	if (!memory)
		return;
	drop_copies(memory);
	free(memory->pages);
	free(memory);
}

/* Contiguous room for `count` pages; NULL if out of memory. */
static uint8_t *reserve(struct memory *memory, size_t count)
{
	struct block *block = memory->blocks;

	if (!block || block->capacity - block->used < count) {
		size_t capacity = count > PAGES_PER_BLOCK ? count : PAGES_PER_BLOCK;

		block = malloc(sizeof(*block) + capacity * MEMORY_PAGE);
		if (!block)
			return NULL;
		block->next = memory->blocks;
		block->used = 0;
		block->capacity = capacity;
		memory->blocks = block;
	}
	block->used += count;
	return block->data + (block->used - count) * MEMORY_PAGE;
}

void memory_count_own_time(struct memory *memory)
{
	memory->clock = CLOCK_THREAD_CPUTIME_ID;
}

clockid_t memory_clock(const struct memory *memory)
{
	return memory->clock;
}

void memory_limit(struct memory *memory, long limit_ns)
{
	memory->limit_ns = limit_ns;
	memory->reads = 0;
	memory->over = false;
	clock_gettime(memory->clock, &memory->limited);
}

bool memory_is_over(const struct memory *memory)
{
	return memory->over;
}

/* Reads the clock. */
static bool is_over(struct memory *memory)
{
	memory->reads = 0;
	memory->over =
	    memory->over || (memory->limit_ns > 0 && elapsed_by_ns(memory->clock, &memory->limited) > memory->limit_ns);
	return memory->over;
}

static void copy_page(struct memory *memory, struct page *page)
{
	uint64_t address = page->number * MEMORY_PAGE;
	bool ok = false;

	page->data = reserve(memory, 1);
	if (page->data)
		memory->source(memory->context, &address, 1, page->data, &ok);
	page->state = ok ? PAGE_COPIED : PAGE_UNREADABLE;
	page->fresh = memory->copies_fresh;
}

/* Whether a read must fail, because the page was not copied when the snapshot was sealed. */
static bool is_missed(struct memory *memory, struct page *page)
{
	const bool changes = memory->kind == MEMORY_CHANGES;

	page->changes |= changes;
	return memory->sealed_changing ? changes && !page->fresh : memory->sealed && page->state == PAGE_WANTED;
}

static const uint8_t *page_data(struct memory *memory, uint64_t number)
{
	struct page *page = memory->last;

	if (!page || page->number != number) {
		page = enter_page(memory, number);
		if (!page)
			return NULL;
		memory->last = page;
	}
	if (is_missed(memory, page)) {
		memory->missed++;
		return NULL;
	}
	if (page->state == PAGE_WANTED) {
		if (is_over(memory))
			return NULL;
		copy_page(memory, page);
	}
	return page->state == PAGE_COPIED ? page->data : NULL;
}

void memory_overlay(struct memory *memory, const struct memory_piece *pieces, size_t count, uint64_t low, uint64_t high)
{
	memory->overlay = (struct overlay){.pieces = pieces, .count = count, .low = low, .high = high};
}

void memory_record(struct memory *memory, struct footprint *footprint)
{
	memory->footprint = footprint;
}

static bool read_bytes(struct memory *memory, uint64_t address, void *buffer, size_t length)
{
	uint8_t *to = buffer;

	if (length > UINT64_MAX - address || memory->over || (++memory->reads >= READS_PER_LOOK && is_over(memory)))
		return false;
	if (memory->overlay.count > 0) {
		const struct memory_piece *piece = overlay_find(&memory->overlay, address, length);

		if (piece) {
			memcpy(buffer, piece->data + (address - piece->address), length);
			return true;
		}
		if (address >= memory->overlay.low && address < memory->overlay.high)
			return false;
	}
	while (length > 0) {
		size_t offset = address % MEMORY_PAGE;
		size_t here = MEMORY_PAGE - offset < length ? MEMORY_PAGE - offset : length;
		const uint8_t *data = page_data(memory, address / MEMORY_PAGE);

		if (!data) {
			memory->lacked +=
			    memory->lacks && memory->lacks(memory->lacks_context, address - address % MEMORY_PAGE);
			return false;
		}
		memcpy(to, data + offset, here);
		to += here;
		address += here;
		length -= here;
	}
	return true;
}

bool memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length)
{
	const bool done = read_bytes(memory, address, buffer, length);

	if (done && memory->footprint)
		footprint_add(memory->footprint, address, buffer, length);
	return done;
}

/* Drops all copies, and plans to copy all pages, or only those of which something was read that changes. */
static bool plan(struct memory *memory, bool changing_only)
{
	drop_copies(memory);
	memory->sealed = memory->sealed_changing = false;
	memory->copies_fresh = changing_only;
	memory->missed = 0;
	memory->plan = malloc((memory->count + 1) * sizeof(*memory->plan));
	memory->plan_ok = malloc((memory->count + 1) * sizeof(*memory->plan_ok));
	for (size_t i = 0; i < memory->capacity; i++) {
		struct page *page = &memory->pages[i];

		if (page->state == PAGE_EMPTY)
			continue;
		page->state = PAGE_WANTED;
		page->fresh = false;
		if (memory->plan && (page->changes || !changing_only))
			memory->plan[memory->plan_count++] = page->number * MEMORY_PAGE;
	}
	memory->plan_data = reserve(memory, memory->plan_count);
	if (!memory->plan || !memory->plan_ok || !memory->plan_data) {
		memory->plan_count = 0;
		return false;
	}
	addresses_sort_plain(memory->plan, memory->plan_count);
	memset(memory->plan_ok, 0, memory->plan_count * sizeof(*memory->plan_ok));
	memset(memory->plan_data, 0, memory->plan_count * MEMORY_PAGE);
	return true;
}

bool memory_forget(struct memory *memory)
{
	return plan(memory, false);
}

bool memory_forget_changing(struct memory *memory)
{
	return plan(memory, true);
}

void memory_seal_changing(struct memory *memory)
{
	memory->copies_fresh = false;
	memory->sealed_changing = true;
	memory->missed = 0;
}

enum memory_kind memory_reads(struct memory *memory, enum memory_kind kind)
{
	enum memory_kind before = memory->kind;

	memory->kind = kind;
	return before;
}

void memory_prefetch(struct memory *memory)
{
	memory->source(memory->context, memory->plan, memory->plan_count, memory->plan_data, memory->plan_ok);
	for (size_t i = 0; i < memory->plan_count; i++) {
		struct page *page = find_page(memory, memory->plan[i] / MEMORY_PAGE);

		page->data = memory->plan_data + i * MEMORY_PAGE;
		page->state = memory->plan_ok[i] ? PAGE_COPIED : PAGE_UNREADABLE;
		page->fresh = memory->copies_fresh;
	}
	memory->plan_count = 0;
}

bool memory_has_changed(struct memory *memory, uint64_t address, size_t length)
{
	uint64_t first = address / MEMORY_PAGE, count = (address + length - 1) / MEMORY_PAGE - first + 1;
	uint8_t *copy, *now;
	uint64_t *pages;
	bool *ok, changed = true;

	if (length == 0)
		return false;
	if (length > UINT64_MAX - address || count > memory->max_pages)
		return true;
	copy = malloc(length);
	now = malloc(count * MEMORY_PAGE);
	pages = malloc(count * sizeof(*pages));
	ok = calloc(count, sizeof(*ok));
	if (copy && now && pages && ok && memory_read(memory, address, copy, length)) {
		for (size_t i = 0; i < count; i++)
			pages[i] = (first + i) * MEMORY_PAGE;
		memory->source(memory->context, pages, count, now, ok);
		changed = memcmp(now + address % MEMORY_PAGE, copy, length) != 0;
		for (size_t i = 0; i < count; i++)
			changed |= !ok[i];
	}
	free(copy);
	free(now);
	free(pages);
	free(ok);
	return changed;
}

void memory_want(struct memory *memory, uint64_t start, uint64_t end)
{
	uint64_t first = start / MEMORY_PAGE, last = end > start ? (end - 1) / MEMORY_PAGE : 0;

	if (end > start && overlay_find(&memory->overlay, start, (size_t)(end - start)))
		return;
	for (uint64_t number = first; end > start && number <= last; number++) {
		struct page *page = enter_page(memory, number);

		if (!page)
			return;
		page->changes |= memory->copies_fresh;
	}
}

size_t memory_fetch(struct memory *memory)
{
	uint64_t *wanted = malloc((memory->count + 1) * sizeof(*wanted));
	bool *ok = calloc(memory->count + 1, sizeof(*ok));
	uint8_t *data = NULL;
	size_t count = 0;

	for (size_t i = 0; wanted && i < memory->capacity; i++)
		if (memory->pages[i].state == PAGE_WANTED && (memory->pages[i].changes || !memory->copies_fresh))
			wanted[count++] = memory->pages[i].number * MEMORY_PAGE;
	if (wanted && ok && count > 0)
		data = reserve(memory, count);
	if (!data)
		count = 0;
	if (count > 0) {
		addresses_sort_plain(wanted, count);
		memory->source(memory->context, wanted, count, data, ok);
	}
	for (size_t i = 0; i < count; i++) {
		struct page *page = find_page(memory, wanted[i] / MEMORY_PAGE);

		page->data = data + i * MEMORY_PAGE;
		page->state = ok[i] ? PAGE_COPIED : PAGE_UNREADABLE;
		page->fresh = memory->copies_fresh;
	}
	memory->missed = 0;
	free(wanted);
	free(ok);
	return count;
}

void memory_seal(struct memory *memory)
{
	memory->sealed = true;
	memory->missed = 0;
}

void memory_set_lacking(struct memory *memory, bool (*lacks)(const void *context, uint64_t page), const void *context)
{
	memory->lacks = lacks;
	memory->lacks_context = context;
}

size_t memory_lacked(const struct memory *memory)
{
	return memory->lacked;
}

size_t memory_pages(const struct memory *memory)
{
	return memory->count;
}

size_t memory_missed(const struct memory *memory)
{
	return memory->missed;
}

void memory_want_footprint(struct memory *memory, const struct footprint *footprint)
{
	for (uint32_t i = 0; i < footprint->nr_spans; i++)
		memory_want(memory, footprint->spans[i].address,
			    footprint->spans[i].address + footprint->spans[i].length);
}

bool memory_has_footprint(struct memory *memory, const struct footprint *footprint)
{
	uint8_t now[256];

	for (uint32_t i = 0; i < footprint->nr_spans && !footprint->failed; i++) {
		const struct footprint_span *span = &footprint->spans[i];

		for (uint32_t done = 0; done < span->length; done += sizeof(now)) {
			const size_t length = span->length - done < sizeof(now) ? span->length - done : sizeof(now);

			if (!memory_read(memory, span->address + done, now, length) ||
			    memcmp(now, footprint->bytes + span->offset + done, length) != 0)
				return false;
		}
	}
	return !footprint->failed;
}
