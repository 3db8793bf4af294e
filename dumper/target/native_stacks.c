#include "target/native_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "memory/page.h"

#define PAGES	    (NATIVE_STACKS_MAX / MEMORY_PAGE)
#define STACK_PAGES (NATIVE_STACK_MAX / MEMORY_PAGE)

/* How much memory the kernel provides before the target is stopped, for each thread: most stacks are shorter. */
#define USUAL_LENGTH (64u * 1024)

/* How far below its mapping the stack pointer of the first thread may be: that mapping grows. */
#define GROWTH (UINT64_C(64) << 20)

static const char first_stack[] = "[stack]";

struct part {
	size_t first, count; /* in pages */
	bool cut;
};

struct place {
	struct part parts[NATIVE_PARTS];
	size_t end; /* how many pages were wanted after this stack */
};

struct native_stacks {
	const struct address_map *holes; /* NULL: none */
	struct place *places;		 /* of each stack */
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
	stacks->bytes =
	    mmap(NULL, NATIVE_STACKS_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

void native_stacks_keep(struct native_stacks *stacks, size_t count)
{
	if (count >= stacks->nr_places)
		return;
	stacks->nr_places = count;
	stacks->nr_pages = stacks->nr_copied = count > 0 ? stacks->places[count - 1].end : 0;
}

bool native_stacks_prepare(struct native_stacks *stacks, size_t count)
{
	native_stacks_forget(stacks);
	return array_make_room(stacks->places, stacks->capacity, count);
}

bool native_stacks_reserve(struct native_stacks *stacks, size_t count)
{
	return array_make_room(stacks->places, stacks->capacity, count);
}

void native_stacks_provide(struct native_stacks *stacks, size_t count)
{
	const size_t used = stacks->nr_pages * MEMORY_PAGE;
	size_t length = count < NATIVE_STACKS_MAX / USUAL_LENGTH ? count * USUAL_LENGTH : NATIVE_STACKS_MAX;

	if (length < NATIVE_STACK_MAX)
		length = NATIVE_STACK_MAX;
	if (length > NATIVE_STACKS_MAX - used)
		length = NATIVE_STACKS_MAX - used;
	memset(stacks->bytes + used, 0, length);
}

bool native_stacks_are_crowded(const struct native_stacks *stacks)
{
	return stacks->nr_pages > PAGES / 2;
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

static uint64_t page_of(uint64_t address)
{
	return address / MEMORY_PAGE * MEMORY_PAGE;
}

/* Adds the pages of a part of a stack that is not longer than `room` pages. */
static struct part plan(struct native_stacks *stacks, uint64_t start, uint64_t end, size_t room)
{
	struct part part = {.first = stacks->nr_pages};
	const uint64_t wanted = end > start ? (end - start + MEMORY_PAGE - 1) / MEMORY_PAGE : 0;

	if (room > PAGES - stacks->nr_pages)
		room = PAGES - stacks->nr_pages;
	part.count = wanted < room ? (size_t)wanted : room;
	part.cut = part.count < wanted;
	for (size_t i = 0; i < part.count; i++)
		stacks->pages[stacks->nr_pages++] = start + i * MEMORY_PAGE;
	return part;
}

/* What of a stack is not copied. */
struct hole {
	uint64_t start, end;
};

/*
 * Finds the VM stack in a native stack. If there is none, and the native stack is too long to be copied, the hole ends
 * where the last NATIVE_STACK_OUTERMOST bytes begin; the part in front of it ends where its room ends. False if
 * all of the stack is copied.
 */
static bool find_hole(const struct native_stacks *stacks, uint64_t start, uint64_t end, struct hole *ret)
{
	const struct address_map *holes = stacks->holes;
	const size_t at = holes ? array_first(holes->pairs, holes->count, one, one->address >= start) : 0;

	if (holes && at < holes->count && holes->pairs[at].other <= end &&
	    holes->pairs[at].other > holes->pairs[at].address) {
		*ret = (struct hole){.start = holes->pairs[at].address, .end = holes->pairs[at].other};
		return true;
	}
	*ret = (struct hole){.start = end, .end = end - NATIVE_STACK_OUTERMOST};
	return end - page_of(start) > NATIVE_STACK_MAX;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Plans the parts on both sides of a hole. The inner part leaves room for NATIVE_STACK_OUTERMOST bytes of the outer
 * part, if there is so much room.
 */
static void plan_both(struct native_stacks *stacks, struct place *place, uint64_t sp, const struct hole *hole,
		      uint64_t end)
{
	const size_t outer = smaller((end - page_of(hole->end)) / MEMORY_PAGE, NATIVE_STACK_OUTERMOST / MEMORY_PAGE);
	const size_t room = smaller(STACK_PAGES, PAGES - stacks->nr_pages);

	place->parts[0] = plan(stacks, page_of(sp), hole->start, room > outer ? room - outer : room);
	place->parts[1] = plan(stacks, page_of(hole->end), end, STACK_PAGES - place->parts[0].count);
}

void native_stacks_want(struct native_stacks *stacks, const struct target *target, uint64_t sp)
{
	struct place *place;
	struct hole hole;
	uint64_t end;

	if (stacks->nr_places == stacks->capacity)
		return;
	place = &stacks->places[stacks->nr_places++];
	*place = (struct place){.end = stacks->nr_pages};
	if (sp == 0 || !find_end(target, sp, &end) || end <= sp)
		return;
	if (find_hole(stacks, sp, end, &hole))
		plan_both(stacks, place, sp, &hole, end);
	else
		place->parts[0] = plan(stacks, page_of(sp), end, STACK_PAGES);
	place->end = stacks->nr_pages;
}

void native_stacks_omit(struct native_stacks *stacks, const struct address_map *holes)
{
	stacks->holes = holes;
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

static struct native_part copied(const struct native_stacks *stacks, const struct part *part, bool *cut)
{
	size_t count = 0;

	while (count < part->count && stacks->ok[part->first + count])
		count++;
	*cut |= part->cut || count < part->count;
	if (count == 0)
		return (struct native_part){0};
	return (struct native_part){
	    .start = stacks->pages[part->first],
	    .length = count * MEMORY_PAGE,
	    .bytes = stacks->bytes + part->first * MEMORY_PAGE,
	};
}

struct native_stack native_stacks_of(const struct native_stacks *stacks, size_t index)
{
	struct native_stack stack = {0};

	for (size_t i = 0; i < NATIVE_PARTS && index < stacks->nr_places; i++)
		stack.parts[i] = copied(stacks, &stacks->places[index].parts[i], &stack.cut);
	return stack;
}
