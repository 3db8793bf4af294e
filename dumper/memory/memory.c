#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/addresses.h"
#include "base/clock.h"
#include "memory/footprint.h"
#include "memory/memory_parts.h"

#define PAGES_PER_BLOCK 64

/* Room for so many more pages is made before something is copied in haste: 16 MiB. */
#define ROOM_PAGES 4096u

/* The clock is read after so many reads, and before each copy: reading the clock takes longer than a read. */
#define READS_PER_LOOK 64

static size_t slot_of(const struct memory *memory, uint64_t number)
{
	return (size_t)((number * 0x9e3779b97f4a7c15ULL) >> 20) & (memory->capacity - 1);
}

struct page *memory_find_page(const struct memory *memory, uint64_t number)
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
			*memory_find_page(memory, old[i].number) = old[i];
	free(old);
	memory->last = NULL;
	return true;
}

/* The page's slot; a new page is entered as wanted. NULL if there is no room. */
static struct page *enter_page(struct memory *memory, uint64_t number)
{
	struct page *page = memory_find_page(memory, number);

	if (page->state != PAGE_EMPTY)
		return page;
	if (memory->count >= memory->max_pages)
		return NULL;
	if (memory->count * 2 >= memory->capacity) {
		if (!grow(memory))
			return NULL;
		page = memory_find_page(memory, number);
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

void memory_recycle(struct memory *memory)
{
	memory->recycles = true;
}

/* Drops all pages. */
static void empty(struct memory *memory)
{
	drop_copies(memory);
	memset(memory->pages, 0, memory->capacity * sizeof(memory->pages[0]));
	memory->count = 0;
	memory->last = NULL;
}

/* Contiguous room for `count` pages; NULL if there is not enough memory. */
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
	memory->copied++;
}

/* Whether a read must fail, because the page was not copied when the snapshot was sealed. */
static bool is_missed(struct memory *memory, struct page *page)
{
	page->reads |= (uint8_t)(1u << memory->kind);
	if (memory->holds && page->state == PAGE_WANTED)
		return true;
	return memory->sealed_changing ? memory->kind == MEMORY_CHANGES && !page->fresh
				       : memory->sealed && page->state == PAGE_WANTED;
}

static const uint8_t *page_data(struct memory *memory, uint64_t number)
{
	struct page *page = memory->last;

	if (!page || page->number != number) {
		page = enter_page(memory, number);
		if (!page && memory->recycles && memory->count > 0) {
			empty(memory);
			page = enter_page(memory, number);
		}
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
	/* What lasts is read from the later copy: it has all that a stack can refer to that was copied in between. */
	if (memory->kind == MEMORY_LASTS && memory->sealed_changing && page->again)
		return page->again;
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

static bool changes(const struct page *page)
{
	return page->reads & 1u << MEMORY_CHANGES;
}

/* A pass begins: everything is going to be read again. */
static void begin_pass(struct memory *memory)
{
	for (size_t i = 0; i < memory->capacity; i++) {
		memory->pages[i].reads_before = memory->pages[i].reads;
		memory->pages[i].reads = 0;
	}
}

/* Drops all copies, and plans to copy all pages, or only those of which something was read that changes. */
static bool plan(struct memory *memory, bool changing_only)
{
	size_t room;

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
		page->again = NULL;
		page->fresh = false;
		if (memory->plan && (changes(page) || !changing_only))
			memory->plan[memory->plan_count++] = page->number * MEMORY_PAGE;
	}
	/* More is touched for what is copied next: the memory for it should not come from the kernel then. */
	room = memory->plan_count;
	if (changing_only)
		room += PAGES_PER_BLOCK + (memory->plan_count < ROOM_PAGES ? memory->plan_count : ROOM_PAGES);
	memory->plan_data = reserve(memory, room);
	if (!memory->plan || !memory->plan_ok || !memory->plan_data) {
		memory->plan_count = 0;
		return false;
	}
	addresses_sort_plain(memory->plan, memory->plan_count);
	memset(memory->plan_ok, 0, memory->plan_count * sizeof(*memory->plan_ok));
	memset(memory->plan_data, 0, room * MEMORY_PAGE);
	memory->blocks->used -= room - memory->plan_count;
	return true;
}

bool memory_forget(struct memory *memory)
{
	begin_pass(memory);
	return plan(memory, false);
}

bool memory_forget_changing(struct memory *memory)
{
	return plan(memory, true);
}

void memory_seal_changing(struct memory *memory)
{
	begin_pass(memory);
	memory->copies_fresh = false;
	memory->sealed_changing = true;
	memory->missed = 0;
}

void memory_hold(struct memory *memory, bool holds)
{
	memory->holds = holds;
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
		struct page *page = memory_find_page(memory, memory->plan[i] / MEMORY_PAGE);

		page->data = memory->plan_data + i * MEMORY_PAGE;
		page->state = memory->plan_ok[i] ? PAGE_COPIED : PAGE_UNREADABLE;
		page->fresh = memory->copies_fresh;
	}
	memory->plan_count = 0;
}

struct copies memory_copy_pages(struct memory *memory,
				bool (*chosen)(const struct memory *memory, const struct page *page))
{
	struct copies copies = {
	    .pages = malloc((memory->count + 1) * sizeof(*copies.pages)),
	    .ok = calloc(memory->count + 1, sizeof(*copies.ok)),
	};

	for (size_t i = 0; copies.pages && copies.ok && i < memory->capacity; i++)
		if (memory->pages[i].state != PAGE_EMPTY && chosen(memory, &memory->pages[i]))
			copies.pages[copies.count++] = memory->pages[i].number * MEMORY_PAGE;
	copies.none = copies.pages && copies.ok && copies.count == 0;
	if (copies.count > 0)
		copies.data = reserve(memory, copies.count);
	if (!copies.data) {
		copies.count = 0;
		return copies;
	}
	addresses_sort_plain(copies.pages, copies.count);
	memory->source(memory->context, copies.pages, copies.count, copies.data, copies.ok);
	return copies;
}

void memory_free_copies(const struct copies *copies)
{
	free(copies->pages);
	free(copies->ok);
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
		if (memory->copies_fresh)
			page->reads |= 1u << MEMORY_CHANGES;
	}
}

static bool is_wanted(const struct memory *memory, const struct page *page)
{
	if (page->state != PAGE_WANTED)
		return false;
	if (memory->sealed_changing)
		return page->reads_before & 1u << MEMORY_LASTS;
	return changes(page) || !memory->copies_fresh;
}

size_t memory_fetch(struct memory *memory)
{
	const struct copies copies = memory_copy_pages(memory, is_wanted);

	for (size_t i = 0; i < copies.count; i++) {
		struct page *page = memory_find_page(memory, copies.pages[i] / MEMORY_PAGE);

		page->data = copies.data + i * MEMORY_PAGE;
		page->state = copies.ok[i] ? PAGE_COPIED : PAGE_UNREADABLE;
		page->fresh = memory->copies_fresh;
	}
	memory->missed = 0;
	memory_free_copies(&copies);
	return copies.count;
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

size_t memory_copied(const struct memory *memory)
{
	return memory->copied;
}

size_t memory_missed(const struct memory *memory)
{
	return memory->missed;
}

void memory_excuse(struct memory *memory, size_t missed)
{
	memory->missed = missed;
}
