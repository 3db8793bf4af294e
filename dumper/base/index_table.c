#include "base/index_table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_SIZE 64

static const void *item_at(const struct index_items *of, const void *items, uint32_t index)
{
	return (const char *)items + index * of->size;
}

bool index_table_make_room(struct index_table *table, const struct index_items *of, const void *items)
{
	struct index_table grown = {.size = table->size ? table->size * 2 : FIRST_SIZE};

	if (2 * (table->used + 1) <= table->size)
		return true;
	grown.slots = calloc(grown.size, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (size_t i = 0; i < table->size; i++) {
		uint32_t *slot;

		if (table->slots[i] == 0)
			continue;
		/* An item that was changed since it was entered may have become the same as another one. */
		slot = index_table_slot(&grown, of, items, item_at(of, items, table->slots[i] - 1));
		if (*slot == 0)
			index_table_enter(&grown, slot, table->slots[i] - 1);
	}
	free(table->slots);
	*table = grown;
	return true;
}

uint32_t *index_table_slot(const struct index_table *table, const struct index_items *of, const void *items,
			   const void *item)
{
	size_t at = (size_t)of->hash(item) & (table->size - 1);

	while (table->slots[at] != 0 && !of->same(item_at(of, items, table->slots[at] - 1), item))
		at = (at + 1) & (table->size - 1);
	return &table->slots[at];
}

void index_table_enter(struct index_table *table, uint32_t *slot, uint32_t index)
{
	*slot = index + 1;
	table->used++;
}

uint32_t index_table_find(const struct index_table *table, const struct index_items *of, const void *items,
			  const void *item)
{
	return table->size == 0 ? UINT32_MAX : *index_table_slot(table, of, items, item) - 1;
}

void index_table_clear(struct index_table *table)
{
	free(table->slots);
	*table = (struct index_table){0};
}

static uint64_t seed(void)
{
	static _Atomic uint64_t kept;
	uint64_t made = kept, none = 0;

	if (made != 0)
		return made;
	/* Without any, it works as well, unless somebody means harm. */
	if (getrandom(&made, sizeof(made), GRND_NONBLOCK) != (ssize_t)sizeof(made) || made == 0)
		made = 0x9e3779b97f4a7c15ULL;
	return atomic_compare_exchange_strong(&kept, &none, made) ? made : none;
}

uint64_t hash_begin(uint64_t value)
{
	return hash_mix(seed(), value);
}

uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ seed();

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ULL;
	return hash ^ (hash >> 32);
}
