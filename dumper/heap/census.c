#include "heap/census.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"

/* At most half of it is used. */
#define TABLE_SLOTS (2 * (CENSUS_GROUPS + 1))

struct census {
	struct census_group *groups;
	size_t count, capacity;
	uint64_t secret; /* so that a target cannot choose classes with the same hash */
	uint16_t table[TABLE_SLOTS];
};

struct census *census_create(void)
{
	struct census *census = calloc(1, sizeof(*census));

	if (!census)
		return NULL;
	if (!array_make_room(census->groups, census->capacity, 1024)) {
		free(census);
		return NULL;
	}
	if (getrandom(&census->secret, sizeof(census->secret), GRND_NONBLOCK) != sizeof(census->secret))
		census->secret = (uintptr_t)census;
	memset(census->groups, 0, (CENSUS_OTHERS + 1) * sizeof(census->groups[0]));
	census->count = CENSUS_OTHERS + 1;
	return census;
}

void census_destroy(struct census *census)
{
	if (!census)
		return;
	free(census->groups);
	free(census);
}

static bool is_same(const struct census_kind *a, const struct census_kind *b)
{
	return a->klass == b->klass && a->data_type == b->data_type && a->type == b->type && a->imemo == b->imemo &&
	       a->dead == b->dead && a->old == b->old;
}

static uint64_t hash_of(const struct census *census, const struct census_kind *kind)
{
	/* Only one of the addresses is not 0. */
	const uint64_t word = kind->klass ^ kind->data_type ^ (uint64_t)kind->type << 48 ^ (uint64_t)kind->imemo << 56 ^
			      (uint64_t)kind->dead << 1 ^ kind->old;
	const unsigned __int128 product = (unsigned __int128)(word ^ census->secret) * 0x9e3779b97f4a7c15ULL;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint16_t census_find(struct census *census, const struct census_kind *kind)
{
	size_t i = hash_of(census, kind) % TABLE_SLOTS;

	while (census->table[i] != 0 && !is_same(&census->groups[census->table[i]].kind, kind))
		i = (i + 1) % TABLE_SLOTS;
	if (census->table[i] == 0) {
		if (census->count > CENSUS_GROUPS ||
		    !array_make_room(census->groups, census->capacity, census->count + 1))
			return CENSUS_OTHERS;
		census->groups[census->count] = (struct census_group){.kind = *kind};
		census->table[i] = (uint16_t)census->count++;
	}
	return census->table[i];
}

struct census_group *census_groups(const struct census *census)
{
	return census->groups;
}

struct census_group *census_group(const struct census *census, uint16_t number)
{
	return &census->groups[number];
}

size_t census_end(const struct census *census)
{
	return census->count;
}

void census_reset_counts(struct census *census)
{
	for (size_t i = CENSUS_OTHERS; i < census->count; i++) {
		struct census_group *group = &census->groups[i];

		*group = (struct census_group){.kind = group->kind,
					       .before = group->objects,
					       .owned_bytes = group->owned_bytes,
					       .inexact = group->inexact};
	}
}

void census_reset_sizes(struct census *census)
{
	for (size_t i = CENSUS_OTHERS; i < census->count; i++)
		census->groups[i].owned_bytes = census->groups[i].inexact = 0;
}
