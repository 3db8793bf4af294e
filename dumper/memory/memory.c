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
	const uint8_t *again; /* the second copy; NULL if there is none, or it could not be read */
	enum page_state state;
	bool fresh; /* it was copied between memory_forget_changing() and memory_seal_changing() */
	/* Which kinds of reads there were: bits, 1 << enum memory_kind. In this pass, and in the one before. */
	uint8_t reads, reads_before;
};

/* Room for copies of pages, never moved. */
struct block {
	struct block *next;
	size_t used, capacity; /* in pages */
	uint8_t data[];
};

#define PAGES_PER_BLOCK 64

/* Room for so many more pages is made before something is copied in haste: 16 MiB. */
#define ROOM_PAGES 4096u

/* The clock is read after so many reads, and before each copy: reading the clock takes longer than a read. */
#define READS_PER_LOOK 64

struct memory {
	memory_source *source;
	void *context;
	size_t max_pages;
	bool sealed;
	bool sealed_changing; /* memory_seal_changing() */
	bool copies_fresh;    /* pages that are copied now are fresh */
	bool recycles;	      /* memory_recycle() */
	enum memory_kind kind;
	size_t missed;
	size_t copied; /* pages, by reads */

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

/* Copies of many pages, in one call of the source. */
struct copies {
	uint64_t *pages; /* addresses, ascending */
	bool *ok;
	uint8_t *data; /* of the snapshot */
	size_t count;  /* 0 if there is not enough memory */
	bool none;     /* there was nothing to copy */
};

/* Copies all pages that are chosen. The caller frees the copies' `pages` and `ok`. */
static struct copies copy_pages(struct memory *memory,
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

static void free_copies(const struct copies *copies)
{
	free(copies->pages);
	free(copies->ok);
}

static bool is_fresh(const struct memory *memory, const struct page *page)
{
	return memory->copies_fresh && page->state == PAGE_COPIED && page->fresh;
}

bool memory_copy_again(struct memory *memory)
{
	const struct copies copies = copy_pages(memory, is_fresh);
	const bool enough = copies.data || copies.none;

	for (size_t i = 0; i < copies.count; i++) {
		struct page *page = find_page(memory, copies.pages[i] / MEMORY_PAGE);

		page->again = copies.ok[i] ? copies.data + i * MEMORY_PAGE : NULL;
		if (!copies.ok[i])
			page->state = PAGE_UNREADABLE;
	}
	free_copies(&copies);
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

	while (copied < count && find_page(memory, first + copied)->again) {
		memcpy(buffer + copied * MEMORY_PAGE, find_page(memory, first + copied)->again, MEMORY_PAGE);
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
	const struct copies copies = copy_pages(memory, is_wanted);

	for (size_t i = 0; i < copies.count; i++) {
		struct page *page = find_page(memory, copies.pages[i] / MEMORY_PAGE);

		page->data = copies.data + i * MEMORY_PAGE;
		page->state = copies.ok[i] ? PAGE_COPIED : PAGE_UNREADABLE;
		page->fresh = memory->copies_fresh;
	}
	memory->missed = 0;
	free_copies(&copies);
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
