#include "base/addresses.h"

#include <stdlib.h>

#include "base/array.h"

bool addresses_add(struct addresses *addresses, uint64_t address)
{
	if (!array_make_room(addresses->of, addresses->capacity, addresses->count + 1))
		return false;
	addresses->of[addresses->count++] = address;
	return true;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void addresses_sort_plain(uint64_t *addresses, size_t count)
{
	if (count > 0)
		qsort(addresses, count, sizeof(*addresses), ascending);
}

void addresses_sort(struct addresses *addresses)
{
	size_t kept = 0;

	addresses_sort_plain(addresses->of, addresses->count);
	for (size_t i = 0; i < addresses->count; i++)
		if (kept == 0 || addresses->of[i] != addresses->of[kept - 1])
			addresses->of[kept++] = addresses->of[i];
	addresses->count = kept;
}

bool addresses_have(const struct addresses *addresses, uint64_t address)
{
	return addresses->count > 0 &&
	       bsearch(&address, addresses->of, addresses->count, sizeof(*addresses->of), ascending);
}

void addresses_clear(struct addresses *addresses)
{
	free(addresses->of);
	*addresses = (struct addresses){0};
}

bool address_map_add(struct address_map *map, uint64_t address, uint64_t other)
{
	if (!array_make_room(map->pairs, map->capacity, map->count + 1))
		return false;
	map->pairs[map->count++] = (struct address_pair){address, other};
	return true;
}

static int by_address_then_other(const void *a, const void *b)
{
	const struct address_pair *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->other < y->other ? -1 : x->other > y->other;
}

void address_map_sort(struct address_map *map)
{
	if (map->count > 0)
		qsort(map->pairs, map->count, sizeof(*map->pairs), by_address_then_other);
}

const uint64_t *address_map_find(const struct address_map *map, uint64_t address)
{
	const size_t at = array_first(map->pairs, map->count, pair, pair->address >= address);

	return at < map->count && map->pairs[at].address == address ? &map->pairs[at].other : NULL;
}

void address_map_clear(struct address_map *map)
{
	free(map->pairs);
	*map = (struct address_map){0};
}
