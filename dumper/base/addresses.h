/*
 * Sets and maps of addresses in the target. First add all entries, then sort the set or map once, then look up entries.
 */
#ifndef RBDUMP_ADDRESSES_H
#define RBDUMP_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of addresses. A zeroed struct is an empty set. To free the memory of a set, call addresses_clear(). */
struct addresses {
	uint64_t *of;
	size_t count, capacity;
};

/* Adds an address. Returns false if there is not enough memory. */
bool addresses_add(struct addresses *addresses, uint64_t address);

/* Sorts the set in ascending order, and drops duplicates. */
void addresses_sort(struct addresses *addresses);

/* Returns whether the set contains an address. The set must be sorted. */
bool addresses_have(const struct addresses *addresses, uint64_t address);

/* Frees the memory, and leaves the set empty. */
void addresses_clear(struct addresses *addresses);

/* Sorts an array of addresses in ascending order. Keeps duplicates. */
void addresses_sort_plain(uint64_t *addresses, size_t count);

/* An address and the value that is stored for it: an index, or another address. */
struct address_pair {
	uint64_t address, other;
};

/*
 * A map. Several pairs may have the same address. A zeroed struct is an empty map. To free the memory of a map, call
 * address_map_clear().
 */
struct address_map {
	struct address_pair *pairs;
	size_t count, capacity;
};

/* Adds a pair. Returns false if there is not enough memory. */
bool address_map_add(struct address_map *map, uint64_t address, uint64_t other);

/* Sorts the pairs in ascending order, by `address` and then by `other`. */
void address_map_sort(struct address_map *map);

/*
 * Returns a pointer to `other` in the first pair that has this address, or NULL if no pair has this address. The map
 * must be sorted.
 */
const uint64_t *address_map_find(const struct address_map *map, uint64_t address);

/* Frees the memory, and leaves the map empty. */
void address_map_clear(struct address_map *map);

#endif
