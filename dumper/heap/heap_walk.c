#include "heap/heap_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "heap/page_list.h"
#include "heap/progress.h"
#include "memory/overlay.h"
#include "ruby/value.h"

/*
 * The pages of memory for what is outside the heap and belongs to the objects of one of its pages: at most 128 MiB. If
 * the objects have more, for example an Array with 20 million elements, it is read piece by piece.
 */
#define OUTSIDE_PAGES 32768u

/* The pages of memory for what does not change. */
#define LASTING_PAGES 32768u

/*
 * The longest time for a whole walk, as for a count of the heap, and for the objects of one page. A hostile target can
 * have objects that lead to much memory, and each of them to the same.
 */
#define WALK_NS UINT64_C(1800000000000)
#define PAGE_NS 10000000000L

/* The longest piece of memory that is copied in advance. */
#define PIECE_MAX (UINT64_C(64) << 20)

/* Reads the list of the heap's pages, and numbers their slots. */
static bool number_slots(struct heap_walk *walk)
{
	struct heap_page *pages = NULL, page;
	size_t count = 0, capacity = 0;
	struct page_list list;
	const bool found = page_list_read(walk->ruby, walk->source, walk->context, walk->runs, &list);
	bool enough = list.memory != NULL;

	while (found && enough && page_list_next(&list, &page)) {
		enough = array_make_room(pages, capacity, count + 1);
		if (enough)
			pages[count++] = page;
	}
	enough &= !found || list.descriptions;
	walk->incomplete |= list.moved;
	page_list_clear(&list);
	if (enough)
		walk->slots = slots_create(pages, count);
	free(pages);
	return walk->slots != NULL;
}

/* Begins a new snapshot for what does not change. */
static bool renew_lasting(struct heap_walk *walk)
{
	struct memory *memory = memory_create(walk->source, walk->context, LASTING_PAGES);

	if (!memory)
		return false;
	memory_recycle(memory);
	memory_destroy(walk->lasting.memory);
	walk->lasting.memory = walk->refs.ivars.lasting = walk->sizes.ivars.lasting = memory;
	return true;
}

bool heap_walk_begin(const struct ruby *ruby, memory_source *source, void *context, bool runs, bool parallel,
		     struct heap_walk *ret)
{
	*ret = (struct heap_walk){
	    .ruby = ruby,
	    .copy = heap_copy_create(ruby, source, context, runs, parallel),
	    .source = source,
	    .context = context,
	    .runs = runs,
	    .lasting = *ruby,
	    .deadline_ns = monotonic_ns() + WALK_NS,
	};
	ret->lasting.memory = memory_create(source, context, LASTING_PAGES);
	if (ret->lasting.memory)
		memory_recycle(ret->lasting.memory);
	if (ret->copy && ret->lasting.memory && object_refs_read(&ret->lasting, &ret->refs) &&
	    object_sizes_read(&ret->lasting, &ret->sizes) && number_slots(ret))
		return true;
	heap_walk_clear(ret);
	return false;
}

void heap_walk_clear(struct heap_walk *walk)
{
	slots_destroy(walk->slots);
	object_refs_clear(&walk->refs);
	object_sizes_clear(&walk->sizes);
	memory_destroy(walk->lasting.memory);
	heap_copy_destroy(walk->copy);
	*walk = (struct heap_walk){0};
}

static void want(struct memory *outside, uint64_t address, uint64_t length)
{
	if (value_is_object(address) && length <= PIECE_MAX && address <= UINT64_MAX - length)
		memory_want(outside, address, address + length);
}

/* Marks what the references and the size of an object depend on as wanted. */
static void want_round(struct heap_walk *walk, struct access *access, const struct object_slot *slot,
		       enum refs_round round)
{
	const struct layout *layout = walk->ruby->layout;
	const uint64_t flags = slot_flags(layout, slot);
	uint64_t address, length = 0;

	address = object_refs_wants(&walk->refs, access, slot, round, &length);
	want(access->memory, address, length);
	if (round != REFS_STRUCTS)
		return;
	address = object_size_wants(&walk->sizes, slot, &length);
	want(access->memory, address, length);
	if (walk->strings && slot_is(layout, flags, E_RUBY_T_STRING) && slot_has_flag(layout, flags, E_RSTRING_NOEMBED))
		want(access->memory, slot_member(layout, slot, F_string_heap_ptr) & ~UINT64_C(7),
		     slot_member(layout, slot, layout_has(layout, F_string_len) ? F_string_len : F_string_heap_len) +
			 8);
}

/* Copies what is outside the heap and belongs to the objects of a page. */
static struct memory *copy_outside(struct heap_walk *walk, const struct heap_copy_page *page,
				   struct memory_piece *piece)
{
	struct memory *outside = memory_create(walk->source, walk->context, OUTSIDE_PAGES);
	struct access access;

	if (!outside)
		return NULL;
	memory_recycle(outside);
	memory_limit(outside, PAGE_NS);
	*piece = (struct memory_piece){
	    .address = page->at.start, .length = page->at.slots * page->at.slot_size, .data = page->slots};
	memory_overlay(outside, piece, 1, 0, 0);
	access = access_begin(outside, walk->ruby->layout);
	for (enum refs_round round = 0; round < REFS_ROUNDS; round++) {
		for (uint64_t i = 0; i < page->at.slots; i++) {
			const struct object_slot slot = heap_copy_slot(page, i);

			if (slot_flags(walk->ruby->layout, &slot) != 0)
				want_round(walk, &access, &slot, round);
		}
		memory_fetch(outside);
	}
	return outside;
}

static bool visit_page(struct heap_walk *walk, const struct heap_copy_page *page, heap_walk_visit *visit, void *context)
{
	const struct layout *layout = walk->ruby->layout;
	struct memory_piece piece;
	struct memory *outside = copy_outside(walk, page, &piece);
	struct access access;
	const uint8_t *again;
	bool goes_on = true;

	if (!outside) {
		walk->no_memory = true;
		return false;
	}
	again = walk->runs ? heap_copy_again(walk->copy, page) : page->slots;
	access = access_begin(outside, layout);
	walk->sizes.steps = steps_begin(OBJECT_SIZE_NEEDED, OBJECT_SIZE_FEW);
	for (uint64_t i = 0; i < page->at.slots && goes_on; i++) {
		struct heap_object object = {
		    .slot = heap_copy_slot(page, i), .access = &access, .page = page, .index = i};

		object.flags = slot_flags(layout, &object.slot);
		object.type = object.flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value;
		object.changed =
		    !again || memcmp(object.slot.bytes, again + i * object.slot.size, object.slot.size) != 0;
		object.dead = !page->swept && !heap_copy_bit(page, page->marked, i);
		if (object.type != 0)
			goes_on = visit(context, walk, &object);
	}
	walk->incomplete |= memory_is_over(outside);
	memory_destroy(outside);
	return goes_on;
}

void heap_walk_each(struct heap_walk *walk, heap_walk_visit *visit, void *context)
{
	const struct heap_copy_page *pages;
	struct addresses unread = {0};
	uint64_t done = 0;
	size_t nr, missing;

	if (!heap_copy_begin(walk->copy)) {
		walk->incomplete = true;
		return;
	}
	while ((nr = heap_copy_next(walk->copy, &pages)) > 0) {
		for (size_t i = 0; i < nr; i++) {
			walk->late |= monotonic_ns() > walk->deadline_ns ||
				      !progress_goes_on(done++, heap_copy_total(walk->copy));
			if (walk->late || walk->no_memory)
				goto end;
			if (!pages[i].slots || pages[i].at.slot_size < 16)
				walk->no_memory |= !addresses_add(&unread, pages[i].at.address);
			else if (!visit_page(walk, &pages[i], visit, context))
				goto end;
		}
	}
end:
	addresses_sort(&unread);
	missing = walk->runs && unread.count > 0 ? heap_copy_still_listed(walk->copy, &unread) : unread.count;
	addresses_clear(&unread);
	walk->incomplete |= walk->late || missing > 0 || heap_copy_list_moved(walk->copy);
	walk->blind |= heap_copy_was_blind(walk->copy);
	/* What objects of a running target led to can have filled the snapshot. */
	walk->no_memory |= !renew_lasting(walk);
}

/* The references of an object, while they are filtered. */
struct filter {
	const struct slots *slots;
	object_ref_visit *visit;
	void *context;
};

static void give_slots(void *context, const struct object_ref *ref)
{
	const struct filter *filter = context;

	if (ref->certainty != REF_CONSERVATIVE || slots_number(filter->slots, ref->target) != 0)
		filter->visit(filter->context, ref);
}

bool heap_walk_refs(struct heap_walk *walk, const struct heap_object *object, object_ref_visit *visit, void *context)
{
	struct filter filter = {walk->slots, visit, context};

	return object_refs_each(&walk->refs, object->access, &object->slot, give_slots, &filter);
}

bool heap_walk_size(struct heap_walk *walk, const struct heap_object *object, uint64_t *owned)
{
	*owned = 0;
	return !object->changed && object_size(&walk->sizes, object->access, &object->slot, owned);
}
