#include "ruby/heap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ruby/value.h"

/*
 * gc.c: HEAP_PAGE_SIZE (up to 2.1 HEAP_SIZE) is 16 KiB up to 3.1, 64 KiB in 3.2; the largest slot, of five size
 * pools, 640 bytes.
 */
#define PAGE_BYTES_MAX (UINT64_C(64) << 10)
#define SLOT_BYTES_MAX 4096u

/* The most pages of memory that one page of the heap can lie in; also the most for its lists. */
#define PIECES_MAX (PAGE_BYTES_MAX / MEMORY_PAGE + 1)
#define LISTS_MAX  65536
#define FINDS_MAX  (1u << 20)
#define HEAP_PAGES (1u << 24)

struct search {
	const struct layout *layout;
	memory_source *source;
	void *context;
	uint64_t type;
	uint64_t landmark; /* an object that must be found; 0 if none is known, or it was found */
	struct heap_finds *finds;
	uint8_t *buffer; /* PIECES_MAX pages */
	uint64_t bytes;
	clockid_t clock; /* for the time limit */
	struct timespec began;
};

/*
 * Whether the list of the heap's pages has their descriptions in itself, not pointers to them: 1.9.3 (gc.c,
 * sorted_heaps_slot).
 */
static bool has_rows(const struct layout *layout)
{
	return layout_has(layout, F_heap_row_start) && layout_has(layout, F_heap_row_end);
}

bool heap_is_known(const struct layout *layout)
{
	static const enum layout_member_id words[] = {F_basic_flags, F_typed_data_type, F_typed_data_data};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!layout_has(layout, words[i]) || layout->members[words[i]].size != 8)
			return false;
	if (!has_rows(layout) &&
	    (!layout_has(layout, F_heap_page_start) || !layout_has(layout, F_heap_page_total_slots)))
		return false;
	return layout_has(layout, F_objspace_pages) && layout_has(layout, F_objspace_nr_pages) &&
	       (layout_has(layout, F_heap_page_slot_size) || layout->sizes[S_rvalue].present) &&
	       layout->enumerators[E_RUBY_T_DATA].present;
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Searches the slots of one page of the heap. Returns false if there is not enough memory. */
static bool search_slots(struct search *search, uint64_t start, uint64_t count, uint64_t size)
{
	const struct layout *layout = search->layout;
	size_t flags = layout->members[F_basic_flags].offset, type = layout->members[F_typed_data_type].offset;
	size_t data = layout->members[F_typed_data_data].offset;
	uint64_t first = start & ~(MEMORY_PAGE - 1), pages[PIECES_MAX];
	size_t nr_pages = (start + count * size - first + MEMORY_PAGE - 1) / MEMORY_PAGE;
	bool ok[PIECES_MAX] = {false};

	if (size < flags + 8 || size < type + 8 || size < data + 8 || nr_pages > PIECES_MAX) {
		search->finds->cut = true;
		return true;
	}
	for (size_t i = 0; i < nr_pages; i++)
		pages[i] = first + i * MEMORY_PAGE;
	search->source(search->context, pages, nr_pages, search->buffer, ok);
	search->bytes += nr_pages * MEMORY_PAGE;
	for (size_t i = 0; i < nr_pages; i++) {
		search->finds->cut |= !ok[i];
		if (!ok[i])
			memset(search->buffer + i * MEMORY_PAGE, 0, MEMORY_PAGE);
	}
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *slot = search->buffer + (start - first) + i * size;
		uint64_t kind = word_at(slot + flags) & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value;

		if (kind != (uint64_t)layout->enumerators[E_RUBY_T_DATA].value ||
		    word_at(slot + type) != search->type || !value_is_object(word_at(slot + data)))
			continue;
		if (search->finds->data.count >= FINDS_MAX)
			search->finds->cut = true;
		else if (!addresses_add(&search->finds->data, word_at(slot + data)))
			return false;
	}
	return true;
}

static bool is_over(const struct search *search)
{
	return search->bytes > HEAP_BYTES_MAX || elapsed_by_ns(search->clock, &search->began) > HEAP_NS_MAX;
}

/* An array of slots of one size. */
struct slots {
	uint64_t start, count, size;
	bool fit; /* whether they end before the next page; in 1.9.3, whether they fill their page */
};

/* The slots of one page of the heap. */
static struct slots slots_of(struct access *access, uint64_t pages, uint64_t nr_pages, uint64_t index)
{
	const struct layout *layout = access->layout;
	struct slots slots = {0};
	uint64_t page;

	slots.size = layout->sizes[S_rvalue].present ? access_sizeof(access, S_rvalue) : 0;
	if (has_rows(layout)) {
		page = pages + index * access_sizeof(access, S_heap_row);
		slots.start = access_member(access, page, F_heap_row_start);
		if (slots.size > 0) {
			const uint64_t length = access_member(access, page, F_heap_row_end) - slots.start;

			slots.count = length / slots.size;
			slots.fit = length % slots.size == 0;
		}
		return slots;
	}
	page = access_word(access, pages + index * 8);
	slots.start = access_member(access, page, F_heap_page_start);
	slots.count = access_member(access, page, F_heap_page_total_slots);
	if (layout_has(layout, F_heap_page_slot_size))
		slots.size = access_member(access, page, F_heap_page_slot_size);
	/* The pages are sorted (gc.c, heap_page_allocate). */
	slots.fit = index + 1 == nr_pages || access_member(access, access_word(access, pages + (index + 1) * 8),
							   F_heap_page_start) >= slots.start + slots.count * slots.size;
	return slots;
}

/* Whether one of the slots is at an address. */
static bool slots_have(const struct slots *slots, uint64_t address)
{
	return address >= slots->start && address - slots->start < slots->count * slots->size &&
	       (address - slots->start) % slots->size == 0;
}

/* Searches all pages of the heap. Returns false if there is not enough memory. */
static bool search_pages(struct search *search, struct access *access, uint64_t vm)
{
	uint64_t objspace = access_member(access, vm, F_vm_objspace);
	uint64_t pages = access_member(access, objspace, F_objspace_pages);
	uint64_t count = access_member(access, objspace, F_objspace_nr_pages);

	if (access->failed || count > HEAP_PAGES) {
		search->finds->cut = true;
		return true;
	}
	for (uint64_t i = 0; i < count; i++) {
		struct access try = *access;
		const struct slots slots = slots_of(&try, pages, count, i);

		if (is_over(search)) {
			search->finds->cut = true;
			break;
		}
		/* The list was being changed, and the page is gone or not there yet; or a core lacks it. */
		if (try.failed || !value_is_object(slots.start) || slots.size == 0 || slots.size > SLOT_BYTES_MAX ||
		    slots.size % 8 != 0 || slots.count > PAGE_BYTES_MAX / slots.size ||
		    slots.start > UINT64_MAX - PAGE_BYTES_MAX) {
			search->finds->cut = true;
			continue;
		}
		search->finds->cut |= !slots.fit;
		if (slots_have(&slots, search->landmark))
			search->landmark = 0;
		if (!search_slots(search, slots.start, slots.count, slots.size))
			return false;
	}
	/* The slots that were searched have another size, or are in other places, than the real ones. */
	search->finds->cut |= search->landmark != 0;
	return true;
}

bool heap_find(const struct ruby *ruby, memory_source *source, void *context, uint64_t type, struct heap_finds *ret)
{
	struct memory *lists = memory_create(source, context, LISTS_MAX);
	struct search search = {
	    .layout = ruby->layout,
	    .source = source,
	    .context = context,
	    .type = type,
	    .finds = ret,
	    .buffer = malloc(PIECES_MAX * MEMORY_PAGE),
	    .clock = memory_clock(ruby->memory),
	};
	struct access access = access_begin(lists, ruby->layout), try = access;
	bool enough = false;

	*ret = (struct heap_finds){0};
	/* The class Object exists for the whole life of the process, and is never moved. */
	if (lists && ruby->object_class != 0)
		search.landmark = value_object(&try, access_word(&try, ruby->object_class));
	clock_gettime(search.clock, &search.began);
	if (lists && search.buffer)
		enough = search_pages(&search, &access, ruby->vm);
	addresses_sort(&ret->data);
	memory_destroy(lists);
	free(search.buffer);
	return enough;
}

void heap_clear(struct heap_finds *finds)
{
	addresses_clear(&finds->data);
	*finds = (struct heap_finds){0};
}
