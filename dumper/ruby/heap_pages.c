#include "ruby/heap_pages.h"

#include "ruby/value.h"

/* The most pages in a list: 1 TiB of pages of 64 KiB. */
#define PAGES_MAX (UINT64_C(1) << 24)

/*
 * Whether the list of the heap's pages has their descriptions in itself, not pointers to them: 1.9.3 (gc.c,
 * sorted_heaps_slot).
 */
static bool has_rows(const struct layout *layout)
{
	return layout_has(layout, F_heap_row_start) && layout_has(layout, F_heap_row_end);
}

/* Whether the list is an rb_darray, which begins with the number of its elements: 3.4+. */
static bool is_darray(const struct layout *layout)
{
	return layout_has(layout, F_objspace_slots_room) && layout_has(layout, F_darray_size);
}

bool heap_pages_are_known(const struct layout *layout)
{
	if (!has_rows(layout) &&
	    (!layout_has(layout, F_heap_page_start) || !layout_has(layout, F_heap_page_total_slots)))
		return false;
	return layout_has(layout, F_objspace_pages) && (is_darray(layout) || layout_has(layout, F_objspace_nr_pages)) &&
	       (layout_has(layout, F_heap_page_slot_size) || layout->sizes[S_rvalue].present);
}

/* How long the list is. */
static uint64_t bytes_of(const struct heap_pages *pages)
{
	struct access access = pages->access;

	return pages->count * (has_rows(access.layout) ? access_sizeof(&access, S_heap_row) : 8);
}

bool heap_pages_begin(struct memory *memory, struct memory *descriptions, const struct layout *layout, uint64_t vm,
		      struct heap_pages *ret)
{
	struct access access = access_begin(memory, layout);
	const uint64_t objspace = access_member(&access, vm, F_vm_objspace);

	*ret = (struct heap_pages){.objspace = objspace, .list = access_member(&access, objspace, F_objspace_pages)};
	if (is_darray(layout)) {
		ret->count = access_member(&access, ret->list, F_darray_size);
		ret->list += access_sizeof(&access, S_darray);
	} else {
		ret->count = access_member(&access, objspace, F_objspace_nr_pages);
	}
	ret->access = access;
	ret->descriptions = descriptions;
	if (access.failed || ret->count > PAGES_MAX)
		return false;
	/* Pages are put into the list while the program runs, and then those behind them are moved. */
	memory_want(memory, ret->list, ret->list + bytes_of(ret));
	memory_fetch(memory);
	return true;
}

static bool has_changed(const struct heap_pages *pages, uint64_t address, enum layout_member_id id)
{
	const struct layout_member *member = &pages->access.layout->members[id];

	return memory_has_changed(pages->access.memory, address + member->offset, member->size);
}

bool heap_pages_have_moved(const struct heap_pages *pages)
{
	const struct layout *layout = pages->access.layout;
	struct access access = pages->access;

	if (memory_has_changed(access.memory, pages->list, bytes_of(pages)) ||
	    has_changed(pages, pages->objspace, F_objspace_pages))
		return true;
	if (is_darray(layout))
		return has_changed(pages, pages->list - access_sizeof(&access, S_darray), F_darray_size);
	return has_changed(pages, pages->objspace, F_objspace_nr_pages);
}

/* 1.9.3: reads a row of the list. Returns false if its slots do not fill it. */
static bool read_row(const struct heap_pages *pages, struct access *access, struct heap_page *ret)
{
	uint64_t length;

	ret->address = pages->list + pages->next * access_sizeof(access, S_heap_row);
	ret->start = access_member(access, ret->address, F_heap_row_start);
	length = access_member(access, ret->address, F_heap_row_end) - ret->start;
	ret->slots = ret->slot_size > 0 ? length / ret->slot_size : 0;
	return ret->slot_size > 0 && length % ret->slot_size == 0;
}

/* Whether numbers of a page can be right. */
static bool can_be(const struct heap_page *page)
{
	return value_is_object(page->start) && page->slot_size > 0 && page->slot_size <= HEAP_SLOT_BYTES_MAX &&
	       page->slot_size % 8 == 0 && page->slots <= HEAP_PAGE_BYTES_MAX / page->slot_size &&
	       page->start <= UINT64_MAX - HEAP_PAGE_BYTES_MAX;
}

/*
 * An element of the list cannot be read. Neither can those in the same page of memory: goes on behind them. A hostile list
 * has millions of elements that are not there.
 */
static void skip_unreadable(struct heap_pages *pages)
{
	const struct access *access = &pages->access;
	const uint64_t size = has_rows(access->layout) ? access_sizeof(access, S_heap_row) : 8;
	const uint64_t at = pages->list + pages->next * size;
	const uint64_t behind = ((at & ~(MEMORY_PAGE - 1)) + MEMORY_PAGE - pages->list) / (size > 0 ? size : 8);

	pages->next = behind > pages->next ? behind : pages->next + 1;
}

/*
 * Reads the next page.
 *   unused  receives whether the page is kept without slots until it is needed: gc/default/default.c, gc_sweep_step(),
 *           v4_0_0 to v4_0_5, sets all of this to 0
 */
static bool read_next(struct heap_pages *pages, struct heap_page *ret, bool *unused)
{
	const struct layout *layout = pages->access.layout;
	struct access access = pages->access, described = access_begin(pages->descriptions, layout);
	bool fills = true;

	if (pages->next >= pages->count)
		return false;
	*ret = (struct heap_page){.slot_size = layout->sizes[S_rvalue].present ? access_sizeof(&access, S_rvalue) : 0};
	if (has_rows(layout)) {
		fills = read_row(pages, &access, ret);
	} else {
		ret->address = access_word(&access, pages->list + pages->next * 8);
		ret->start = access_member(&described, ret->address, F_heap_page_start);
		ret->slots = access_member(&described, ret->address, F_heap_page_total_slots);
		if (layout_has(layout, F_heap_page_slot_size))
			ret->slot_size = access_member(&described, ret->address, F_heap_page_slot_size);
	}
	if (access.failed)
		skip_unreadable(pages);
	else
		pages->next++;
	*unused = !access.failed && !described.failed && layout_has(layout, F_heap_page_slot_size) && ret->start == 0 &&
		  ret->slots == 0 && ret->slot_size == 0;
	/* The list is sorted (gc.c, heap_page_allocate). */
	ret->damaged = access.failed || described.failed || !fills || !can_be(ret) || ret->start < pages->end;
	if (!ret->damaged)
		pages->end = ret->start + ret->slots * ret->slot_size;
	return true;
}

void heap_pages_fetch(const struct heap_pages *pages, size_t count)
{
	struct access access = pages->access;
	const uint64_t size = access.layout->sizes[S_heap_page].present ? access_sizeof(&access, S_heap_page) : 8;

	if (has_rows(access.layout))
		return;
	for (uint64_t i = pages->next; i < pages->count && i - pages->next < count && !access.failed; i++) {
		const uint64_t address = access_word(&access, pages->list + i * 8);

		if (value_is_object(address) && address <= UINT64_MAX - LAYOUT_STRUCT_MAX)
			memory_want(pages->descriptions, address, address + size);
	}
	memory_fetch(pages->descriptions);
}

bool heap_pages_next(struct heap_pages *pages, struct heap_page *ret)
{
	bool unused;

	while (read_next(pages, ret, &unused))
		if (!unused)
			return true;
	return false;
}
