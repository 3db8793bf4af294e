#include "heap/heap_count.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "heap/kinds.h"
#include "heap/progress.h"
#include "heap/sums.h"
#include "memory/overlay.h"
#include "ruby/value.h"

/* The pages of memory for the structs outside the heap that belong to the objects of one page of the heap. */
#define OUTSIDE_PAGES 16384u

/* The pages of memory for the shapes and for the tables of instance variables. */
#define LASTING_PAGES 32768u

/* The most slots that are compared: 2 GiB of memory, for a heap of some 60 GB with small objects. */
#define SEEN_MAX ((size_t)1 << 30)

/* What was seen of a page of the heap at the first reading. */
struct seen_page {
	uint64_t start, slots;
	size_t first; /* index of its first slot's group in `groups` */
};

struct heap_seen {
	struct seen_page *pages;
	size_t nr_pages, pages_capacity;
	uint16_t *groups; /* the group of each slot */
	size_t nr_groups, groups_capacity;
};

/* A result that is kept. */
struct heap_kept {
	struct heap_totals totals;
	bool incomplete, blind, has_ranges, partial;
	size_t nr_groups; /* groups with higher numbers were made later: they had no objects */
	struct census_group groups[];
};

/* What a reading is for. */
struct purpose {
	bool counts, sizes;
	bool remembers; /* `seen` is being made */
	bool compares;	/* `seen` is being compared with */
};

/* How many groups are kept by flags and class. Most programs have some hundred that have many objects. */
#define KEPT_GROUPS 1024u

/* The group of the objects with certain flags and a certain class. */
struct kept_group {
	uint64_t flags, klass;
	uint16_t number; /* CENSUS_FREE: nothing is kept here */
	bool bare;	 /* the objects own nothing outside their slots */
};

/* What is the same for all slots of one reading. */
struct reading {
	struct heap_count *count;
	struct purpose purpose;
	struct object_sizes sizes;
	struct kinds kinds;
	struct kept_group kept[2][KEPT_GROUPS]; /* of live objects, and of dead ones */
	struct addresses unread;		/* pages that could not be read */
	/* For each slot of the page that is being read, the group, and whether there is no size to be found. */
	uint16_t numbers[HEAP_PAGE_BYTES_MAX / 8];
	bool bare[HEAP_PAGE_BYTES_MAX / 8];
};

bool heap_count_begin(const struct ruby *ruby, memory_source *source, void *context, bool runs, bool parallel,
		      struct heap_count *ret)
{
	*ret = (struct heap_count){
	    .ruby = ruby,
	    .source = source,
	    .context = context,
	    .runs = runs,
	    .owned_max = OBJECT_OWNED_MAX,
	    .deadline_ns = UINT64_MAX,
	    .census = census_create(),
	    .copy = heap_copy_create(ruby, source, context, runs, parallel),
	    .seen = calloc(1, sizeof(struct heap_seen)),
	};
	if (ret->census && ret->copy && ret->seen)
		return true;
	heap_count_clear(ret);
	return false;
}

void heap_count_clear(struct heap_count *count)
{
	census_destroy(count->census);
	heap_copy_destroy(count->copy);
	if (count->seen) {
		free(count->seen->pages);
		free(count->seen->groups);
	}
	free(count->seen);
	free(count->kept);
	*count = (struct heap_count){0};
}

/* The pool of slots of one size. */
static struct heap_pool *pool_of(struct heap_totals *totals, uint64_t slot_size)
{
	size_t i = 0;

	while (i < totals->nr_pools && totals->pools[i].slot_size != slot_size)
		i++;
	if (i < totals->nr_pools)
		return &totals->pools[i];
	if (totals->nr_pools == HEAP_POOLS)
		return &totals->pools[HEAP_POOLS - 1];
	totals->pools[totals->nr_pools].slot_size = slot_size;
	return &totals->pools[totals->nr_pools++];
}

/* Finds the group of the object in a slot in the census. */
static uint16_t find_group(const struct reading *reading, const struct object_slot *slot, bool dead)
{
	struct census_kind kind;

	if (!kinds_of(&reading->kinds, slot, &kind))
		return CENSUS_FREE;
	kind.dead = dead;
	return census_find(reading->count->census, &kind);
}

/*
 * Finds out what a slot has: sets its group, CENSUS_FREE if it is free. Objects of few classes are most of a heap, so their
 * groups are kept: this is done for each slot while the target may be stopped.
 */
static void read_slot(struct reading *reading, const struct heap_copy_page *page, uint64_t index)
{
	const struct kinds *kinds = &reading->kinds;
	const struct object_slot slot = heap_copy_slot(page, index);
	const uint64_t flags = value_word(slot.bytes + kinds->flags_at),
		       klass = value_word(slot.bytes + kinds->klass_at);
	const bool dead = !page->swept && !heap_copy_bit(page, page->marked, index);
	/* Since 3.2, the number of the object's shape is in the higher half of the flags. */
	struct kept_group *kept =
	    &reading->kept[dead][(flags ^ flags >> 12 ^ flags >> 32 ^ klass >> 3 ^ klass >> 13) % KEPT_GROUPS];

	/* Behind the flags of a free slot is the address of another one, so each of them would replace a group. */
	if ((flags & kinds->type_mask) == 0) {
		reading->numbers[index] = CENSUS_FREE;
		reading->bare[index] = true;
		return;
	}
	if (kept->number == CENSUS_FREE || kept->flags != flags || kept->klass != klass ||
	    !kinds_are_told_by(kinds, flags, klass)) {
		*kept = (struct kept_group){.flags = flags, .klass = klass, .number = find_group(reading, &slot, dead)};
		kept->bare = kept->number == CENSUS_FREE ||
			     (reading->purpose.sizes && object_size_is_nothing(&reading->sizes, flags));
	}
	reading->numbers[index] = kept->number;
	reading->bare[index] = kept->bare;
}

/* What the first reading saw of a page; NULL if it was not there, or had other slots. */
static const struct seen_page *seen_before(const struct heap_seen *seen, const struct heap_page *page)
{
	const size_t at = array_first(seen->pages, seen->nr_pages, one, one->start >= page->start);

	if (at == seen->nr_pages || seen->pages[at].start != page->start || seen->pages[at].slots != page->slots)
		return NULL;
	return &seen->pages[at];
}

/* Makes room to remember a page. Returns NULL if there is none: sets `partial`, or `no_memory`. */
static struct seen_page *remember(struct heap_count *count, const struct heap_copy_page *page)
{
	struct heap_seen *seen = count->seen;
	struct seen_page *ret;

	if (page->at.slots > SEEN_MAX - seen->nr_groups) {
		count->partial = true;
		return NULL;
	}
	if (!array_make_room(seen->pages, seen->pages_capacity, seen->nr_pages + 1) ||
	    !array_make_room(seen->groups, seen->groups_capacity, seen->nr_groups + page->at.slots)) {
		count->no_memory = true;
		return NULL;
	}
	ret = &seen->pages[seen->nr_pages++];
	*ret = (struct seen_page){page->at.start, page->at.slots, seen->nr_groups};
	seen->nr_groups += page->at.slots;
	return ret;
}

/* Counts the objects of a page. */
static void count_slots(struct reading *reading, const struct heap_copy_page *page)
{
	struct heap_count *count = reading->count;
	struct heap_totals *totals = &count->totals;
	struct heap_pool *pool = pool_of(totals, page->at.slot_size);
	const struct seen_page *before = reading->purpose.compares ? seen_before(count->seen, &page->at) : NULL;
	struct seen_page *now = reading->purpose.remembers ? remember(count, page) : NULL;
	struct census_group *groups = census_groups(count->census);
	const uint8_t *shady = page->any_shady ? page->shady : NULL, *pinned = page->any_pinned ? page->pinned : NULL;
	uint64_t used = 0, dead = 0;

	for (uint64_t i = 0; i < page->at.slots; i++) {
		const uint16_t number = reading->numbers[i];
		struct census_group *group;

		if (now)
			count->seen->groups[now->first + i] = number;
		if (number == CENSUS_FREE)
			continue;
		used++;
		group = &groups[number];
		group->objects++;
		group->slot_bytes += page->at.slot_size;
		group->shady += heap_copy_bit(page, shady, i);
		group->pinned += heap_copy_bit(page, pinned, i);
		group->stayed += before && count->seen->groups[before->first + i] == number;
		dead += group->kind.dead;
	}
	totals->objects += used - dead;
	totals->dead += dead;
	pool->pages++;
	pool->slots += page->at.slots;
	pool->free += page->at.slots - used;
	totals->pages++;
	totals->slots += page->at.slots;
	totals->free += page->at.slots - used;
	totals->page_bytes += page->at.slots * page->at.slot_size;
	if (used == 0)
		totals->empty_pages++;
	else
		totals->tenths[(used * HEAP_TENTHS - 1) / page->at.slots]++;
}

/* Whether an object has instance variables in a struct of their own. */
static bool has_generic(const struct reading *reading, const struct object_slot *slot)
{
	const struct layout *layout = reading->count->ruby->layout;

	return ivars_may_be_generic(layout, slot_flags(layout, slot));
}

/* Copies the structs outside the heap that the sizes of a page's objects depend on. Sets `any` if there are some. */
static struct memory *copy_outside(const struct reading *reading, const struct heap_copy_page *page,
				   struct memory_piece *piece, bool *any)
{
	struct heap_count *count = reading->count;
	struct memory *outside = memory_create(count->source, count->context, OUTSIDE_PAGES);

	if (!outside)
		return NULL;
	*piece = (struct memory_piece){
	    .address = page->at.start, .length = page->at.slots * page->at.slot_size, .data = page->slots};
	memory_overlay(outside, piece, 1, 0, 0);
	for (uint64_t i = 0; i < page->at.slots; i++) {
		const struct object_slot slot = heap_copy_slot(page, i);
		uint64_t length, wanted;

		if (reading->bare[i])
			continue;
		*any |= has_generic(reading, &slot);
		if (!object_size_may_want(&reading->sizes,
					  value_word(slot.bytes + reading->kinds.flags_at) & reading->kinds.type_mask))
			continue;
		wanted = object_size_wants(&reading->sizes, &slot, &length);
		if (value_is_object(wanted) && wanted <= UINT64_MAX - length) {
			memory_want(outside, wanted, wanted + length);
			*any = true;
		}
	}
	if (*any)
		memory_fetch(outside);
	return outside;
}

/* Whether a struct outside that an object's size depends on may have become another one since the slot was copied. */
static bool has_changed(const struct reading *reading, const struct object_slot *slot, const uint8_t *again)
{
	uint64_t length;

	return (object_size_wants(&reading->sizes, slot, &length) != 0 || has_generic(reading, slot)) &&
	       (!again || memcmp(slot->bytes, again, slot->size) != 0);
}

/* Adds up what the objects of a page own outside the heap. */
static void add_sizes(struct reading *reading, const struct heap_copy_page *page)
{
	struct heap_count *count = reading->count;
	struct memory_piece piece;
	bool any = false, compares;
	struct memory *outside = copy_outside(reading, page, &piece, &any);
	const uint8_t *again = NULL;
	struct access access;

	if (!outside) {
		count->no_memory = true;
		return;
	}
	compares = any && count->runs;
	if (compares)
		again = heap_copy_again(count->copy, page);
	reading->sizes.steps = steps_begin(OBJECT_SIZE_NEEDED, OBJECT_SIZE_FEW);
	access = access_begin(outside, count->ruby->layout);
	for (uint64_t i = 0; i < page->at.slots; i++) {
		const struct object_slot slot = heap_copy_slot(page, i);
		const uint16_t number = reading->numbers[i];
		struct census_group *group;
		uint64_t owned = 0;
		bool exact;

		if (reading->bare[i])
			continue;
		exact = !(compares && has_changed(reading, &slot, again ? again + i * slot.size : NULL)) &&
			object_size(&reading->sizes, &access, &slot, &owned);
		group = census_group(count->census, number);
		group->inexact += !exact;
		sum_add(&group->owned_bytes, owned);
	}
	memory_destroy(outside);
}

static void read_page(struct reading *reading, const struct heap_copy_page *page)
{
	struct heap_count *count = reading->count;

	if (!page->slots || page->at.slot_size < reading->kinds.flags_at + 8 ||
	    page->at.slot_size < reading->kinds.klass_at + 8) {
		count->no_memory |= !addresses_add(&reading->unread, page->at.address);
		return;
	}
	for (uint64_t i = 0; i < page->at.slots; i++)
		read_slot(reading, page, i);
	if (reading->purpose.counts)
		count_slots(reading, page);
	if (reading->purpose.sizes)
		add_sizes(reading, page);
}

static void read_pages(struct reading *reading)
{
	struct heap_count *count = reading->count;
	const struct heap_copy_page *pages;
	uint64_t done = 0;
	size_t nr;

	if (!heap_copy_begin(count->copy)) {
		count->incomplete = true;
		return;
	}
	while (!count->no_memory && !count->late && (nr = heap_copy_next(count->copy, &pages)) > 0)
		for (size_t i = 0; i < nr && !count->no_memory; i++) {
			count->late |= monotonic_ns() > count->deadline_ns ||
				       !progress_goes_on(done++, heap_copy_total(count->copy));
			if (count->late)
				break;
			read_page(reading, &pages[i]);
		}
	addresses_sort(&reading->unread);
	count->totals.unread = reading->unread.count;
	if (count->runs && reading->unread.count > 0)
		count->totals.unread = heap_copy_still_listed(count->copy, &reading->unread);
	count->incomplete |= count->late || count->totals.unread > 0 || heap_copy_list_moved(count->copy);
	count->blind |= heap_copy_was_blind(count->copy);
}

static void read_heap(struct heap_count *count, const struct purpose *purpose)
{
	struct reading reading = {.count = count, .purpose = *purpose, .kinds = kinds_read(count->ruby->layout)};
	struct ruby lasting = *count->ruby;

	if (purpose->counts) {
		census_reset_counts(count->census);
		count->totals = (struct heap_totals){0};
	}
	if (purpose->sizes) {
		census_reset_sizes(count->census);
		lasting.memory = memory_create(count->source, count->context, LASTING_PAGES);
		if (!lasting.memory || !object_sizes_read(&lasting, &reading.sizes))
			count->no_memory = true;
		reading.sizes.owned_max = count->owned_max;
	}
	if (!count->no_memory)
		read_pages(&reading);
	addresses_clear(&reading.unread);
	if (purpose->sizes) {
		object_sizes_clear(&reading.sizes);
		memory_destroy(lasting.memory);
	}
}

static void begin_anew(struct heap_count *count)
{
	count->late = count->incomplete = count->blind = count->has_ranges = count->partial = false;
	count->seen->nr_pages = count->seen->nr_groups = 0;
}

void heap_count_once(struct heap_count *count)
{
	begin_anew(count);
	read_heap(count, &(struct purpose){.counts = true, .sizes = true});
}

void heap_count_sizes(struct heap_count *count)
{
	begin_anew(count);
	read_heap(count, &(struct purpose){.counts = true, .sizes = true, .remembers = true});
}

void heap_count_after_sizes(struct heap_count *count)
{
	read_heap(count, &(struct purpose){.counts = true, .compares = true});
	count->has_ranges = true;
}

void heap_count_twice(struct heap_count *count)
{
	begin_anew(count);
	read_heap(count, &(struct purpose){.counts = true, .remembers = true});
	if (!count->no_memory && !count->late)
		heap_count_after_sizes(count);
}

void heap_count_keep(struct heap_count *count)
{
	const size_t nr = census_end(count->census), bytes = nr * sizeof(struct census_group);
	struct heap_kept *kept = malloc(sizeof(*kept) + bytes);

	free(count->kept);
	count->kept = kept;
	if (!kept)
		return;
	*kept =
	    (struct heap_kept){count->totals, count->incomplete, count->blind, count->has_ranges, count->partial, nr};
	memcpy(kept->groups, census_groups(count->census), bytes);
}

bool heap_count_restore(struct heap_count *count)
{
	struct census_group *groups = census_groups(count->census);
	struct heap_kept *kept = count->kept;

	if (!kept)
		return false;
	for (size_t i = kept->nr_groups; i < census_end(count->census); i++)
		groups[i] = (struct census_group){.kind = groups[i].kind};
	memcpy(groups, kept->groups, kept->nr_groups * sizeof(groups[0]));
	count->totals = kept->totals;
	count->incomplete = kept->incomplete;
	count->blind = kept->blind;
	count->has_ranges = kept->has_ranges;
	count->partial = kept->partial;
	count->late = false;
	free(kept);
	count->kept = NULL;
	return true;
}

bool heap_count_is_same(const struct heap_count *count)
{
	for (size_t i = CENSUS_OTHERS; i < census_end(count->census); i++) {
		const struct census_group *group = census_group(count->census, (uint16_t)i);

		if (group->objects != group->before || group->objects != group->stayed)
			return false;
	}
	return true;
}

void heap_count_range(const struct heap_count *count, const struct census_group *group, bool collected, bool old_stay,
		      uint64_t *low, uint64_t *high)
{
	*low = *high = group->objects;
	if (!count->has_ranges)
		return;
	*low = !collected || (old_stay && group->kind.old) ? group->stayed : 0;
	*high = group->before + group->objects - group->stayed;
}
