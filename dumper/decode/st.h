/*
 * Hash tables of Ruby's own (st_table), by numbers: ID → VALUE, Thread → what it is. Facts: st.c, include/ruby/st.h,
 * 1.9.3 to 3.1.2.
 *
 * Since 2.4 the entries stand in a row, in which deleted ones keep their place. Before, they hang in lists, one for
 * each hash modulo the number of lists; or, if they are few, they stand in a short row ("packed").
 */
#ifndef RBDUMP_ST_H
#define RBDUMP_ST_H

#include "vm/access.h"

typedef bool st_visit(void *context, struct access *access, uint64_t key, uint64_t record);

/*
 * Calls `visit` for each entry until it returns false, for `limit` entries at most.
 * Returns whether it came to the end; not if the table cannot be read, in which case the read fails.
 */
bool st_each(struct access *access, uint64_t table, size_t limit, st_visit *visit, void *context);

/*
 * The record of a number, in a table whose keys are hashed to themselves (st_numhash() until 2.1). False if there is
 * none, or if the table cannot be read, in which case the read fails.
 */
bool st_lookup(struct access *access, uint64_t table, uint64_t key, uint64_t *record);

#endif
