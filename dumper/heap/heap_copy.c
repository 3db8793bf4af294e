#include "heap/heap_copy.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "heap/page_list.h"
#include "ruby/collections.h"

/*
 * The bytes of slots that are copied at a time, and the most heap pages that these are in. The caller uses one batch, and
 * the others are being copied: to copy a batch takes longer than to count its objects.
 */
#define BATCH_BYTES (UINT64_C(2) << 20)
#define BATCH_PAGES 128u
#define BATCHES	    3u

/* The most pages of memory of a heap page: it can begin and end in the middle of one. */
#define PAGE_MEMORY (HEAP_PAGE_BYTES_MAX / MEMORY_PAGE + 2)

/* The most pages of memory of a batch. */
#define MEMORY_PAGES (BATCH_BYTES / MEMORY_PAGE + 2 * (size_t)BATCH_PAGES)

/* The most pages of memory for the descriptions of the heap pages of a batch. */
#define DESCRIPTIONS_PAGES 8192u

/* How often the marks of a batch are read until the collector is not running. */
#define MARKS_TRIES 200

/*
 * gc/default/default.c, BASE_SLOT_SIZE, v4_0_5: without RVALUE, a slot has room for RBasic and three VALUEs
 * (RBIMPL_RVALUE_EMBED_LEN_MAX).
 */
#define EMBEDDED_BYTES (3 * 8)

struct bitmaps {
	uint8_t marked[HEAP_COPY_BITS], pinned[HEAP_COPY_BITS], shady[HEAP_COPY_BITS];
};

struct batch {
	struct heap_copy *copy;
	pthread_t thread; /* copies the batch */
	bool has_thread;
	bool blind;		     /* as heap_copy_was_blind(), of this batch */
	struct memory *descriptions; /* of its heap pages, copied when it was listed */
	size_t count;
	struct heap_copy_page pages[BATCH_PAGES];
	struct bitmaps bitmaps[BATCH_PAGES];
	size_t nr_wanted;
	uint64_t wanted[MEMORY_PAGES]; /* the pages of memory that its pages lie in */
	bool ok[MEMORY_PAGES];
	uint8_t *buffer;
};

struct heap_copy {
	const struct ruby *ruby;
	memory_source *source;
	void *context;
	bool runs, parallel, blind;
	bool begins; /* no batch was copied since heap_copy_begin() */
	struct page_list list;
	size_t fits; /* how many heap pages fitted into the batch that was listed last */
	bool has_next;
	struct heap_page next; /* the page that did not fit into the last batch */
	uint64_t bit_mask;     /* the bits of an address that are its place in its heap page */
	uint64_t bit_bytes;    /* how many bytes of a heap page have a bit */
	struct batch batches[BATCHES];
	size_t current; /* the batch that the caller uses; the others follow in turn */
	uint8_t again[PAGE_MEMORY * MEMORY_PAGE];
};

/*
 * NUM_IN_PAGE, v2_1_0 to v4_0_5: there is a bit for each of the smallest slots that a heap page could have. A heap page is
 * aligned to its size, a power of two. A bitmap has a few bits more than are needed.
 */
static void read_geometry(struct heap_copy *copy)
{
	const struct layout *layout = copy->ruby->layout;
	uint64_t bytes;

	if (!layout_has(layout, F_heap_page_mark_bits))
		return;
	copy->bit_bytes = layout->sizes[S_rvalue].present ? (uint64_t)layout->sizes[S_rvalue].value
							  : (uint64_t)layout->sizes[S_basic].value + EMBEDDED_BYTES;
	bytes = (uint64_t)layout->members[F_heap_page_mark_bits].size * 8 * copy->bit_bytes;
	for (uint64_t size = MEMORY_PAGE; size <= HEAP_PAGE_BYTES_MAX && size <= bytes; size *= 2)
		copy->bit_mask = size - 1;
}

struct heap_copy *heap_copy_create(const struct ruby *ruby, memory_source *source, void *context, bool runs,
				   bool parallel)
{
	struct heap_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->ruby = ruby;
	copy->source = source;
	copy->context = context;
	copy->runs = runs;
	copy->parallel = parallel;
	read_geometry(copy);
	for (size_t i = 0; i < BATCHES; i++) {
		copy->batches[i].copy = copy;
		copy->batches[i].buffer = malloc(MEMORY_PAGES * MEMORY_PAGE);
		if (!copy->batches[i].buffer) {
			heap_copy_destroy(copy);
			return NULL;
		}
	}
	return copy;
}

/* Waits until a batch is copied. */
static void join(struct batch *batch)
{
	if (batch->has_thread)
		pthread_join(batch->thread, NULL);
	batch->has_thread = false;
	batch->copy->blind |= batch->blind;
	batch->blind = false;
}

static void join_all(struct heap_copy *copy)
{
	for (size_t i = 0; i < BATCHES; i++)
		if (copy->batches[i].copy)
			join(&copy->batches[i]);
}

void heap_copy_destroy(struct heap_copy *copy)
{
	if (!copy)
		return;
	join_all(copy);
	page_list_clear(&copy->list);
	for (size_t i = 0; i < BATCHES; i++) {
		memory_destroy(copy->batches[i].descriptions);
		free(copy->batches[i].buffer);
	}
	free(copy);
}

bool heap_copy_tells_dead(const struct heap_copy *copy)
{
	const struct layout *layout = copy->ruby->layout;

	return copy->bit_bytes > 0 && layout_has(layout, F_heap_page_mark_bits) &&
	       layout_has(layout, F_heap_page_before_sweep) && layout_has(layout, F_objspace_during_gc);
}

bool heap_copy_begin(struct heap_copy *copy)
{
	join_all(copy);
	copy->begins = true;
	page_list_clear(&copy->list);
	copy->has_next = false;
	copy->fits = MEMORY_PAGES / PAGE_MEMORY;
	copy->blind = !heap_copy_tells_dead(copy);
	return page_list_read(copy->ruby, copy->source, copy->context, copy->runs, &copy->list);
}

bool heap_copy_list_moved(const struct heap_copy *copy)
{
	return copy->list.moved;
}

bool heap_copy_was_blind(const struct heap_copy *copy)
{
	return copy->blind;
}

/* Copies a bitmap from the description of a heap page. Returns NULL if this Ruby has none, or if it cannot be read. */
static const uint8_t *read_bits(struct access *access, const struct heap_page *page, enum layout_member_id id,
				uint8_t *ret)
{
	const struct layout_member *member = &access->layout->members[id];
	struct access try = *access;

	if (!member->present || member->size == 0 || member->size > HEAP_COPY_BITS ||
	    !access_bytes(&try, page->address + member->offset, ret, member->size))
		return NULL;
	return ret;
}

/* Whether a bit of a bitmap is set. */
static bool has_bit(const struct layout *layout, enum layout_member_id id, const uint8_t *bits)
{
	/* No bit is set if the first byte is 0, and each byte is the same as the one before it. */
	return bits && (bits[0] != 0 || memcmp(bits, bits + 1, layout->members[id].size - 1) != 0);
}

/* Reads what the description of a heap page says of its slots. Returns false if it does not tell which are dead. */
static bool describe(const struct heap_copy *copy, struct memory *memory, struct heap_copy_page *page,
		     struct bitmaps *bits)
{
	struct access access = access_begin(memory, copy->ruby->layout);

	page->swept = true;
	if (layout_has(copy->ruby->layout, F_heap_page_reciprocal)) {
		page->first_bit = 0;
		page->bit_step = 1;
	} else {
		page->first_bit = (page->at.start & copy->bit_mask) / copy->bit_bytes;
		page->bit_step = page->at.slot_size / copy->bit_bytes;
	}
	page->marked = read_bits(&access, &page->at, F_heap_page_mark_bits, bits->marked);
	page->pinned = read_bits(&access, &page->at, F_heap_page_pinned_bits, bits->pinned);
	page->shady = read_bits(&access, &page->at, F_heap_page_shady_bits, bits->shady);
	page->any_pinned = has_bit(copy->ruby->layout, F_heap_page_pinned_bits, page->pinned);
	page->any_shady = has_bit(copy->ruby->layout, F_heap_page_shady_bits, page->shady);
	if (!page->marked)
		return false;
	page->swept = access_member(&access, page->at.address, F_heap_page_before_sweep) == 0;
	return !access.failed;
}

/*
 * The descriptions of the pages of a batch, copied now, in one call. NULL if there is not enough memory.
 *   unswept  only those of the pages that were not swept yet
 */
static struct memory *copy_descriptions(const struct heap_copy *copy, const struct batch *batch, bool unswept)
{
	struct memory *memory = memory_create(copy->source, copy->context, DESCRIPTIONS_PAGES);

	for (size_t i = 0; memory && i < batch->count; i++) {
		const struct heap_copy_page *page = &batch->pages[i];
		const uint64_t at = page->at.address;

		if (!page->at.damaged && !(unswept && page->swept) && at <= UINT64_MAX - LAYOUT_STRUCT_MAX)
			memory_want(memory, at, at + (uint64_t)copy->ruby->layout->sizes[S_heap_page].value);
	}
	if (memory)
		memory_fetch(memory);
	return memory;
}

/*
 * Reads the marks of a batch. Returns false if they do not tell for each page which objects are dead.
 *   descriptions  of its pages; NULL is fine
 */
static bool read_marks(const struct heap_copy *copy, struct batch *batch, struct memory *descriptions)
{
	struct collections state;
	bool told = descriptions != NULL;

	for (size_t i = 0; descriptions && i < batch->count; i++)
		if (!batch->pages[i].at.damaged)
			told &= describe(copy, descriptions, &batch->pages[i], &batch->bitmaps[i]);
	return told && collections_now(copy->ruby, copy->source, copy->context, &state) && !state.collecting;
}

/* The pages of memory that the slots of a heap page lie in. */
static size_t pages_of_memory(const struct heap_page *page, uint64_t *first)
{
	*first = page->start & ~(MEMORY_PAGE - 1);
	return (page->start + page->slots * page->slot_size - *first + MEMORY_PAGE - 1) / MEMORY_PAGE;
}

/*
 * Lists heap pages until the batch is full, and the pages of memory that they lie in. Their descriptions are copied at once,
 * and have the marks, too.
 */
static void list_batch(struct heap_copy *copy, struct batch *batch)
{
	batch->count = batch->nr_wanted = 0;
	memory_destroy(batch->descriptions);
	batch->descriptions = memory_create(copy->source, copy->context, DESCRIPTIONS_PAGES);
	copy->list.pages.descriptions = batch->descriptions;
	if (!batch->descriptions) {
		copy->list.moved = true; /* pages are missing */
		return;
	}
	/* There can be any number of pages without slots between two others. */
	memory_recycle(batch->descriptions);
	heap_pages_fetch(&copy->list.pages, copy->fits);
	while (batch->count < BATCH_PAGES) {
		uint64_t first = 0;
		size_t pages = 0;

		if (!copy->has_next && !heap_pages_next(&copy->list.pages, &copy->next))
			break;
		copy->has_next = true;
		if (!copy->next.damaged)
			pages = pages_of_memory(&copy->next, &first);
		if (batch->nr_wanted + pages > MEMORY_PAGES)
			break;
		/* Two heap pages can begin and end in the same page of memory only in 1.9.3: it is copied twice. */
		for (size_t i = 0; i < pages; i++)
			batch->wanted[batch->nr_wanted++] = first + i * MEMORY_PAGE;
		batch->pages[batch->count++] = (struct heap_copy_page){.at = copy->next, .swept = true};
		copy->has_next = false;
	}
	copy->fits = batch->count;
}

/* Whether a page of a batch was swept since its marks were read. */
static bool was_swept_since(const struct heap_copy *copy, const struct batch *batch)
{
	struct memory *memory = copy_descriptions(copy, batch, true);
	bool same = memory != NULL;

	for (size_t i = 0; same && i < batch->count; i++) {
		struct access access = access_begin(memory, copy->ruby->layout);
		const struct heap_copy_page *page = &batch->pages[i];

		if (!page->at.damaged && !page->swept)
			same = access_member(&access, page->at.address, F_heap_page_before_sweep) != 0;
	}
	memory_destroy(memory);
	return !same;
}

/* Copies the slots of a batch. */
static void copy_slots(const struct heap_copy *copy, struct batch *batch)
{
	size_t at = 0;

	memset(batch->ok, 0, sizeof(batch->ok));
	copy->source(copy->context, batch->wanted, batch->nr_wanted, batch->buffer, batch->ok);
	for (size_t i = 0; i < batch->count; i++) {
		struct heap_copy_page *page = &batch->pages[i];
		uint64_t first;
		size_t pages;

		if (page->at.damaged)
			continue;
		pages = pages_of_memory(&page->at, &first);
		page->slots = batch->buffer + at * MEMORY_PAGE + (page->at.start - first);
		for (size_t j = 0; j < pages; j++)
			if (!batch->ok[at + j])
				page->slots = NULL;
		at += pages;
	}
}

/* Copies a batch that was listed. */
static void *copy_batch(void *context)
{
	struct batch *batch = context;
	const struct heap_copy *copy = batch->copy;
	bool told = false;

	if (!heap_copy_tells_dead(copy)) {
		copy_slots(copy, batch);
		return NULL;
	}
	for (int tries = 0; !told && tries < (copy->runs ? MARKS_TRIES : 1); tries++) {
		struct memory *again = NULL;

		if (tries > 0) {
			sched_yield();
			again = copy_descriptions(copy, batch, false);
		}
		told = read_marks(copy, batch, tries > 0 ? again : batch->descriptions);
		memory_destroy(again);
		if (!told && tries + 1 < MARKS_TRIES && copy->runs)
			continue;
		copy_slots(copy, batch);
		told &= !copy->runs || !was_swept_since(copy, batch);
	}
	batch->blind = !told;
	return NULL;
}

/* Lists the next pages, and begins to copy them, in a thread if possible. */
static void begin_batch(struct heap_copy *copy, struct batch *batch)
{
	struct error *error = NULL;

	list_batch(copy, batch);
	if (batch->count == 0)
		return;
	if (copy->parallel)
		error = thread_start(&batch->thread, copy_batch, batch);
	batch->has_thread = copy->parallel && !error;
	error_destroy(error);
	if (!batch->has_thread)
		copy_batch(batch);
}

uint64_t heap_copy_total(const struct heap_copy *copy)
{
	return copy->list.pages.count;
}

size_t heap_copy_next(struct heap_copy *copy, const struct heap_copy_page **ret)
{
	struct batch *batch;

	if (copy->begins) {
		copy->current = 0;
		for (size_t i = 0; i < BATCHES; i++)
			begin_batch(copy, &copy->batches[i]);
	} else {
		begin_batch(copy, &copy->batches[copy->current]);
		copy->current = (copy->current + 1) % BATCHES;
	}
	copy->begins = false;
	batch = &copy->batches[copy->current];
	join(batch);
	*ret = batch->pages;
	return batch->count;
}

size_t heap_copy_still_listed(const struct heap_copy *copy, const struct addresses *pages)
{
	struct heap_page page;
	struct page_list list;
	size_t listed = 0;
	const bool found = page_list_read(copy->ruby, copy->source, copy->context, copy->runs, &list);

	while (found && page_list_next(&list, &page))
		listed += addresses_have(pages, page.address);
	if (!found || !list.descriptions)
		listed = pages->count;
	page_list_clear(&list);
	return listed;
}

const uint8_t *heap_copy_again(struct heap_copy *copy, const struct heap_copy_page *page)
{
	uint64_t first, wanted[PAGE_MEMORY] = {0};
	size_t pages = pages_of_memory(&page->at, &first);
	bool ok[PAGE_MEMORY] = {false};

	for (size_t i = 0; i < pages; i++)
		wanted[i] = first + i * MEMORY_PAGE;
	copy->source(copy->context, wanted, pages, copy->again, ok);
	for (size_t i = 0; i < pages; i++)
		if (!ok[i])
			return NULL;
	return copy->again + (page->at.start - first);
}
