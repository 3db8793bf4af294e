/*
 * A JSON object that holds one count for each key.
 */
#ifndef RBDUMP_COUNTS_H
#define RBDUMP_COUNTS_H

#include <jansson.h>

/*
 * Adds one to the count of a key. If `counts` already has the maximum number of keys, a new key is counted under
 * "(others)".
 */
void counts_add(json_t *counts, const char *key);

#endif
