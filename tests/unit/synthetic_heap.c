#include "synthetic_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct heap_scene heap_scene;

uint64_t heap_scene_add_page(uint64_t list, uint64_t index, uint64_t *page)
{
	/* On pages of memory of its own. */
	const uint64_t start =
	    (synthetic_allocate(heap_scene.s, SLOTS * SLOT + 2 * MEMORY_PAGE) + MEMORY_PAGE - 1) & ~(MEMORY_PAGE - 1);

	*page = synthetic_struct(heap_scene.s, S_heap_page);
	for (uint64_t slot = 0; slot < SLOTS; slot++)
		synthetic_set(heap_scene.s, start + slot * SLOT, F_basic_flags, 0);
	synthetic_put_word(heap_scene.s, list + index * 8, *page);
	synthetic_set(heap_scene.s, *page, F_heap_page_start, start);
	synthetic_set(heap_scene.s, *page, F_heap_page_total_slots, SLOTS);
	synthetic_set(heap_scene.s, *page, F_heap_page_slot_size, SLOT);
	return start;
}

int heap_scene_set_up(void **state)
{
	if (synthetic_set_up(state) != 0)
		return -1;
	heap_scene.s = *state;
	heap_scene.changes = false;
	heap_scene.moves = 0;
	heap_scene.s->ruby.vm = synthetic_struct(heap_scene.s, S_vm);
	heap_scene.objspace = synthetic_struct(heap_scene.s, S_objspace);
	heap_scene.list = synthetic_allocate(heap_scene.s, PAGES * 8);
	synthetic_set(heap_scene.s, heap_scene.s->ruby.vm, F_vm_objspace, heap_scene.objspace);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_pages, heap_scene.list);
	synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, PAGES);
	for (size_t i = 0; i < PAGES; i++)
		heap_scene.start[i] = heap_scene_add_page(heap_scene.list, i, &heap_scene.pages[i]);
	return 0;
}

int heap_scene_tear_down(void **state)
{
	heap_count_clear(&heap_scene.count);
	return synthetic_tear_down(state);
}

void heap_scene_put(size_t page, uint64_t slot, enum layout_enumerator_id type, uint64_t klass)
{
	const uint64_t at = heap_scene.start[page] + slot * SLOT;

	synthetic_set(heap_scene.s, at, F_basic_flags, synthetic_enum(heap_scene.s, type));
	synthetic_set(heap_scene.s, at, F_basic_klass, klass);
}

/* What happens between both readings of test_twice. */
static void change(void)
{
	for (uint64_t i = 0; i < 5; i++)
		heap_scene_put(0, i, E_RUBY_T_COMPLEX, 0x1000);
	for (uint64_t i = 30; i < 42; i++)
		heap_scene_put(1, i, E_RUBY_T_FLOAT, 0x1000);
}

/* The list was read while the program runs. */
static void move(void)
{
	static uint64_t turns;

	if (heap_scene.moves == UINT64_MAX)
		synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, PAGES - ++turns % 2);
	else if (--heap_scene.moves == 0)
		synthetic_set(heap_scene.s, heap_scene.objspace, F_objspace_nr_pages, PAGES);
}

/* What is read of the target. */
static void read_pages(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	const struct synthetic *s = context;

	bool last = false, list = false;

	for (size_t i = 0; i < count; i++) {
		const uint64_t at = pages[i] - SYNTHETIC_BASE;

		ok[i] = at < SYNTHETIC_SIZE && s->mapped[at / MEMORY_PAGE];
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, s->bytes + at, MEMORY_PAGE);
		last |= pages[i] == heap_scene.start[PAGES - 1];
		list |= pages[i] == (heap_scene.list & ~(MEMORY_PAGE - 1));
	}
	if (list && heap_scene.moves > 0)
		move();
	if (last && heap_scene.changes) {
		heap_scene.changes = false;
		change();
	}
}

void heap_scene_begin(bool runs, bool parallel)
{
	assert_true(heap_count_begin(&heap_scene.s->ruby, read_pages, heap_scene.s, runs, parallel, &heap_scene.count));
}

const struct census_group *heap_scene_group(enum layout_enumerator_id type, uint64_t klass)
{
	for (size_t i = CENSUS_OTHERS; i < census_end(heap_scene.count.census); i++) {
		const struct census_group *group = census_group(heap_scene.count.census, (uint16_t)i);

		if (group->kind.type == synthetic_enum(heap_scene.s, type) && group->kind.klass == klass)
			return group;
	}
	return NULL;
}
