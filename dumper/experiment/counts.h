/*
 * Counts per key, in a JSON object.
 */
#ifndef RBDUMP_COUNTS_H
#define RBDUMP_COUNTS_H

#include <jansson.h>

/* Adds one to the count of a key. If there are too many keys, all new keys are counted together as "(others)". */
void counts_add(json_t *counts, const char *key);

#endif
