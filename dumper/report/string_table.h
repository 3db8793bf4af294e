/*
 * A table of texts, each once, that other tables refer to by index.
 */
#ifndef RBDUMP_STRING_TABLE_H
#define RBDUMP_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct string_table {
	char **strings; /* its own */
	size_t count;
	uint32_t *slots; /* of the hash: index + 1, 0 if free */
	size_t nr_slots; /* a power of two, or 0 */
	bool failed;	 /* out of memory; what is there is not all */
};

/* The index of a text, which is copied; NULL is "". 0 if out of memory, with `failed` set. */
uint32_t string_table_add(struct string_table *table, const char *text);
void string_table_clear(struct string_table *table);

#endif
