#include "target/native_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "memory/page.h"

#define PAGES	   (NATIVE_STACKS_MAX / MEMORY_PAGE)
#define STACK_PAGES (NATIVE_STACK_MAX / MEMORY_PAGE)

/* How much memory the kernel provides before the target is stopped, for each thread: most stacks are shorter. */
#define USUAL_LENGTH (64u * 1024)

/* How far below its mapping the stack pointer of the first thread may be: that mapping grows. */
#define GROWTH (UINT64_C(64) << 20)

static const char first_stack[] = "[stack]";

struct place {
	size_t first, count; /* in pages */
	bool cut;
};

struct native_stacks {
	struct place *places; /* of each thread */
	size_t nr_places, capacity;
	uint8_t *bytes; /* NATIVE_STACKS_MAX bytes of address space */
	uint64_t pages[PAGES];
	bool ok[PAGES];
	size_t nr_pages, nr_copied;
};

struct native_stacks *native_stacks_create(void)
{
	struct native_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->bytes = mmap(NULL, NATIVE_STACKS_MAX, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks->bytes != MAP_FAILED)
		return stacks;
	free(stacks);
	return NULL;
}

void native_stacks_destroy(struct native_stacks *stacks)
{
	if (!stacks)
		return;
	munmap(stacks->bytes, NATIVE_STACKS_MAX);
	free(stacks->places);
	free(stacks);
}

void native_stacks_forget(struct native_stacks *stacks)
{
	stacks->nr_pages = stacks->nr_copied = stacks->nr_places = 0;
}

bool native_stacks_prepare(struct native_stacks *stacks, size_t count)
{
	size_t length = NATIVE_STACKS_MAX;

	native_stacks_forget(stacks);
	if (!array_make_room(stacks->places, stacks->capacity, count))
		return false;
	if (count < NATIVE_STACKS_MAX / USUAL_LENGTH)
		length = count * USUAL_LENGTH;
	if (length < NATIVE_STACK_MAX)
		length = NATIVE_STACK_MAX;
	memset(stacks->bytes, 0, length);
	return true;
}

/* Where the mapping of a stack ends. False if there is none. */
static bool find_end(const struct target *target, uint64_t sp, uint64_t *ret)
{
	const struct mapping *mapping;
	uint64_t start;
	size_t at;

	if (target->operations->find_mapping)
		return target->operations->find_mapping(target, sp, &start, ret);
	at = array_first(target->mappings, target->nr_mappings, one, one->end > sp);
	if (at == target->nr_mappings)
		return false;
	mapping = &target->mappings[at];
	*ret = mapping->end;
	return mapping->start <= sp || (strcmp(mapping->path, first_stack) == 0 && mapping->start - sp < GROWTH);
}

/* The pages of a stack that are to be copied. */
static struct place plan(const struct native_stacks *stacks, const struct target *target, uint64_t sp)
{
	const uint64_t start = sp / MEMORY_PAGE * MEMORY_PAGE;
	struct place place = {.first = stacks->nr_pages};
	uint64_t end, wanted;

	if (sp == 0 || !find_end(target, sp, &end) || end <= start)
		return place;
	wanted = (end - start) / MEMORY_PAGE;
	place.count = wanted < STACK_PAGES ? (size_t)wanted : STACK_PAGES;
	if (place.count > PAGES - stacks->nr_pages)
		place.count = PAGES - stacks->nr_pages;
	place.cut = place.count < wanted;
	return place;
}

void native_stacks_want(struct native_stacks *stacks, const struct target *target, uint64_t sp)
{
	const uint64_t start = sp / MEMORY_PAGE * MEMORY_PAGE;
	struct place place;

	if (stacks->nr_places == stacks->capacity)
		return;
	place = plan(stacks, target, sp);
	for (size_t i = 0; i < place.count; i++)
		stacks->pages[stacks->nr_pages++] = start + i * MEMORY_PAGE;
	stacks->places[stacks->nr_places++] = place;
}

void native_stacks_copy(struct native_stacks *stacks, const struct target *target)
{
	const size_t first = stacks->nr_copied, count = stacks->nr_pages - first;

	stacks->nr_copied = stacks->nr_pages;
	memset(stacks->ok + first, 0, count * sizeof(*stacks->ok));
	if (count > 0)
		target->operations->read_pages(target, stacks->pages + first, count,
					       stacks->bytes + first * MEMORY_PAGE, stacks->ok + first);
}

struct native_stack native_stacks_of(const struct native_stacks *stacks, size_t index)
{
	struct native_stack stack = {0};
	struct place place;
	size_t count = 0;

	if (index >= stacks->nr_places)
		return stack;
	place = stacks->places[index];
	while (count < place.count && stacks->ok[place.first + count])
		count++;
	stack.cut = place.cut || count < place.count;
	if (count == 0)
		return stack;
	stack.start = stacks->pages[place.first];
	stack.length = count * MEMORY_PAGE;
	stack.bytes = stacks->bytes + place.first * MEMORY_PAGE;
	return stack;
}
