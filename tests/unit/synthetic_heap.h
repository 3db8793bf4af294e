/*
 * A synthetic heap of some pages, whose objects are counted. Each test has it in `heap_scene`; it can change while it is read.
 */
#ifndef RBDUMP_SYNTHETIC_HEAP_H
#define RBDUMP_SYNTHETIC_HEAP_H

#include "heap/heap_count.h"
#include "synthetic.h"

/* A slot has room for each synthetic object; a page has so many slots. */
enum { SLOT = 352, SLOTS = 100, PAGES = 3 };

struct heap_scene {
	struct synthetic *s;
	uint64_t objspace, list, pages[PAGES], start[PAGES];
	bool changes;	/* the heap changes after the last page of it was read for the first time */
	uint64_t moves; /* how often the list has a page less when it is read; UINT64_MAX: always another length */
	struct heap_count count;
};

extern struct heap_scene heap_scene;

/* For cmocka. *state is a struct synthetic, as `heap_scene.s`. */
int heap_scene_set_up(void **state);
int heap_scene_tear_down(void **state);

/*
 * Adds a page without objects to a list, which has room for it. Returns the address of its first slot.
 *   page  receives the address of its description
 */
uint64_t heap_scene_add_page(uint64_t list, uint64_t index, uint64_t *page);

/* Puts an object into a slot of a page of the scene. */
void heap_scene_put(size_t page, uint64_t slot, enum layout_enumerator_id type, uint64_t klass);

/* Calls heap_count_begin() for heap_scene.count. */
void heap_scene_begin(bool runs, bool parallel);

/* The group of a type and a class; NULL if there is none. */
const struct census_group *heap_scene_group(enum layout_enumerator_id type, uint64_t klass);

#endif
