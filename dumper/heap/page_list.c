#include "heap/page_list.h"

#include "base/clock.h"

/*
 * How often the list is copied at least and at most, and for how long: that of 100 GB of heap is as long as 13 MB. On a
 * busy machine, rbdump can wait for a CPU for longer during one copy.
 */
#define TRIES_MIN 10
#define TRIES_MAX 100
#define TRIES_NS  UINT64_C(200000000)

bool page_list_read(const struct ruby *ruby, memory_source *source, void *context, size_t max_pages, bool runs,
		    struct page_list *ret)
{
	const uint64_t began = monotonic_ns();
	bool found = true;

	*ret = (struct page_list){.moved = true};
	for (int tries = 0; found && ret->moved && tries < TRIES_MAX; tries++) {
		memory_destroy(ret->memory);
		ret->memory = memory_create(source, context, max_pages);
		found = ret->memory && heap_pages_begin(ret->memory, ret->memory, ruby->layout, ruby->vm, &ret->pages);
		ret->moved = found && runs && heap_pages_have_moved(&ret->pages);
		if (tries >= TRIES_MIN && monotonic_ns() - began > TRIES_NS)
			break;
	}
	return found;
}
