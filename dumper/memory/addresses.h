/*
 * Addresses of the target, gathered to be sorted and looked up.
 */
#ifndef RBDUMP_ADDRESSES_H
#define RBDUMP_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is an empty one. To be given to addresses_clear(). */
struct addresses {
	uint64_t *of;
	size_t count, capacity;
};

/* False if out of memory. */
bool addresses_add(struct addresses *addresses, uint64_t address);

/* In ascending order, each once. */
void addresses_sort(struct addresses *addresses);

/* Whether one is among them, once they are sorted. */
bool addresses_have(const struct addresses *addresses, uint64_t address);
void addresses_clear(struct addresses *addresses);

/* Sorts plain ones. */
void addresses_sort_plain(uint64_t *addresses, size_t count);

/* What belongs to an address: an index, another address. */
struct address_pair {
	uint64_t address, other;
};

/* All zero is an empty one. To be given to address_map_clear(). */
struct address_map {
	struct address_pair *pairs;
	size_t count, capacity;
};

/* False if out of memory. */
bool address_map_add(struct address_map *map, uint64_t address, uint64_t other);

/* In ascending order of addresses, and of what belongs to the same. */
void address_map_sort(struct address_map *map);

/* What belongs to an address, once the map is sorted: the first of it. NULL if nothing does. */
const uint64_t *address_map_find(const struct address_map *map, uint64_t address);
void address_map_clear(struct address_map *map);

#endif
