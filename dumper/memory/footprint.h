/*
 * A footprint: the bytes of a target that something was made from. As long as they are what they were, so is that.
 */
#ifndef RBDUMP_FOOTPRINT_H
#define RBDUMP_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;

struct footprint_span {
	uint64_t address;
	uint32_t length, offset; /* within `bytes` */
};

/* All zero is an empty one. */
struct footprint {
	struct footprint_span *spans;
	uint8_t *bytes;
	uint32_t nr_spans, nr_bytes, spans_capacity, bytes_capacity;
	bool failed; /* it is not all there: out of memory, or it was too much */
};

/* The most bytes of one. */
#define FOOTPRINT_MAX (64u << 10)

/* Adds what was read. */
void footprint_add(struct footprint *footprint, uint64_t address, const void *bytes, size_t length);

/* Notes the pages that it is in as wanted (memory_want()). */
void footprint_want(const struct footprint *footprint, struct memory *memory);

/* Whether all of it is in a memory what it was. */
bool footprint_holds(const struct footprint *footprint, struct memory *memory);

/* Empties it, and frees what it holds. */
void footprint_clear(struct footprint *footprint);

#endif
