/*
 * A hash table of a fixed size. A key consists of three words, and a value consists of two words. The table is for
 * short-lived facts about a target, so callers often remove all keys at once: word_table_forget() does this in constant
 * time. A lookup checks only a few slots, even if a hostile target has chosen the keys. Therefore, there may be no room
 * for a key even if the table is not full. If there is no room for a key, the key is not added, so later lookups do not
 * find it.
 */
#ifndef RBDUMP_WORD_TABLE_H
#define RBDUMP_WORD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct word_key {
	uint64_t of[3];
};

struct word_value {
	uint64_t of[2];
};

struct word_table;

/*
 * Creates a table with room for at most `slots` / 2 keys; `slots` must be a power of two. Returns NULL if there is not
 * enough memory.
 */
struct word_table *word_table_create(size_t slots);
void word_table_destroy(struct word_table *table); /* NULL is fine */

/* Forgets all keys. */
void word_table_forget(struct word_table *table);

/*
 * Returns the value of a key, or NULL if the table does not have the key. The value is valid until the next
 * word_table_put() or word_table_forget().
 */
const struct word_value *word_table_find(const struct word_table *table, struct word_key key);

/*
 * Adds a key, or replaces the value of a key that is in the table. Returns false if there is no room for a new key. The
 * caller can then forget all keys, or continue without the new key.
 */
bool word_table_put(struct word_table *table, struct word_key key, struct word_value value);

size_t word_table_count(const struct word_table *table);

#endif
