/*
 * Numbers the slots of a heap, in the order of their addresses. The first slot has the number 1. No slot has the number
 * 0: in a graph of the heap (heap/graph.h), this number stands for the roots.
 *
 * rbdump often tests whether a word of a target is the address of a slot, so this test is fast: one look-up in a hash
 * table, which takes the same time for any number of pages. Only the exact start of a slot passes the test. The test
 * does not depend on how pages are aligned.
 *
 * Memory: at most 152 bytes for each page.
 */
#ifndef RBDUMP_SLOTS_H
#define RBDUMP_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby/heap_pages.h"

/*
 * The maximum number of slots. This number fits into 32 bits. A graph of a heap has one node for each slot, and node 0
 * for the roots: the number of its nodes also fits into 32 bits.
 */
#define SLOTS_MAX 3999999998u

struct slots;

/*
 * Numbers the slots of the given pages. The slots of damaged pages get no numbers.
 *   pages  as heap_pages_next() returns them: the undamaged pages are in ascending order, and do not overlap
 * Returns NULL if there is not enough memory, or if there are more than SLOTS_MAX slots.
 */
struct slots *slots_create(const struct heap_page *pages, size_t count);
void slots_destroy(struct slots *slots); /* NULL is fine */

/* How many slots there are. This is also the number of the last slot. */
uint32_t slots_count(const struct slots *slots);

/*
 * The number of the slot that begins at exactly this address; 0 if there is no such slot. Any thread may call this
 * function.
 */
uint32_t slots_number(const struct slots *slots, uint64_t address);

/*
 * The address of a slot. Takes time that is logarithmic in the number of pages.
 *   number  from 1 to slots_count()
 *   size    receives the size of the slot in bytes
 */
uint64_t slots_address(const struct slots *slots, uint32_t number, uint64_t *size);

#endif
