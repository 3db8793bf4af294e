/*
 * A footprint: the bytes of the target that were read to get a result. As long as these bytes do not change, the result
 * stays right.
 */
#ifndef RBDUMP_FOOTPRINT_H
#define RBDUMP_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct footprint_span {
	uint64_t address;
	uint32_t length, offset; /* offset: in `bytes` */
};

/* If all members of a struct footprint are zero, the footprint is empty. */
struct footprint {
	struct footprint_span *spans;
	uint8_t *bytes;
	uint32_t nr_spans, nr_bytes, spans_capacity, bytes_capacity;
	bool failed; /* the footprint is incomplete: there was not enough memory, or too much was read */
};

/* The maximum number of bytes in a footprint. */
#define FOOTPRINT_MAX (64u << 10)

/* Adds `length` bytes that were read at `address`; sets `failed` if these bytes cannot be added. */
void footprint_add(struct footprint *footprint, uint64_t address, const void *bytes, size_t length);

/* Frees the memory, and leaves the footprint empty. */
void footprint_clear(struct footprint *footprint);

#endif
