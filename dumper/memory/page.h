/*
 * Pages of a target's memory: their size, where copies of them come from, and what kinds of data are in them.
 */
#ifndef RBDUMP_PAGE_H
#define RBDUMP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_PAGE ((uint64_t)4096)

/*
 * The source of pages: a function that copies `count` pages to `buffer`, without gaps. `pages` contains the addresses
 * of these pages, in ascending order. The function sets ok[i] to true if page i could be read.
 */
typedef void memory_source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

/*
 * The kinds of data: data that can change while the target's threads run, and data that lasts, such as code and names
 * (memory.h).
 */
enum memory_kind { MEMORY_CHANGES, MEMORY_LASTS };

#endif
