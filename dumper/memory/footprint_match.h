/*
 * Compares a footprint with the memory of the target.
 */
#ifndef RBDUMP_FOOTPRINT_MATCH_H
#define RBDUMP_FOOTPRINT_MATCH_H

#include "memory/footprint.h"
#include "memory/memory.h"

/* Marks the pages of a footprint as wanted (memory_want()). */
void footprint_want(const struct footprint *footprint, struct memory *memory);

/*
 * Whether a snapshot has the same bytes as a footprint. False if the footprint is incomplete, or if the bytes at the
 * addresses of the footprint cannot be read.
 */
bool footprint_is_same(const struct footprint *footprint, struct memory *memory);

#endif
