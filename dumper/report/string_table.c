#include "report/string_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static uint64_t hash(const void *item)
{
	return hash_text(*(const char *const *)item);
}

static bool same(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
}

static const struct index_items strings = {sizeof(char *), hash, same};

uint32_t string_table_add(struct string_table *table, const char *text)
{
	uint32_t *slot;
	char *copy;

	if (!text)
		text = "";
	if (table->failed || table->count == UINT32_MAX - 1 ||
	    !index_table_make_room(&table->by_text, &strings, table->strings) ||
	    !array_make_room(table->strings, table->capacity, table->count + 1)) {
		table->failed = true;
		return 0;
	}
	slot = index_table_slot(&table->by_text, &strings, table->strings, &text);
	if (*slot != 0)
		return *slot - 1;
	copy = strdup(text);
	if (!copy) {
		table->failed = true;
		return 0;
	}
	table->strings[table->count] = copy;
	index_table_enter(&table->by_text, slot, (uint32_t)table->count++);
	return *slot - 1;
}

void string_table_clear(struct string_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->strings[i]);
	free(table->strings);
	index_table_clear(&table->by_text);
	*table = (struct string_table){0};
}
