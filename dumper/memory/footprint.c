#include "memory/footprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The most spans of a footprint: each new one is compared with all. */
#define SPANS_MAX 1024u

static bool has(const struct footprint *footprint, uint64_t address, size_t length)
{
	/* Backwards: a chain of pointers often begins with the words that were read just before. */
	for (uint32_t i = footprint->nr_spans; i > 0; i--) {
		const struct footprint_span *span = &footprint->spans[i - 1];
		const uint64_t offset = address - span->address;

		if (offset <= span->length && length <= span->length - offset)
			return true;
	}
	return false;
}

/*
 * Makes room for `length` bytes and their span. Returns the span; NULL if there are too many, or if there is not enough
 * memory.
 */
static struct footprint_span *make_room(struct footprint *footprint, size_t length)
{
	if (footprint->nr_spans == SPANS_MAX)
		return NULL;
	if (!array_make_room(footprint->spans, footprint->spans_capacity, footprint->nr_spans + 1))
		return NULL;
	if (!array_make_room(footprint->bytes, footprint->bytes_capacity, footprint->nr_bytes + length))
		return NULL;
	return footprint->spans + footprint->nr_spans;
}

void footprint_add(struct footprint *footprint, uint64_t address, const void *bytes, size_t length)
{
	struct footprint_span *span;

	if (footprint->failed || length == 0 || has(footprint, address, length))
		return;
	span = length <= FOOTPRINT_MAX - footprint->nr_bytes ? make_room(footprint, length) : NULL;
	if (!span) {
		footprint->failed = true;
		return;
	}
	memcpy(footprint->bytes + footprint->nr_bytes, bytes, length);
	if (footprint->nr_spans > 0 && span[-1].address + span[-1].length == address) {
		span[-1].length += (uint32_t)length;
	} else {
		*span = (struct footprint_span){
		    .address = address, .length = (uint32_t)length, .offset = footprint->nr_bytes};
		footprint->nr_spans++;
	}
	footprint->nr_bytes += (uint32_t)length;
}

void footprint_clear(struct footprint *footprint)
{
	free(footprint->spans);
	free(footprint->bytes);
	*footprint = (struct footprint){0};
}
