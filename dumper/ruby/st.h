/*
 * Reads Ruby's internal hash tables (st_table). Each key is a word, for example an ID, a VALUE or an address. Based on
 * Ruby's sources, 1.9.3 to 4.0.5 and head: st.c, include/ruby/st.h.
 *
 * Since Ruby 2.4 the entries are in one array, and deleted entries stay in this array. Before Ruby 2.4 the entries are
 * in linked lists. The index of an entry's list is the entry's hash modulo the number of lists. But a table with only a
 * few entries can have a short array instead of linked lists ("packed").
 */
#ifndef RBDUMP_ST_H
#define RBDUMP_ST_H

#include "ruby/access.h"

/* st_each() calls this function for each entry. If the function returns false, st_each() stops. */
typedef bool st_visit(void *context, struct access *access, uint64_t key, uint64_t record);

/*
 * Calls `visit` for each entry, at most `limit` times. Stops if `visit` returns false. Returns whether all entries were
 * visited. If the table cannot be read, returns false and sets access->failed.
 */
bool st_each(struct access *access, uint64_t table, size_t limit, st_visit *visit, void *context);

/*
 * Like st_each(), but the limit is `*steps`. Subtracts 1 from `*steps` for each linked list, and for each entry that is
 * read (also for a deleted entry). Stops if `*steps` is 0.
 */
bool st_each_step(struct access *access, uint64_t table, uint64_t *steps, st_visit *visit, void *context);

/*
 * Like st_each(), but passes the address of the entry as `record`. So the record can be read later, by st_record_at().
 * Returns false for a "packed" table, because st_record_at() cannot read the entries of such a table.
 */
bool st_each_address(struct access *access, uint64_t table, size_t limit, st_visit *visit, void *context);

/* Reads the record of an entry. Sets access->failed if the entry no longer has the key `key`. */
uint64_t st_record_at(struct access *access, uint64_t entry, uint64_t key);

/*
 * Looks up the record of a key. Use this function only for a table in which each key is its own hash. Up to Ruby 2.1,
 * this is true for tables that use st_numhash(). Returns false if the table has no such key. If the table cannot be
 * read, returns false and sets access->failed.
 */
bool st_lookup(struct access *access, uint64_t table, uint64_t key, uint64_t *record);

/*
 * Computes how many bytes a table and its entries take (st_memsize). Returns false if the layout lacks the members that
 * are needed, if the table cannot be read, or if the numbers in the table are not plausible.
 */
bool st_size(struct access *access, uint64_t table, uint64_t *ret);

/*
 * Whether this Ruby stores methods, constants and global variables in rb_id_tables. This is true for Ruby 2.3 and
 * later. Older Rubies use st_tables instead. Layouts for 2.3 and 2.4 lack the members of rb_id_table. But these layouts
 * have the member callable_m_tbl, which Ruby has also had since 2.3. So the function tests for this member, too.
 */
bool st_replaced_by_id_tables(const struct layout *layout);

#endif
