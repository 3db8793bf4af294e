/*
 * A table of unique texts. Other tables refer to a text by its index.
 */
#ifndef RBDUMP_STRING_TABLE_H
#define RBDUMP_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"

struct string_table {
	char **strings; /* owned by the table */
	size_t count, capacity;
	struct index_table by_text;
	bool failed; /* memory has run out, so the contents are incomplete */
};

/*
 * Adds a copy of a text to the table. If the table already contains this text, adds nothing. NULL is treated as "".
 * Returns the index of the text. If there is not enough memory, returns 0 and sets `failed`.
 */
uint32_t string_table_add(struct string_table *table, const char *text);

/* Frees the memory. Afterwards, the table is empty. */
void string_table_clear(struct string_table *table);

#endif
