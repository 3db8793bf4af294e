#include "base/word_table.h"

#include <stdlib.h>

/* How many slots a lookup looks at. */
#define PROBES_MAX 32u

struct slot {
	struct word_key key;
	struct word_value value;
	uint64_t generation;
};

struct word_table {
	size_t slots, count;
	uint64_t generation; /* a slot is empty if its generation differs from this number */
	struct slot of[];
};

struct word_table *word_table_create(size_t slots)
{
	struct word_table *table = calloc(1, sizeof(*table) + slots * sizeof(table->of[0]));

	if (!table)
		return NULL;
	table->slots = slots;
	table->generation = 1;
	return table;
}

void word_table_destroy(struct word_table *table)
{
	free(table);
}

void word_table_forget(struct word_table *table)
{
	table->generation++;
	table->count = 0;
}

/* The slot of a key, or the empty one that it would get: its number. `slots` if it is in none of those looked at. */
static size_t slot_of(const struct word_table *table, const struct word_key *key)
{
	const uint64_t mixed = (key->of[0] ^ (key->of[1] << 1) ^ (key->of[2] << 7)) * 0x9e3779b97f4a7c15ULL;

	for (size_t probe = 0; probe < PROBES_MAX; probe++) {
		const size_t i = (size_t)((mixed >> 32) + probe) & (table->slots - 1);
		const struct slot *slot = &table->of[i];

		if (slot->generation != table->generation ||
		    (slot->key.of[0] == key->of[0] && slot->key.of[1] == key->of[1] && slot->key.of[2] == key->of[2]))
			return i;
	}
	return table->slots;
}

const struct word_value *word_table_find(const struct word_table *table, struct word_key key)
{
	const size_t i = slot_of(table, &key);

	return i < table->slots && table->of[i].generation == table->generation ? &table->of[i].value : NULL;
}

bool word_table_put(struct word_table *table, struct word_key key, struct word_value value)
{
	const size_t i = slot_of(table, &key);

	if (i == table->slots)
		return false;
	if (table->of[i].generation != table->generation) {
		if (table->count == table->slots / 2)
			return false;
		table->count++;
	}
	table->of[i] = (struct slot){.key = key, .value = value, .generation = table->generation};
	return true;
}

size_t word_table_count(const struct word_table *table)
{
	return table->count;
}
