/*
 * Compares a footprint with the memory of the target.
 */
#ifndef RBDUMP_FOOTPRINT_MATCH_H
#define RBDUMP_FOOTPRINT_MATCH_H

#include "memory/footprint.h"
#include "memory/memory.h"

/* Calls memory_want() for all bytes of a footprint. */
void footprint_want(const struct footprint *footprint, struct memory *memory);

/*
 * Whether a snapshot has the same bytes as a footprint. False if the footprint is incomplete, or if the bytes at the
 * addresses of the footprint cannot be read.
 */
bool footprint_is_same(const struct footprint *footprint, struct memory *memory);

#endif
