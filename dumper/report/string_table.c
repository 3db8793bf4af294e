#include "report/string_table.h"

#include <stdlib.h>
#include <string.h>

#include "recording/profile.h"

/* FNV-1a, so that nobody knows which texts share a slot. */
static uint64_t hash(const char *text)
{
	uint64_t value = UINT64_C(14695981039346656037) ^ profile_hash_seed();

	for (; *text; text++)
		value = (value ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return value;
}

/* The slot that a text is in, or belongs in. */
static uint32_t *find(const struct string_table *table, const char *text)
{
	size_t at = hash(text) & (table->nr_slots - 1);

	while (table->slots[at] != 0 && strcmp(table->strings[table->slots[at] - 1], text) != 0)
		at = (at + 1) & (table->nr_slots - 1);
	return &table->slots[at];
}

/* Makes room for twice as many as there are: at most half of the slots are taken. */
static bool grow(struct string_table *table)
{
	size_t nr_slots = table->nr_slots > 0 ? table->nr_slots * 2 : 64;
	char **strings = realloc(table->strings, nr_slots / 2 * sizeof(char *));
	uint32_t *slots;

	if (!strings)
		return false;
	table->strings = strings;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return false;
	free(table->slots);
	table->slots = slots;
	table->nr_slots = nr_slots;
	for (size_t i = 0; i < table->count; i++)
		*find(table, strings[i]) = (uint32_t)i + 1;
	return true;
}

uint32_t string_table_add(struct string_table *table, const char *text)
{
	uint32_t *slot;
	char *copy;

	if (!text)
		text = "";
	if (table->failed || (table->count == table->nr_slots / 2 && !grow(table))) {
		table->failed = true;
		return 0;
	}
	slot = find(table, text);
	if (*slot != 0)
		return *slot - 1;
	copy = strdup(text);
	if (!copy) {
		table->failed = true;
		return 0;
	}
	table->strings[table->count++] = copy;
	*slot = (uint32_t)table->count;
	return *slot - 1;
}

void string_table_clear(struct string_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->strings[i]);
	free(table->strings);
	free(table->slots);
	*table = (struct string_table){0};
}
