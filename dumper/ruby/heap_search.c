#include "ruby/heap_search.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ruby/heap_pages.h"
#include "ruby/value.h"

/* The most pages of memory that one page of the heap can lie in; also the most for its lists. */
#define PIECES_MAX (HEAP_PAGE_BYTES_MAX / MEMORY_PAGE + 1)
#define LISTS_MAX  65536
#define FINDS_MAX  (1u << 20)

/* The descriptions of how many pages are copied at a time. */
#define AHEAD 512u

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

bool heap_is_known(const struct layout *layout)
{
	static const enum layout_member_id words[] = {F_basic_flags, F_typed_data_type, F_typed_data_data};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!layout_has(layout, words[i]) || layout->members[words[i]].size != 8)
			return false;
	return heap_pages_are_known(layout) && layout->enumerators[E_RUBY_T_DATA].present;
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
		uint64_t kind = value_word(slot + flags) & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value;

		if (kind != (uint64_t)layout->enumerators[E_RUBY_T_DATA].value ||
		    value_word(slot + type) != search->type || !value_is_object(value_word(slot + data)))
			continue;
		if (search->finds->data.count >= FINDS_MAX)
			search->finds->cut = true;
		else if (!addresses_add(&search->finds->data, value_word(slot + data)))
			return false;
	}
	return true;
}

static bool is_over(const struct search *search)
{
	return search->bytes > HEAP_BYTES_MAX || elapsed_by_ns(search->clock, &search->began) > HEAP_NS_MAX;
}

/* Whether one of a page's slots is at an address. */
static bool has_slot(const struct heap_page *page, uint64_t address)
{
	return address >= page->start && address - page->start < page->slots * page->slot_size &&
	       (address - page->start) % page->slot_size == 0;
}

/* Searches all pages of the heap. Returns false if there is not enough memory. */
static bool search_pages(struct search *search, struct memory *lists, uint64_t vm)
{
	struct heap_pages pages;
	struct heap_page page;
	uint64_t copied = 0;

	if (!heap_pages_begin(lists, lists, search->layout, vm, &pages)) {
		search->finds->cut = true;
		return true;
	}
	for (;;) {
		if (pages.next >= copied) {
			heap_pages_fetch(&pages, AHEAD);
			copied = pages.next + AHEAD;
		}
		if (!heap_pages_next(&pages, &page))
			break;
		if (is_over(search)) {
			search->finds->cut = true;
			break;
		}
		/* The list was being changed, and the page is gone or not there yet; or a core lacks it. */
		if (page.damaged) {
			search->finds->cut = true;
			continue;
		}
		if (has_slot(&page, search->landmark))
			search->landmark = 0;
		if (!search_slots(search, page.start, page.slots, page.slot_size))
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
	struct access try = access_begin(lists, ruby->layout);
	bool enough = false;

	*ret = (struct heap_finds){0};
	/* The class Object exists for the whole life of the process, and is never moved. */
	if (lists && ruby->object_class != 0)
		search.landmark = value_object(&try, access_word(&try, ruby->object_class));
	clock_gettime(search.clock, &search.began);
	if (lists && search.buffer)
		enough = search_pages(&search, lists, ruby->vm);
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
