/*
 * Hash tables that find an item of an array by the item's contents. A table holds indices into the array. The items
 * might come from a hostile file. Each hash depends on a secret number, so that the author of the file cannot make many
 * items with the same hash.
 */
#ifndef RBDUMP_INDEX_TABLE_H
#define RBDUMP_INDEX_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A table. A zeroed struct is an empty table. To free the memory of a table, call index_table_clear(). The table uses
 * open addressing, and is at most half full.
 */
struct index_table {
	uint32_t *slots; /* the index of an item, plus 1; 0: the slot is empty */
	size_t size;	 /* number of slots: 0, or a power of two */
	size_t used;
};

/* How the items of an array are hashed and compared. */
struct index_items {
	size_t size; /* size of one item, in bytes */
	uint64_t (*hash)(const void *item);
	bool (*same)(const void *a, const void *b);
};

/*
 * Makes room for one more item in the table. Returns false if there is not enough memory.
 *   items  the array; must still contain every item whose index is in the table
 */
bool index_table_make_room(struct index_table *table, const struct index_items *of, const void *items);

/*
 * Returns the slot of the item that is equal to `item`. If the table has no such item, returns the empty slot that
 * `item` would get. Call index_table_make_room() first.
 */
uint32_t *index_table_slot(const struct index_table *table, const struct index_items *of, const void *items,
			   const void *item);

/* Puts an index into an empty slot that index_table_slot() returned. */
void index_table_enter(struct index_table *table, uint32_t *slot, uint32_t index);

/*
 * Returns the index of the item that is equal to `item`, or UINT32_MAX if the table has no such item. The table may be
 * empty.
 */
uint32_t index_table_find(const struct index_table *table, const struct index_items *of, const void *items,
			  const void *item);

/* Frees the memory, and leaves the table empty. */
void index_table_clear(struct index_table *table);

/* Starts a hash: mixes a value with a secret number. The secret number does not change until the process ends. */
uint64_t hash_begin(uint64_t value);

/* Mixes one more value into a hash. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

/* Returns the hash of a string. This hash depends on the same secret number as the hashes from hash_begin(). */
uint64_t hash_text(const char *text);

#endif
