#include "heap/page_list.h"

#include "base/clock.h"

/*
 * How often the list is copied at least and at most, and for how long: that of 100 GB of heap is as long as 13 MB. On a
 * busy machine, rbdump can wait for a CPU for longer during one copy.
 */
#define TRIES_MIN 10
#define TRIES_MAX 100
#define TRIES_NS  UINT64_C(200000000)

/* The most pages of memory for the list, for 2^24 pages of the heap; and for the descriptions of some of these. */
#define LIST_PAGES	   32776u
#define DESCRIPTIONS_PAGES 8192u

/* The descriptions of how many pages are copied at a time. */
#define AHEAD 512u

bool page_list_read(const struct ruby *ruby, memory_source *source, void *context, bool runs, struct page_list *ret)
{
	const uint64_t began = monotonic_ns();
	bool found = true;

	*ret = (struct page_list){.moved = true, .source = source, .context = context};
	for (int tries = 0; found && ret->moved && tries < TRIES_MAX; tries++) {
		memory_destroy(ret->memory);
		ret->memory = memory_create(source, context, LIST_PAGES);
		found = ret->memory && heap_pages_begin(ret->memory, ret->memory, ruby->layout, ruby->vm, &ret->pages);
		ret->moved = found && runs && heap_pages_have_moved(&ret->pages);
		if (tries >= TRIES_MIN && monotonic_ns() - began > TRIES_NS)
			break;
	}
	return found;
}

void page_list_clear(struct page_list *list)
{
	memory_destroy(list->memory);
	memory_destroy(list->descriptions);
	*list = (struct page_list){0};
}

bool page_list_next(struct page_list *list, struct heap_page *ret)
{
	if (list->ahead == 0) {
		memory_destroy(list->descriptions);
		list->descriptions = memory_create(list->source, list->context, DESCRIPTIONS_PAGES);
		list->pages.descriptions = list->descriptions;
		if (!list->descriptions)
			return false;
		/* There can be any number of pages without slots between two others. */
		memory_recycle(list->descriptions);
		heap_pages_fetch(&list->pages, AHEAD);
		list->ahead = AHEAD;
	}
	list->ahead--;
	return heap_pages_next(&list->pages, ret);
}
